// SPDX-License-Identifier: Apache-2.0
// A plug-in's attention, on the emulated GPU, against the interpreter: which attention it is offered, where results and gradients go, and
// when it is taken.
#include <doctest/doctest.h>
#include <unistd.h>

#include <fstream>

#include "emulator.h"
#include "runtime/base/failure.h"
#include "runtime/cuda/cold_timer.h"
#include "tests/support/attention_programs.h"
#include "tests/support/run_cuda.h"

using namespace einc;
using namespace einc::attention_programs;

namespace {

// The table goes away; the plug-in is faster than our own kernels.
const std::string& use_plugin() {
  static const std::string table = [] {
    std::string file = (std::filesystem::temp_directory_path() / ("einc_attention_table_" + std::to_string(getpid()))).string();
    std::filesystem::remove(file);
    setenv("EINC_GEMM_TABLE", file.c_str(), 1);
    setenv("EINC_ATTENTION_PLUGIN", (std::filesystem::path(emulated_gpu_folder()) / "libemulated_attention.so").c_str(), 1);
    use_test_gpu();
    REQUIRE(cuda::AttentionLibrary::get() != nullptr);
    emulator::set_epilogue_milliseconds(0.5f);
    return file;
  }();
  return table;
}

struct Compiled {
  Graph graph;
  std::unique_ptr<CudaProgramText> text;
  const std::vector<CudaAttention>& attention() const { return text->executable.attention; }
};

Compiled compiled(const std::string& text, const Bindings& dims, RunMode mode = RunMode::training) {
  use_plugin();
  const Roots roots = mode == RunMode::training ? Roots::training : Roots::inference;
  Compiled made{finished(compile_text(text, dims), roots), {}};
  CudaOptions options;
  options.mode = mode;
  options.library.products = INT64_MAX;
  options.attention = cuda::AttentionLibrary::get();
  made.text = compile_for_cuda(made.graph, dims, options);
  return made;
}

// What of the program's attention a plug-in may do, and how often it did while results and gradients were as they should be.
struct Found {
  std::string problems;
  unsigned long long runs = 0;
};

Found check(const std::string& text, const Bindings& dims, double tolerance, RunMode mode = RunMode::training) {
  CAPTURE(text);
  const Compiled made = compiled(text, dims, mode);
  Found found;
  for (const CudaAttention& call : made.attention()) found.problems += cuda::to_string(call.problem) + "; ";
  const TensorMap inputs = inputs_of(made.graph, dims), params = initial_params(made.graph, dims, 1),
                  states = initial_states(made.graph, dims, 1);
  InterpretOptions options;
  options.mode = mode;
  const InterpretResult wanted = interpret(made.graph, dims, inputs, params, states, options);
  const auto before = emulator::calls("einc_attention_run");
  const CpuRun run = run_cuda(made.graph, dims, inputs, params, states, options);
  found.runs = emulator::calls("einc_attention_run") - before;
  for (size_t o = 0; o < run.outputs.size(); ++o) CHECK(difference(run.outputs[o].second, wanted.outputs[o].second, tolerance) == "");
  for (const auto& [name, value] : run.gradients) {
    CAPTURE(name.str());
    CHECK(difference(value, wanted.gradients.at(name), tolerance) == "");
  }
  return found;
}

std::string both(const std::string& what) { return "forward " + what + "; backward " + what + "; "; }

}  // namespace

TEST_CASE("a plug-in's attention, forward and backward, of grouped heads and odd lengths") {
  const Found found = check(step(kPlain, kCausal, "bf16"), sizes(33, 33, 16, 32), 0.03, RunMode::inference);
  CHECK(found.problems == both("bf16 2 x 4:2 heads, 33 queries, 33 keys, 16:32 wide, causal"));
  CHECK(found.runs > 2);
  CHECK(check(step(kLayouts[1], kCausal, "f16"), sizes(70, 70, 64, 64), 0.004, RunMode::inference).problems ==
        both("f16 2 x 4:2 heads, 70 queries, 70 keys, 64:64 wide, causal"));
  CHECK(check(step(kLayouts[1], "s", "bf16"), sizes(20, 50, 32, 16), 0.03, RunMode::inference).problems ==
        both("bf16 2 x 4:2 heads, 20 queries, 50 keys, 32:16 wide"));
}

