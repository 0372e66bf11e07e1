// SPDX-License-Identifier: Apache-2.0
// What is said of a position outside its table.
#pragma once
#include <span>

#include "runtime/program/executable.h"
#include "runtime/program/kernel_function.h"

namespace einc {

// Throws FaultyElement: "index out of range: 'ids' at [0, 3] is 99, but axis 'vocab' of 'wte' has size 50 (model.ein:12:8)", or
// "division by zero: 'counts' at [2] is 0 (model.ein:9:3)".
// `iterations`: of the scans around the launch, outermost first.
[[noreturn]] void throw_index_fault(const Launch& launch, const IndexFault& fault, std::span<const int64_t> iterations = {});

}  // namespace einc
