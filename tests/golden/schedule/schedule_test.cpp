// SPDX-License-Identifier: Apache-2.0
// How kernels run on a processor with vectors of 512 bits and matrix tiles, whatever this one has. `scripts/golden schedule` rewrites the
// expectations.
#include <doctest/doctest.h>

#include "compiler/driver/emit_schedule.h"
#include "compiler/pipeline/pipeline.h"
#include "tests/support/golden_file.h"

using namespace einc;

namespace {

struct Planned {
  const char *name, *program;
  Bindings dims;
  Policy precision = Policy::inherit;
};

const Bindings kGpt2{{"batch", 2}, {"seq", 64}, {"vocab", 1000}, {"layers", 2}, {"heads", 2}, {"head", 64}};

const Planned kPlanned[] = {
    {"two_layer", "two_layer", {}},
    {"cnn", "cnn", {}},
    {"gpt2_f32", "gpt2", kGpt2, Policy::f32},
    {"gpt2_bf16", "gpt2", kGpt2, Policy::bf16},
};

std::string schedule_of(const Planned& p) {
  PipelineOptions options;
  options.dims = p.dims;
  options.precision = p.precision;
  const Compilation compilation = compile_file(std::string("examples/") + p.program + ".ein", options);
  REQUIRE(compilation.graph);
  Processor processor;
  processor.vector_bits = 512, processor.vector_registers = 32, processor.matrix_tiles = true;
  processor.level1_bytes = 48 << 10, processor.level2_bytes = 2 << 20;
  CpuOptions cpu;
  cpu.processor = processor;
  return emit_schedule(*lower_graph(*compilation.graph, p.dims, cpu), processor);
}

}  // namespace

TEST_CASE("how kernels run on a processor") {
  for (const Planned& p : kPlanned) expect_golden(schedule_of(p), std::string("tests/golden/schedule/") + p.name + ".txt");
}