TEST_CASE("a training step whose params are queries, keys and values: the forward alone, its sums read by our own backward") {
  const Found found = check(program(kPlain, kCausal, "bf16"), sizes(33, 33, 16, 32), 0.03);
  CHECK(found.problems == "forward bf16 2 x 4:2 heads, 33 queries, 33 keys, 16:32 wide, causal; ");
  CHECK(found.runs > 1);
}

TEST_CASE("a mask, its other forms, and a scale") {
  const std::string causal = both("bf16 2 x 4:2 heads, 24 queries, 24 keys, 16:16 wide, causal");
  for (const char* mask : {"where(iota(q) >= iota(k), s, -inf)", "where(iota(k) > iota(q), -inf, s)", "where(iota(q) < iota(k), -inf, s)"})
    CHECK(check(step(kPlain, mask, "bf16"), sizes(24, 24, 16, 16), 0.03, RunMode::inference).problems == causal);
  const std::string all = both("bf16 2 x 4:2 heads, 24 queries, 24 keys, 16:16 wide");
  for (const char* scaled : {"s * 2", "s / 3"})
    CHECK(check(step(kPlain, scaled, "bf16"), sizes(24, 24, 16, 16), 0.03, RunMode::inference).problems == all);
}

TEST_CASE("what a plug-in's attention is not") {
  for (const char* mask : {"where(iota(k) < iota(q) + 1, s, -inf)", "where(iota(k) <= iota(q), s, -1e9)", "tanh(s)", "s * -1",
                           "where(iota(k) <= iota(q) and iota(q) - iota(k) < 9, s, -inf)"})
    CHECK(compiled(step(kPlain, mask, "bf16"), sizes(24, 24, 16, 16), RunMode::inference).attention().empty());
  for (const Layout& layout : {kLayouts[2], kLayouts[3]})  // a head's elements do not lie side by side
    CHECK(compiled(step(layout, "s", "bf16"), sizes(24, 24, 16, 16), RunMode::inference).attention().empty());
  CHECK(compiled(step(kPlain, "s", "f32"), sizes(24, 24, 16, 16), RunMode::inference).attention().empty());
  CHECK(compiled(step(kPlain, "s", "bf16"), sizes(24, 24, 12, 12), RunMode::inference).attention().empty());
}

TEST_CASE("a gradient of its own is the plug-in's where it is softmax's") {
  struct Gradient {
    const char *delta = "sum(r * o, c)", *scale = "rsqrt(d)", *of_weights = "r", *of_keys = "ds";
    const char *keys = "b g k d", *queries = "b g h q d", *outputs = "b g h q c";  // by which axes the products read them
  };
  const auto problems = [](const Gradient& g) {
    const std::string text = fmt::format(R"(
dim b = 2, g = b, h = 2, q = 24, k = 24, d = 16, c = 16
input query: bf16[b g h q d]
input keys: bf16[b g k d]
input values: bf16[b g k c]
input dy: bf16[b g h q c]
fn attend(x, y, z) {{
  s = einsum(x, y, "b g h q d, b g k d -> b g h q k") * rsqrt(d)
  p = softmax(where(iota(k) <= iota(q), s, -inf), k)
  o = einsum(p, z, "b g h q k, b g k c -> b g h q c")
  return o
}} gradient(r) {{
  delta = {}
  dp = einsum(r, z, "b g h q c, b g k c -> b g h q k")
  ds = where(iota(k) <= iota(q), p * (dp - delta) * {}, 0)
  dx = einsum({}, y, "b g h q k, {} -> b g h q d")
  dz = einsum(p, {}, "b g h q k, {} -> b g k c")
  return dx, einsum(ds, x, "b g h q k, {} -> b g k d"), dz
}}
y = attend(query, keys, values)
output most = max(y)
total = sum(y * dy)
output dq: bf16[b g h q d] = cast(grad(total, query), bf16)
output dk: bf16[b g k d] = cast(grad(total, keys), bf16)
output dv: bf16[b g k c] = cast(grad(total, values), bf16)
)",
                                         g.delta, g.scale, g.of_keys, g.keys, g.of_weights, g.outputs, g.queries);
    return check(text, {}, 0.03, RunMode::inference).problems;
  };
  const std::string forward = "forward bf16 2 x 4:2 heads, 24 queries, 24 keys, 16:16 wide, causal; ";
  CHECK(problems({}) == both("bf16 2 x 4:2 heads, 24 queries, 24 keys, 16:16 wide, causal"));
  CHECK(problems({.delta = "2 * sum(r * o, c)"}) == forward);
  CHECK(problems({.delta = "sum(r * r, c)"}) == forward);
  CHECK(problems({.delta = "max(r * o, c)"}) == forward);
  CHECK(problems({.delta = "sum(r * o, c, h)"}) == forward);
  CHECK(problems({.delta = "sum(r * flip(o, c), c)"}) == forward);
  CHECK(problems({.scale = "0.5"}) == forward);
  CHECK(problems({.of_weights = "o"}) == forward);
  CHECK(problems({.of_keys = "p"}) == forward);
  CHECK(problems({.keys = "g b k d"}) == forward);
  CHECK(problems({.queries = "g b h q d"}) == forward);
  CHECK(problems({.outputs = "g b h q c"}) == forward);
}

