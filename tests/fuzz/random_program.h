// Random programs of the language, well-typed by construction and the same for the same seed: dims of every awkward size,
// contractions of all layouts, maps, reductions, views, windows, gathers, draws, states, gradients and optimizers.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "compiler/ir/interpret.h"

namespace einc {

struct RandomProgram {
  struct Line {
    std::string text;
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

// Reals between -1 and 1; integers of an input `ids_b_1` are positions of dim b, of others 0 or 1.
TensorMap program_inputs(const Graph& graph, const Bindings& dims, uint64_t seed);

// The smallest program found that `fails` still holds for: lines left out, values made inputs, dims lowered. `fails` is
// asked about texts that need not compile.
RandomProgram shrink(RandomProgram program, const std::function<bool(const std::string& text)>& fails);

}  // namespace einc
