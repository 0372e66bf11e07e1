// SPDX-License-Identifier: Apache-2.0
// Random programs with a loop whose iterations stages share, as processors carry them out, beside the interpreter on the whole batch.
// What stages have to hand over or to have alike is drawn: values of the first stage and weights that several read, two values that go up,
// weights of one use, terms of the loss that no example is in.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <random>

#include "runtime/base/failure.h"
#include "tests/agree/mesh/mesh_run.h"
#include "tests/support/sample.h"
#include "tests/support/thread_transport.h"

using namespace einc;

namespace {

class StagedProgram {
 public:
  explicit StagedProgram(uint64_t seed) : random_(seed) {
    const int layers = up_to(5) + 1;
    const int stages = up_to(layers), microbatches = up_to(4);
    const bool data = one_in(3);
    std::string text =
        fmt::format("dim batch = {}, width = {}, layers = {}\n", microbatches * (data ? 2 : 1) * up_to(2), up_to(4) + 1, layers);
    text += fmt::format("mesh stage = {}{}\nshard layers over stage (microbatches = {})\n", stages, data ? ", data = 2" : "", microbatches);
    if (data) {
      text += "shard batch over data\n";
      const char* const spread[] = {"", "shard states over data\n", "shard gradients over data\n", "shard params over data\n"};
      text += spread[up_to(4) - 1];
    }
    text += "input a: f32[batch width]\ninput target: f32[batch width]\n";
    text +=
        "param shared: [inner=width width] ~ normal(std = 0.4)\nparam scale: [] ~ constant(0.7)\nparam offset: [width] ~ normal(std = "
        "0.3)\n";
    text += two_values() ? "fn block(x: [batch width], y: [batch width], first: [batch width], shared: [inner=width width], scale: [], "
                           "offset: [width]) {\n"
                         : "fn block(x: [batch width], first: [batch width], shared: [inner=width width], scale: [], offset: [width]) {\n";
    for (int n = up_to(4); n > 0; --n) text += statement(n);
    text += two_values() ? fmt::format("  return x, {}\n}}\n", one_in(2) ? "y + 0.5 * x" : "tanh(y) * scale + x") : "  return x\n}\n";
    text += "first = a * 0.5 + offset\nx = first\ny = a\n";
    text += two_values() ? "for layer in layers {\n  x, y = block(x, y, first, shared, scale, offset) as h\n}\n"
                         : "for layer in layers {\n  x = block(x, first, shared, scale, offset) as h\n}\n";
    text += fmt::format("result = {}\n", one_in(2) ? "einsum(x, shared, \"batch inner, inner width -> batch width\")" : "x * offset");
    if (two_values() || one_in(4)) text += "result = result + y\n";
    text += "loss = mean((result - target)^2)";
    if (one_in(3)) text += " + 0.01 * mean(shared^2)";
    const char* const optimizers[] = {"sgd(lr = 0.1)", "momentum(lr = 0.1, momentum = 0.5)", "adamw(lr = 0.01, clip_norm = 0.5)",
                                      "sgd(lr = 0.1, clip_norm = 1.0)"};
    text_ = text + fmt::format("\nminimize loss using {}\n", optimizers[up_to(4) - 1]);
  }
  const std::string& text() const { return text_; }

 private:
  int up_to(int most) { return static_cast<int>(random_() % static_cast<uint64_t>(most)) + 1; }
  bool one_in(int n) { return up_to(n) == 1; }
  bool two_values() {
    if (!two_) two_ = one_in(3);
    return *two_;
  }
  // `n`: tells weights of the iteration's own apart.
  std::string statement(int n) {
    const auto own = [n](const char* axes) { return fmt::format("  param own{}: {} ~ normal(std = 0.4)\n", n, axes); };
    switch (up_to(10)) {
      case 1:
        return own("[inner=width width]") +
               fmt::format("  x = x + tanh(einsum(x, own{}, \"batch inner, inner width -> batch width\"))\n", n);
      case 2:
        return "  x = x + tanh(einsum(x, shared, \"batch inner, inner width -> batch width\"))\n";
      case 3:
        return own("[width]") + fmt::format("  x = x * sigmoid(x) + own{}\n", n);
      case 4:
        return "  x = x + scale * first\n";
      case 5:
        return "  x = softmax(x, width) * x + 0.1 * first\n";
      case 6:
        return "  x = (x - mean(x, width)) * rsqrt(mean(x^2, width) + 0.5)\n";
      case 7:
        return "  x = relu(x) - 0.3 * x\n";
      case 8:
        return "  x = x + offset\n";
      case 9:
        return "  x = x * scale\n";
      default:
        return own("[width]") + fmt::format("  x = x * own{} + 0.5 * tanh(x)\n", n);
    }
  }