TEST_CASE("where others read a row's sums the forward is our own") {
  const std::string text = R"(
input query: bf16[b=2 q=24 d=16]
input keys: bf16[b k=24 d]
input values: bf16[b k d]
s = einsum(query, keys, "b q d, b k d -> b q k")
m = max(s, k)
w = exp(s - m)
total = sum(w, k)
output y: bf16[b q d] = cast(einsum(w / total, values, "b q k, b k d -> b q d"), bf16)
output sums = total
)";
  const Compiled made = compiled(text, {}, RunMode::inference);
  CHECK(made.attention().empty());
}

TEST_CASE("a plug-in refuses: the reason stands in the plan, our own kernels do it") {
  emulator::set_widest_head(64);
  const std::string text = step(kPlain, kCausal, "bf16");
  const Bindings dims = sizes(20, 20, 80, 80);
  const Compiled made = compiled(text, dims, RunMode::inference);
  CHECK(made.attention().empty());
  const auto& refusals = made.text->executable.attention_refusals;
  REQUIRE(refusals.size() == 2);
  CHECK(refusals.begin()->second == "emulated attention 1 refuses it: its heads are wider than 64");
  const Found found = check(text, dims, 0.03, RunMode::inference);
  CHECK(found.runs == 0);
  emulator::set_widest_head(128);
}

TEST_CASE("the plug-in's memory is planned: what it reads stays, what it works in is counted") {
  const std::string text = step(kPlain, kCausal, "bf16");
  const Bindings dims = sizes(40, 40, 32, 32);
  const Compiled made = compiled(text, dims, RunMode::inference);
  REQUIRE(made.attention().size() == 2);
  const CudaExecutable& executable = made.text->executable;
  CHECK(executable.workspace_bytes == 2 * 2 * 40 * 64 * 8);
  const CudaAttention& backward = executable.attention[1];
  const auto range = [&](uint32_t b) {
    const ExecutableBuffer& buffer = executable.program.buffers[b];
    return std::pair(buffer.offset, buffer.offset + buffer.bytes);
  };
  const auto kept = range(backward.o.buffer);
  for (size_t l = executable.attention[0].at() + 1; l <= backward.at(); ++l)
    for (const uint32_t b : executable.program.launches[l].buffers) {
      const auto [from, to] = range(b);
      CHECK((b == backward.o.buffer || is_source(executable.program.buffers[b].role) || to <= kept.first || kept.second <= from));
    }
  CudaOptions options;
  options.mode = RunMode::inference;
  const auto without = compile_for_cuda(made.graph, dims, options);
  CHECK(without->executable.attention.empty());
  CHECK(without->executable.workspace_bytes == 0);
  const auto used = emulator::used_memory();
  const CudaKernels kernels(executable, test_cubins(), 2);
  const CudaExecutor executor(executable, kernels);
  CHECK(emulator::used_memory() - used >= static_cast<size_t>(executable.program.memory_bytes + executable.workspace_bytes));
}

