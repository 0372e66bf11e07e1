// SPDX-License-Identifier: Apache-2.0
// The programs of tests/numeric/layers/cases.json, with what PyTorch gave for them.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "compiler/ir/interpret.h"
#include "tests/support/run_graph.h"

namespace einc {

struct LayerCase {
  std::string name, program;
  RunMode mode = RunMode::training;
  double tolerance = 0;                     // relative, of values of 1 or more
  std::map<std::string, std::string> axes;  // names of each output's
  TensorMap inputs, params, states, outputs, after, gradients;

  TensorMap params_of(const Graph& graph) const;  // the graph's, in its dtypes
  TensorMap states_of(const Graph& graph) const;  // those of the optimizer at their initial values
  // "" or where a tensor differs from the one of that name.
  std::string difference(const TensorMap& wanted, Name name, const Tensor& found) const;
};

std::vector<LayerCase> layer_cases();

}  // namespace einc
