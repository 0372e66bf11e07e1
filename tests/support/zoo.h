// SPDX-License-Identifier: Apache-2.0
// The zoo: whole models (tests/zoo/models) beside what PyTorch in float64 makes of them (tests/zoo/values, written by
// tests/zoo/make_values.py), and ways to hold a backend to those values.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "compiler/pipeline/pipeline.h"
#include "tests/support/run_cpu.h"

namespace einc {

// What is computed. everything: outputs, all gradients as further outputs, and updates; step: the loss and updates, as in training;
// inference: outputs.
enum class ZooRun : uint8_t { everything, step, inference };

struct ZooModel {
  std::string name;
  Graph elaborated;
  TensorMap inputs, params, states;          // given
  TensorMap outputs, gradients, new_states;  // wanted; the loss is among the outputs
};

std::vector<std::string> zoo_models();  // their names, sorted
ZooModel load_zoo_model(const std::string& name, Policy precision = Policy::f32);
// The final graph for code generation.
Graph zoo_graph(const ZooModel& model, ZooRun run, Policy precision = Policy::f32);

InterpretOptions zoo_options(ZooRun run);

// How far a value may be off, relative to the largest element of its tensor or, where all of that are small, to a hundredth of the
// largest of its kind (outputs, gradients).
struct ZooBound {
  double values = 0, gradients = 0;
};
// In f32 each rounding is at most 6e-8 off. The models' results are a few of these off (3e-7 at most where this was measured), their
// gradients some tens (2.5e-6), which is what another order of summation changes.
inline constexpr ZooBound kZooF32 = {2e-6, 1e-5};

// "" or what is wrong, such as "lstm: gradient of table[2, 0] is 0.1, not 0.2: ...". An exception counts, too.
std::string zoo_problem(const ZooModel& model, ZooRun run, const ZooBound& bound, const std::function<CpuRun()>& found);

}  // namespace einc
