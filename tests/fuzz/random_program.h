// SPDX-License-Identifier: Apache-2.0
// Random programs of the language, well-typed by construction and the same for the same seed. They are text: the oracle and the compiler
// read them like any file. What they consist of stands in the tables of random_*.cpp: single operations on small tensors of awkward
// sizes, and the patterns of models (gates, residuals, shared tables, attention, unrolled recurrences) whose gradients give kernels
// several results; whatever a line binds is read further down, returned or part of a loss.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "compiler/ir/interpret.h"

namespace einc {

struct RandomProgram {
  struct Line {
    std::string text;      // of more than one line where it is a loop or a fn
    std::string as_input;  // an input of the same name and type; empty where none can stand
  };
  struct Dim {
    std::string name;
    int64_t value;
  };
  std::vector<Dim> dims;
  std::vector<Line> lines;

  std::string text() const;
};

RandomProgram random_program(uint64_t seed);

// Whether the gradients of the seed's program are compared with finite differences of its loss: it minimizes one, and nothing
// in it stops gradients.
bool is_differentiable(uint64_t seed);

// Reals between -1 and 1; integers of an input `ids_b_1` are positions of dim b, of `n1` small, of both signs where the dtype has
// them, of others 0 or 1.
TensorMap program_inputs(const Graph& graph, const Bindings& dims, uint64_t seed);

// The smallest program found that `fails` still holds for: lines left out, values made inputs, dims lowered. `fails` is
// asked about texts that need not compile.
RandomProgram shrink(RandomProgram program, const std::function<bool(const std::string& text)>& fails);

}  // namespace einc
