// SPDX-License-Identifier: Apache-2.0
// Schedules read back: those of examples and the zoo for both targets with the plans of their kernels, which are then verified and joined
// as the ones they were printed from, and make the same code; and texts that are none.
#include "compiler/lower/schedule_text.h"

#include <doctest/doctest.h>

#include <cstring>
#include <map>
#include <sstream>

#include "compiler/codegen/cuda/cuda_code.h"
#include "compiler/codegen/llvm/native_code.h"
#include "compiler/fuse/form_graph.h"
#include "compiler/gpu_plan/gpu_plan_fields.h"
#include "compiler/lower/join_launches.h"
#include "compiler/lower/make_program.h"
#include "compiler/lower/scan_schedule.h"
#include "compiler/lower/verify_plan.h"
#include "compiler/pipeline/pipeline.h"
#include "runtime/program/image.h"
#include "tests/support/recurrences.h"
#include "tests/support/zoo.h"

using namespace einc;

namespace {

struct Seen {
  int schedules = 0, scans = 0, products = 0, fused = 0, together = 0, continued = 0, parts = 0, attention = 0, in_shared = 0;
  std::map<std::string, int> plans;  // by their first words
};

void count_plans(const std::string& text, Seen& seen) {
  std::istringstream lines(text);
  for (std::string line, target, form; std::getline(lines, line);) {
    std::istringstream words(line);
    if (words >> target >> form; target == "plan" || target == "gpu_plan") {
      ++seen.plans[target + " " + form];
      seen.in_shared += line.find(" in_shared ") != std::string::npos;
    }
  }
}

std::string bytes_of(const Executable& program) {
  ProgramImage image;
  image.parts[Part::training] = program;
  return to_bytes(image);
}

// The program of a schedule with the code of its functions, which is all that plans decide.
std::string cpu_code_of(const FormedGraph& formed, const KernelList& list, const BufferPlan& plan) {
  const LoweredProgram made = make_program(formed.bound, list, plan);
  return bytes_of(made.program) + llvm_text_of(made);
}

std::string cuda_code_of(const FormedGraph& formed, const KernelList& list, const BufferPlan& plan) {
  const CudaExecutable made = make_cuda_program(formed.bound, list, plan, {});
  std::string code = bytes_of(made.program);
  for (const std::string& text : made.texts) code += text;
  const auto add = [&](const CudaGrid& grid) {
    for (const auto& sizes : {grid.blocks, grid.threads})
      for (const uint32_t size : sizes) code += std::to_string(size) + " ";
    code += std::to_string(grid.shared_bytes) + "\n";
  };
  for (const CudaCall& call : made.calls) add(call.grid);
  for (const CudaGrid& grid : made.grids) add(grid);
  return code;
}

void check(const Graph& graph, const ScheduleTarget& target, Seen& seen) {
  const FormedGraph formed = form_graph(graph, {}, RunMode::training, Scheduling::all, target);
  const std::string text = print_schedule(formed.list, &formed.plan, gpu_plan_text());
  const std::vector<std::shared_ptr<const ScanSchedule>> scans = scans_of(formed.list);
  auto read = read_schedule(text, formed.bound.graph.size(), scans, gpu_plan_text());
  const auto* wrong = std::get_if<LineError>(&read);
  REQUIRE_MESSAGE(!wrong, (wrong ? std::to_string(wrong->line) + ": " + wrong->message : ""));
  ScheduleText& made = std::get<ScheduleText>(read);
  CHECK(print_schedule(made.list, &made.plan, gpu_plan_text()) == text);
  CHECK(verify_plan(formed.bound, made.list, made.plan, formed.roots) == "");
  const auto code_of = target.sizes.gpu ? cuda_code_of : cpu_code_of;
  CHECK(code_of(formed, made.list, made.plan) == code_of(formed, formed.list, formed.plan));
  count_plans(text, seen);
  seen.scans += static_cast<int>(scans.size());
  const std::vector<uint32_t> runs_with = made.list.runs_with;
  if (!runs_with.empty()) {
    join_launches(formed.bound, made.plan, made.list);
    CHECK(made.list.runs_with == runs_with);
  }
  ++seen.schedules;
  for (const auto& product : formed.list.library.products) seen.products += product.has_value();
  seen.fused += static_cast<int>(formed.list.library.fused.size());
  for (size_t i = 0; i < formed.list.library.attention.size(); ++i)
    CHECK(std::memcmp(&made.list.library.attention[i].problem, &formed.list.library.attention[i].problem, sizeof(einc_attention_problem)) ==
          0);
  seen.attention += static_cast<int>(made.list.library.attention.size());
  seen.continued += static_cast<int>(formed.list.continued.size());
  for (uint32_t k = 0; k < runs_with.size(); ++k) seen.together += runs_with[k] != k;
  for (const GraphKernel& k : formed.list.kernels) seen.parts += static_cast<int>(k.parts.size());
}

std::string error_of(const std::string& text) {
  const auto read = read_schedule(text, 8);
  const auto* error = std::get_if<LineError>(&read);
  return error ? std::to_string(error->line) + ": " + error->message : "";
}

}  // namespace

