// SPDX-License-Identifier: Apache-2.0
// How kernels run on a processor with vectors of 512 bits and matrix tiles, whatever this one has, and on an H100. `scripts/golden
// schedule` rewrites the expectations.
#include <doctest/doctest.h>

#include <sstream>

#include "compiler/driver/emit_schedule.h"
#include "compiler/gpu_plan/gpu_plan_fields.h"
#include "compiler/lower/schedule_text.h"
#include "compiler/pipeline/cuda_program.h"
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

Graph graph_of(const Planned& p) {
  PipelineOptions options;
  options.dims = p.dims;
  options.precision = p.precision;
  Compilation compilation = compile_file(std::string("examples/") + p.program + ".ein", options);
  REQUIRE(compilation.graph);
  return std::move(*compilation.graph);
}

// What the comments say: how kernels run. The whole reads back, and begins with its format.
std::string comments_of(const std::string& text, const Graph& graph) {
  CHECK(text.starts_with("schedule 1\n"));
  const auto read = read_schedule(text, 4 * graph.size(), {}, gpu_plan_text());
  const auto* wrong = std::get_if<LineError>(&read);
  CHECK_MESSAGE(!wrong, (wrong ? std::to_string(wrong->line) + ": " + wrong->message : ""));
  std::string comments;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("# ")) comments += line.substr(2) + "\n";
  return comments;
}

std::string schedule_of(const Planned& p) {
  const Graph graph = graph_of(p);
  Processor processor;
  processor.vector_bits = 512, processor.vector_registers = 32, processor.matrix_tiles = true;
  processor.level1_bytes = 48 << 10, processor.level2_bytes = 2 << 20;
  CpuOptions cpu;
  cpu.processor = processor;
  return comments_of(emit_schedule(*lower_graph(graph, p.dims, cpu), processor), graph);
}

std::string gpu_schedule_of(const Planned& p) {
  const Graph graph = graph_of(p);
  return comments_of(emit_schedule(*compile_for_cuda(graph, p.dims, {})), graph);
}

}  // namespace

TEST_CASE("how kernels run on a processor") {
  for (const Planned& p : kPlanned) expect_golden(schedule_of(p), std::string("tests/golden/schedule/") + p.name + ".txt");
}

TEST_CASE("how kernels run on a GPU") {
  for (const Planned& p : kPlanned)
    if (p.precision != Policy::f32) expect_golden(gpu_schedule_of(p), std::string("tests/golden/schedule/") + p.name + "_h100.txt");
}
