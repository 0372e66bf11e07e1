// SPDX-License-Identifier: Apache-2.0
// Reads what to_string(kernel) writes, so that a pass over kernels can be tested from text. Streams and sites are counted; names are not
// part of the text.
#pragma once
#include <string>
#include <string_view>
#include <variant>

#include "compiler/ir/cursor.h"
#include "compiler/lower/kernel.h"

namespace einc {

using KernelReadError = LineError;

// A kernel that verifies, or what is wrong with the text.
std::variant<Kernel, KernelReadError> read_kernel(std::string_view text);

}  // namespace einc
