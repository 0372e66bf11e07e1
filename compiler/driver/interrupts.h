// SPDX-License-Identifier: Apache-2.0
// Signals that ask a long run to end: it finishes its step, saves and leaves.
#pragma once

namespace einc {

// From now on the first SIGINT, SIGTERM or SIGHUP (the terminal has gone) is noted; the second of its kind ends the process at once. One
// that the process was told to ignore, as `nohup` does, stays ignored.
// `of_team`: SIGUSR1 as well, which launchers pass on without ending what they started a second later.
void catch_interrupts(bool of_team = false);

bool interrupt_asked();

}  // namespace einc
