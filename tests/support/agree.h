// SPDX-License-Identifier: Apache-2.0
// A program's text, run by generated code and by the interpreter on the graph as written.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "compiler/ir/interpret.h"
#include "tests/support/run_cpu.h"

namespace einc {

// What a program must give. The runs of `near` say how far results move by rounding: in the first, every node's is rounded to its
// dtype. Where a comparison is decided by rounding they differ, and code generated may do either.
struct Wanted {
  Graph elaborated;
  Graph graph;  // final, for code generation
  TensorMap inputs, params, states;
  InterpretOptions options;
  InterpretResult exact;
  std::vector<InterpretResult> near;
  double tolerance = 0;
};

// A program that does not compile or does not run in the interpreter leaves a problem instead.
std::optional<Wanted> interpret_text(const std::string& text, uint64_t seed, std::string& problem, RunMode mode = RunMode::training);

// "" or the first value that is wrong.
std::string difference(const Wanted& wanted, const CpuRun& found);
// The same where a difference counts only if it is also more than what changes of the sources in their last digits make.
std::string certain_difference(Wanted& wanted, const CpuRun& found);

// "" or the gradient of the loss by a param that is not what finite differences of it are.
std::string gradient_difference(const Wanted& wanted, uint64_t seed);

// A way to compile and run a program.
struct Way {
  const char* name;
  RunMode mode;
  Scheduling scheduling;
};
std::span<const Way> all_ways();
std::vector<Way> ways_of(uint64_t seed);  // the first and another one

// A graph compiled in some ways: for each of them what runs it.
using Runs = std::vector<std::function<CpuRun(const Wanted& wanted)>>;
using Compile = std::function<Runs(const Graph& graph, std::span<const Way> ways)>;

// "" or what is wrong, its kind before a colon: "program" (does not compile), "oracle" (does not run in the interpreter), "gradient",
// "run" (fails), "value".
std::string disagreement(const std::string& text, uint64_t seed, std::span<const Way> ways, const Compile& compile);
std::string disagreement(const std::string& text, uint64_t seed, std::span<const Way> ways);  // on the processor
std::string disagreement(const std::string& text, uint64_t seed);                             // in the seed's ways

}  // namespace einc