TEST_CASE("schedules read back") {
  Seen seen;
  const auto add = [&](const std::string& file, Policy precision) {
    CAPTURE(file);
    PipelineOptions options;
    options.precision = precision;
    const Compilation c = compile_file(std::string(EINC_SOURCE_DIR "/") + file, options);
    REQUIRE(c.graph.has_value());
    check(*c.graph, processor_target(), seen);
    const AskLibrary any = [](const einc_attention_problem& p) { return AttentionAnswer{{}, 16 * p.queries}; };
    check(*c.graph, {gpu_passes(), cuda_target({}, {1 << 16}), any}, seen);
  };
  for (const char* name : {"shakespeare_char", "mlp", "cnn", "lora"}) add(std::string("examples/") + name + ".ein", Policy::inherit);
  for (const char* name : {"shakespeare_char", "gpt2"}) add(std::string("examples/") + name + ".ein", Policy::bf16);
  for (const std::string& name : zoo_models()) add("tests/zoo/models/" + name + ".ein", Policy::inherit);
  for (const Recurrence& recurrence : kRecurrences) {
    CAPTURE(recurrence.name);
    const Compilation c = compile_text("scan.ein", written(recurrence, recurrence.scan, true), {});
    REQUIRE(c.graph.has_value());
    check(*c.graph, processor_target(), seen);
    check(*c.graph, {gpu_passes(), cuda_target({}, {1 << 16}), {}}, seen);
  }
  CHECK(seen.schedules > 40);
  CHECK(seen.scans > 40);
  CHECK(seen.products > 150);
  CHECK(seen.fused > 30);
  CHECK(seen.together > 50);
  CHECK(seen.continued > 0);
  CHECK(seen.parts > 20);
  CHECK(seen.attention > 20);
  CHECK(seen.in_shared > 0);
  for (const char* form : {"loops", "tiles", "attention"}) CHECK_MESSAGE(seen.plans[std::string("plan ") + form] > 20, form);
  for (const char* form : {"attention_tiles", "attention_blocks", "product_tiles", "contraction_tiles", "scatter", "threads"})
    CHECK_MESSAGE(seen.plans[std::string("gpu_plan ") + form] > 0, form);
}

