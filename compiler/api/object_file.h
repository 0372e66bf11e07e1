// SPDX-License-Identifier: Apache-2.0
// A program compiled ahead of time: an object file, and the header by which a C++ program gets at it.
#pragma once
#include <string>

#include "compiler/api/compile_program.h"
#include "compiler/lower/processor.h"

namespace einc {

struct ObjectFile {
  std::string object;
  std::string header;
};

// `stem`: the object's name without its ending, which names the functions of the header. `processor` is that of `cpu`. All dims
// have values.
ObjectFile make_object(const ProgramGraphs& graphs, const std::string& stem, const std::string& cpu, const Processor& processor);

// "my-model.v2" as a C++ name: "my_model_v2".
std::string identifier(const std::string& stem);

}  // namespace einc
