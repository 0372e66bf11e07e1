// SPDX-License-Identifier: Apache-2.0
// Signals that ask a long run to end: it finishes its step, saves and leaves.
#pragma once

namespace einc {

// From now on the first SIGINT, SIGTERM or SIGHUP (the terminal has gone) is noted; the second of its kind ends the process at once. One
// that the process was told to ignore, as `nohup` does, stays ignored.
void catch_interrupts();

bool interrupt_asked();

}  // namespace einc