TEST_CASE("schedules that are none") {
  const std::string kernel =
      "kernel 0 always\nmembers %2\nstored %2\nbuffers %1 %2\n"
      "axes a0=4\nouter a0\nb0: read f32[4]\nb1: write f32[4]\nv0: f32 = b0[a0]\nstage \n  b1[a0] = v0\n";
  CHECK(error_of(kernel) == "");
  CHECK(error_of("schedule 1\n" + kernel) == "");
  CHECK(error_of(kernel + "held %2 until 0\nplace %2 arena at 64 of 16\n") == "");
  const std::string matrix = "%1 f32 from 0 leading 2 batch 0 ";
  const std::pair<std::string, const char*> wrong[] = {
      {kernel + "kernel 2 always\n", "12: 2 is not from 1 to 1"},
      {kernel + "held %9 until 0\n", "12: node %9 does not exist here"},
      {kernel + "held %2 until 1\n", "12: 1 is not from 0 to 0"},
      {kernel + "place %2 somewhere at 0 of 4\n", "12: 'somewhere' is no place"},
      {kernel + "members %2\n", "12: 'members' stands before a kernel's loops"},
      {kernel + "product 0 of 1 x 2 x 2 x 2 sums bf16 left " + matrix + "\n", "12: 'bf16' is no format of sums"},
      {"schedule 2\n" + kernel, "1: a schedule of format 1 is read"},
      {kernel + "schedule 1\n", "12: the format's number stands first"},
      {kernel + "plugin forward bf16 scale 0x1p+0 of 1 x 1 per 1 x 4 x 4 x 8 x 8 workspace 0 instead of 3 with\n",
       "12: 3 is not from 0 to 0"},
      {kernel + "plugin sideways bf16\n", "12: expected 'forward' at column 8"},
      {"kernel 0 always\nmembers %2\nbuffers\nscan of 2 iterations\n", "4: the graph of this scan's body is not given"},
      {kernel + "body\nend\n", "12: a body stands behind the lines of a scan"},
      {"members %2\n", "1: 'members' stands before a kernel's loops"},
      {"kernel 0 later\n", "1: 'later' is no time of a launch"},
      {"plan loops\n", "1: a plan of no kernel"},
      {kernel + "plan loops divided a1 domain 4\n", "12: 1 is not from 0 to 0"},
      {kernel + "plan loops lanes 4 domain 4\n", "12: a plan of other loops than the kernel's"},
      {kernel + "plan loops stage_vectors a0 divided a0 domain 4\n", "12: stage 0 has no loop a0"},
      {kernel + "plan loops vector a0 lanes 4 domain 1\n", "12: loops without lanes or parts"},
      {kernel + "plan loops divided a0 domain 4 colour 3\n", "12: something is left at the end of the line"},
      {kernel + "plan tiles lanes 4\n", "12: tiles of a kernel that is no contraction"},
      {kernel + "plan circles\n", "12: expected 'loops' at column 6"},
      {kernel + "plan loops divided a0 domain 4\nb1[a0] = v0\n", "13: 'b1' is no line of a schedule"},
      {kernel + "gpu_plan threads outer a0\n", "12: plans of a GPU are not read here"},
  };
  for (const auto& [text, message] : wrong) CHECK_MESSAGE(error_of(text) == message, text);
  // Faults in a kernel's loops are told by the line of the whole.
  std::string fault = kernel;
  fault.replace(fault.find("v0: f32"), 7, "v0: f33");
  CHECK(error_of(fault) == "9: 'f33' is no dtype");
  std::string few = kernel;
  few.replace(few.find("buffers %1 %2"), 13, "buffers %1");
  CHECK(error_of(few).ends_with("1 values for 2 buffers"));
}

// A plan that no planner makes: vectors of four along a row of eight, in two parts.
TEST_CASE("a schedule with its plans as text") {
  const std::string text =
      "schedule 1\nkernel 0 always\nmembers %2\nstored %2\nbuffers %1 %2\n"
      "axes a0=2 a1=8\nouter a0 a1\nb0: read f32[16]\nb1: write f32[16]\nv0: f32 = b0[8*a0 + a1]\nstage \n  b1[8*a0 + a1] = v0\n"
      "plan loops vector a1 stage_vectors - lanes 4 divided a0 chunk 4 domain 4 fetched b0\n";
  const auto read = read_schedule(text, 8);
  REQUIRE(std::holds_alternative<ScheduleText>(read));
  const KernelList& list = std::get<ScheduleText>(read).list;
  const ProcessorPlan& plan = *list.kernels[0].loops;
  CHECK(plan.plan.lanes == 4);
  CHECK(plan.domain() == 4);
  CHECK(plan.plan.fetched == std::vector{true, false});
  std::string written = text;
  written.erase(written.find("stage_vectors - "), 16);  // no stage has loops of its own
  CHECK(print_schedule(list, nullptr) == written);
}

