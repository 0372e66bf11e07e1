// SPDX-License-Identifier: Apache-2.0
// Standard output and error of this process, made safe to print to from anywhere. A write that the system refuses (a full disk, a closed
// descriptor, a reader that has gone) neither throws nor ends in a signal: of standard error it is dropped, since nobody is left to
// tell; of standard output it is remembered, and ends in exit status 4 whatever the command.
#pragma once
#include <optional>
#include <string>

namespace einc {

// Called once, before anything is opened or printed.
void guard_standard_streams();

// A write to standard output has failed: nobody reads on.
bool output_is_lost();

// Writes what is still buffered; why standard output did not take everything, if so.
std::optional<std::string> finish_output();

}  // namespace einc
