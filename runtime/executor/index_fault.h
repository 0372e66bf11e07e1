// What is said of a position outside its table.
#pragma once
#include "runtime/program/executable.h"
#include "runtime/program/kernel_function.h"

namespace einc {

// Throws IndexOutOfRange: "index out of range: 'ids' at [0, 3] is 99, but axis 'vocab' of 'wte' has size 50 (model.ein:12:8)".
[[noreturn]] void throw_index_fault(const Executable& program, const IndexFault& fault);

}  // namespace einc