TEST_CASE("plans of a GPU that are none") {
  const std::string kernel =
      "kernel 0 always\nmembers %2\nstored %2\nbuffers %1 %2\n"
      "axes a0=4\nouter a0\nb0: read f32[4]\nb1: write f32[4]\nv0: f32 = b0[a0]\nstage \n  b1[a0] = v0\n";
  const std::pair<const char*, const char*> wrong[] = {
      {"threads", "12: a plan of other points than the kernel's"},
      {"threads by crowd", "12: 'crowd' is no word of a plan"},
      {"threads outer a0 stages ( a0 ) blocks 4", "12: stage 0 has other loops"},
      {"threads team 64 block_threads 32 outer a0 stages ( )", "12: a team of no threads"},
      {"threads by warp team 24 block_threads 48 outer a0 stages ( ) points 4 blocks 2", "12: a warp with lanes that have no row"},
      {"threads by warp team 4 block_threads 32 outer a0 stages ( ) points 4", "12: a warp with lanes that have no row"},
      {"threads by warp team 32 block_threads 32 outer a0 stages ( ) pack_axis a0 pack 4 row_steps 1 ahead v0 blocks 4",
       "12: v0 is no load at a row's start"},
      {"threads by block team 32 block_threads 32 outer a0 stages ( ) pack_axis a0 pack 4 in_shared v0 blocks 4",
       "12: v0 is no load of a row's packs"},
      {"product_tiles", "12: tiles of a kernel that is no contraction"},
      {"attention_tiles", "12: tiles of a kernel that is no attention"},
      {"circles", "12: 'circles' is no plan of a GPU"},
  };
  for (const auto& [line, message] : wrong) {
    const auto read = read_schedule(kernel + "gpu_plan " + line + "\n", 8, {}, gpu_plan_text());
    const auto* error = std::get_if<LineError>(&read);
    REQUIRE(error);
    CHECK(std::to_string(error->line) + ": " + error->message == message);
  }
  const auto read = read_schedule(kernel + "gpu_plan threads block_threads 32 outer a0 stages ( ) points 4\n", 8, {}, gpu_plan_text());
  REQUIRE(std::holds_alternative<ScheduleText>(read));
  CHECK(std::get<ScheduleText>(read).list.kernels[0].plan->threads() == 32);
}

TEST_CASE("schedules of scans that are none") {
  const Compilation c = compile_text("scan.ein", written(kRecurrences[0], kRecurrences[0].scan, true), {});
  REQUIRE(c.graph.has_value());
  const FormedGraph formed = form_graph(*c.graph, {}, RunMode::training, Scheduling::all, processor_target());
  const std::string text = print_schedule(formed.list, &formed.plan);
  const auto scans = scans_of(formed.list);
  // `word`, where it first stands in a body, replaced.
  const auto error = [&](const std::string& word, const std::string& by) {
    std::string changed = text;
    const size_t at = text.find(word, text.find("\nbody\n"));
    REQUIRE(at != std::string::npos);
    changed.replace(at, word.size(), by);
    const auto read = read_schedule(changed, formed.bound.graph.size(), scans);
    const auto* wrong = std::get_if<LineError>(&read);
    REQUIRE(wrong);
    CHECK((wrong->line == 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n') || by.empty()));
    return wrong->message;
  };
  CHECK(error("kernel 0 always", "kernel 0 later") == "'later' is no time of a launch");
  CHECK(error("members %", "members %9999").ends_with("does not exist here"));
  CHECK(error("\nend\n", "") == "the body of a scan has no end");
  std::string stateless = text;
  const size_t state = text.find("\nstate ");
  stateless.erase(state, text.find('\n', state + 1) - state);
  const auto read = read_schedule(stateless, formed.bound.graph.size(), scans);
  REQUIRE(std::holds_alternative<LineError>(read));
  CHECK(std::get<LineError>(read).message.find(" states of ") != std::string::npos);
}