  std::mt19937_64 random_;
  std::optional<bool> two_;
  std::string text_;
};

// Which order of sends and receipts a stage has none for, it says.
constexpr const char* kRefused = "refused";

// "" or what is wrong.
std::string wrong_staged_run(const std::string& text, uint64_t seed, const CompileForMesh& compile, bool in_processes) {
  std::string problem;
  std::optional<Wanted> given = interpret_text(text, seed, problem, RunMode::training);
  if (!given) return problem;
  given->graph.outputs.clear(), given->elaborated.outputs.clear(), given->exact.outputs.clear();  // a step shows none
  for (InterpretResult& near : given->near) near.outputs.clear();
  std::shared_ptr<const MeshProgram> program;
  try {
    program = compile(given->graph, {}, RunMode::training);
  } catch (const Error& error) {
    const std::string why = error.what();
    return why.find("cannot be run") == std::string::npos ? "program: " + why : kRefused;
  }
  const ProgramData data{{}, given->inputs, given->params, given->states, given->options};
  const auto run_of = [&](const MeshProgram& p) { return run_on_mesh(p, data.inputs, data.params, data.states, data.options, 1); };
  const MeshRun alone = run_of(*program);
  if (alone.fault != NonFinite::nothing) return "";
  for (const auto& [path, gradient] : TensorMap(given->exact.gradients)) {
    if (alone.values.gradients.contains(path)) continue;
    if (program->mesh().sizes.size() == 1) return "gradient: none of " + path.str();
    given->exact.gradients.erase(path);  // of parts alone there is a sum over microbatches
    for (InterpretResult& near : given->near) near.gradients.erase(path);
  }
  if (const std::string wrong = certain_difference(*given, alone.values); !wrong.empty()) return "value: " + wrong;
  if (!in_processes) return "";
  const auto processes = static_cast<int>(program->mesh().devices());
  ThreadTransport transport(processes);
  std::vector<std::string> wrong(static_cast<size_t>(processes));
  transport.run([&](const EincTransport& end) {
    const MeshProgram own(program->info, program->mesh(), program->parts(), &end);
    if (!same_bits(run_of(own).values, alone.values)) wrong[static_cast<size_t>(end.rank)] = fmt::format("bits: of process {}", end.rank);
  });
  for (const std::string& each : wrong)
    if (!each.empty()) return each;
  return "";
}

void check_staged_programs(size_t every, const CompileForMesh& compile, bool in_processes) {
  const Sample sample(every);
  int refused = 0, tried = 0;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    if (!sample.takes(seed)) continue;
    const StagedProgram program(seed);
    INFO(fmt::format("seed {}:\n{}", seed, program.text()));
    const std::string wrong = wrong_staged_run(program.text(), seed, compile, in_processes);
    ++tried, refused += wrong == kRefused ? 1 : 0;
    if (wrong != kRefused) CHECK(wrong == "");
  }
  MESSAGE(fmt::format("{} of {} refused", refused, tried));
  CHECK(refused <= 1 + tried / 20);
}

}  // namespace

TEST_CASE("mesh stages: random programs give what they give whole, in one process and in one for each device") {
  check_staged_programs(60, compile_for_mesh, true);
}

TEST_CASE("mesh on a GPU: random programs in stages") { check_staged_programs(100, compile_for_gpus, false); }
