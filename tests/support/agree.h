// A program's text, run by generated code and by the interpreter on the graph as written.
#pragma once
#include <functional>
#include <string>

#include "compiler/ir/interpret.h"
#include "tests/support/run_cpu.h"

namespace einc {

// What a program must give. `stored` says how far results move when every node's is rounded to its dtype: where a
// comparison is decided by rounding, they differ, and code generated may do either.
struct Wanted {
  Graph graph;  // final, for code generation
  TensorMap inputs, params, states;
  InterpretOptions options;
  InterpretResult exact, stored;
  double tolerance = 0;
};

// A program that does not compile or does not run in the interpreter leaves a problem instead.
std::optional<Wanted> interpret_text(const std::string& text, uint64_t seed, std::string& problem);

// "" or the first value that is wrong.
std::string difference(const Wanted& wanted, const CpuRun& found);

// "" or what is wrong, its kind before a colon: "program" (does not compile), "run" (fails), "value".
std::string disagreement(const std::string& text, uint64_t seed);

using Disagrees = std::function<std::string(const std::string& text, uint64_t seed)>;

// The programs of tests/regress.
void check_regress_programs(const Disagrees& disagrees);

// `count` random programs from seed `first`, or those of EINC_RANDOM_PROGRAMS=FIRST:COUNT. One that disagrees is shrunk and told.
void check_random_programs(uint64_t first, uint64_t count, const Disagrees& disagrees);

}  // namespace einc