TEST_CASE("the faster one is taken, also in the next process; the table tells which") {
  const auto runs = [](int64_t rows) { return check(step(kPlain, "s", "bf16"), sizes(rows, 16, 16, 16), 0.03, RunMode::inference).runs; };
  emulator::set_epilogue_milliseconds(2);
  CHECK(runs(17) == 2 * cuda::ColdTimer::kRuns);  // both directions are timed
  CHECK(runs(17) == 0);
  const uint64_t before = cuda::AlgorithmTable::get().used_hash();
  emulator::set_epilogue_milliseconds(0.5f);
  CHECK(runs(17) == 0);
  CHECK(cuda::AlgorithmTable::get().used_hash() == before);
  CHECK(runs(18) > 2 * cuda::ColdTimer::kRuns);
  CHECK(cuda::AlgorithmTable::get().used_hash() != before);
  std::ifstream in(use_plugin());
  const std::string table{std::istreambuf_iterator<char>(in), {}};
  CHECK(table.find("emulated GPU, emulated attention 1: backward bf16 2 x 4:2 heads, 17 queries, 16 keys, 16:16 wide, as ") !=
        std::string::npos);
  CHECK(table.find(" = own\n") != std::string::npos);
  CHECK(table.find(" = library\n") != std::string::npos);
  cuda::AlgorithmTable again(use_plugin());
  const std::string key = table.substr(table.find("emulated GPU, emulated"));
  CHECK(again.way_of(key.substr(0, key.find(" = ")), []() -> cuda::AlgorithmTable::Way { throw std::logic_error("the table has it"); }) !=
        cuda::AlgorithmTable::Way::together);
}

TEST_CASE("to be measured, the slower one is taken too, and the table does not learn of it") {
  emulator::set_epilogue_milliseconds(2);
  setenv("EINC_ATTENTION_ALWAYS", "1", 1);
  CHECK(check(step(kPlain, "s", "bf16"), sizes(19, 16, 16, 16), 0.03, RunMode::inference).runs > 0);
  unsetenv("EINC_ATTENTION_ALWAYS");
  CHECK(check(step(kPlain, "s", "bf16"), sizes(19, 16, 16, 16), 0.03, RunMode::inference).runs == 2 * cuda::ColdTimer::kRuns);
  emulator::set_epilogue_milliseconds(0.5f);
}

TEST_CASE("a trace gives the time to the last launch, a search for a fault runs our own kernels") {
  const Bindings dims = sizes(24, 24, 16, 16);
  const Compiled made = compiled(step(kPlain, kCausal, "bf16"), dims, RunMode::inference);
  const CudaKernels kernels(made.text->executable, test_cubins(), 2);
  CudaExecutor executor(made.text->executable, kernels);
  for (const auto& [name, value] : inputs_of(made.graph, dims)) {
    const auto buffer = static_cast<uint32_t>(executor.find(BufferRole::input, name.str()));
    executor.set(buffer, to_host(convert(value, made.text->executable.program.buffers[buffer].dtype)));
  }
  executor.plan_attention();
  REQUIRE(executor.library_attention() == std::vector<size_t>{0, 1});
  const std::vector<LaunchSpan> spans = executor.run_traced(1, 1);
  const CudaAttention& backward = made.attention()[1];
  CHECK(spans[backward.parts[0]].end == spans[backward.parts[0]].begin);
  const auto runs = emulator::calls("einc_attention_run");
  executor.run_while(
      1, 1, [](size_t) { return true; }, CudaExecutor::Products::apart);
  CHECK(emulator::calls("einc_attention_run") == runs);
}

TEST_CASE("what is no plug-in") {
  use_plugin();
  CHECK_THROWS_WITH(cuda::AttentionLibrary("nowhere.so"), "no attention plug-in in 'nowhere.so': there is no such file");
  const std::string text = "tests/CMakeLists.txt";
  CHECK_THROWS_WITH_AS(cuda::AttentionLibrary{text}, doctest::Contains("invalid ELF header"), RuntimeFailure);
}
