// SPDX-License-Identifier: Apache-2.0
// Training on the processor in every precision: from the same start, on the same data, the loss goes where that of f32 goes.
// The stated tolerance (dsl/README.md): of what f32 takes off the loss, bf16 and f16 take off all but 1.5 %, fp8 all but 3 %, over
// three seeds. In f32 another seed changes it by 1.4 % (perceptron) and 1.0 % (GPT-2); one seed alone says nothing of a precision.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <numeric>

#include "compiler/ir/text.h"
#include "compiler/pipeline/cpu_program.h"
#include "compiler/pipeline/pipeline.h"
#include "runtime/base/float_format.h"
#include "runtime/executor/executor.h"
#include "tests/support/run_graph.h"

using namespace einc;

namespace {

using Fill = std::function<double(const std::string& input, int step, int64_t element)>;

struct Training {
  std::string file;
  Bindings dims;
  int steps;
  Fill fill;
};

// The examples' schedules warm up for longer than a test can wait.
std::string with_constant_rate(const std::string& file) {
  std::ifstream in(EINC_SOURCE_DIR "/" + file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const size_t at = text.find("minimize loss");
  REQUIRE(at != std::string::npos);
  return text.substr(0, at) + "minimize loss using adamw(lr = 2e-3)\n";
}

Graph compiled(const Training& training, Policy policy) {
  PipelineOptions pipeline;
  pipeline.dims = training.dims;
  pipeline.precision = policy;
  Compilation c = compile_text(training.file, with_constant_rate(training.file), pipeline);
  REQUIRE(c.graph);
  return std::move(*c.graph);
}

std::vector<double> losses_of(const Training& training, Policy policy, uint64_t seed) {
  const Graph graph = compiled(training, policy);
  CpuOptions options;
  options.cache.clear();
  const CpuProgram cpu(graph, training.dims, options);
  const Executable& program = cpu.program();
  Executor executor(program, cpu.functions(), 1);
  executor.initialize(seed);
  std::vector<double> losses;
  for (int step = 0; step < training.steps; ++step) {
    for (uint32_t b = 0; b < program.buffers.size(); ++b) {
      const ExecutableBuffer& buffer = program.buffers[b];
      if (buffer.role != BufferRole::input) continue;
      const int64_t width = bytes_of(buffer.dtype);
      for (int64_t i = 0; i < buffer.bytes / width; ++i)
        store_number(buffer.dtype, training.fill(buffer.name, step, i), executor.bytes(b).data() + i * width);
    }
    executor.run(1, static_cast<uint64_t>(step));
    float loss = 0;
    const HostArray value = executor.get(static_cast<uint32_t>(program.loss));
    REQUIRE(value.dtype == DType::f32);
    std::memcpy(&loss, value.bytes.data(), sizeof loss);
    losses.push_back(loss);
  }
  return losses;
}

// By the interpreter, every result rounded to its dtype.
std::vector<double> interpreted_losses_of(const Training& training, Policy policy) {
  const Graph graph = compiled(training, policy);
  InterpretOptions options;
  options.arithmetic = Arithmetic::stored;
  options.seed = 1;
  TensorMap params = initial_params(graph, training.dims, 1, options.arithmetic),
            states = initial_states(graph, training.dims, 1, options.arithmetic);
  std::vector<double> losses;
  for (int step = 0; step < training.steps; ++step) {
    TensorMap inputs = some_inputs(graph, training.dims);
    for (auto& [name, tensor] : inputs) {
      for (size_t i = 0; i < tensor.reals.size(); ++i) tensor.reals[i] = training.fill(name.str(), step, static_cast<int64_t>(i));
      for (size_t i = 0; i < tensor.ints.size(); ++i)
        tensor.ints[i] = static_cast<int64_t>(training.fill(name.str(), step, static_cast<int64_t>(i)));
    }
    options.step = static_cast<uint64_t>(step);
    InterpretResult run = interpret(graph, training.dims, inputs, params, states, options);
    losses.push_back(run.loss->reals[0]);
    for (auto& [path, value] : run.params) params[path] = std::move(value);
    for (auto& [path, value] : run.states) states[path] = std::move(value);
  }
  return losses;
}

// The mean of the last tenth.
double end_of(const std::vector<double>& losses) {
  const auto tenth = static_cast<std::ptrdiff_t>(losses.size() / 10);
  return std::accumulate(losses.end() - tenth, losses.end(), 0.0) / static_cast<double>(tenth);
}

void check_precisions(const Training& training, double least_gain) {
  CAPTURE(training.file);
  constexpr uint64_t kSeeds = 3;
  std::vector<std::vector<double>> exact;
  double gain = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    exact.push_back(losses_of(training, Policy::f32, seed));
    gain += (exact.back().front() - end_of(exact.back())) / kSeeds;
  }
  CHECK(gain > least_gain);
  for (const auto& [policy, tolerance] : {std::pair(Policy::bf16, 0.015), {Policy::f16, 0.015}, {Policy::fp8, 0.03}}) {
    CAPTURE(to_string(policy));
    double short_of = 0;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed)
      short_of += (end_of(losses_of(training, policy, seed)) - end_of(exact[seed - 1])) / (gain * kSeeds);
    CHECK(std::isfinite(short_of));
    CHECK(short_of < tolerance);
  }
}

// Row r counts on from r + step in strides of 1 + r % 3, modulo 23.
Training counting(int64_t batch, int64_t seq, int64_t head, int steps) {
  const Fill fill = [=](const std::string& input, int step, int64_t i) {
    const int64_t row = i / seq, column = i % seq + (input == "targets" ? 1 : 0);
    return static_cast<double>((row * 5 + step * 11 + column * (1 + row % 3)) % 23);
  };
  return {"examples/gpt2.ein", {{"batch", batch}, {"seq", seq}, {"vocab", 23}, {"layers", 2}, {"heads", 2}, {"head", head}}, steps, fill};
}

}  // namespace

TEST_CASE("a perceptron learns which of ten regions a point lies in") {
  const int64_t features = 16, batch = 32;
  const auto point = [=](int step, int64_t row, int64_t k) {
    return std::sin(static_cast<double>((static_cast<int64_t>(step) * batch + row) * 7919 % 1009) * (1.0 + 0.37 * static_cast<double>(k)));
  };
  const Fill fill = [=](const std::string& input, int step, int64_t i) {
    if (input == "x") return point(step, i / features, i % features);
    double sum = 0;
    for (int64_t k = 0; k < features; ++k) sum += point(step, i, k) * std::cos(static_cast<double>(k));
    return std::clamp(std::floor(sum * 1.5 + 5), 0.0, 9.0);
  };
  check_precisions({"examples/mlp.ein", {{"batch", batch}, {"features", features}, {"hidden", 64}}, 400, fill}, 0.5);
}

TEST_CASE("GPT-2 learns to count") { check_precisions(counting(8, 16, 16, 200), 0.5); }

TEST_CASE("the first steps of each precision are the interpreter's") {
  const Training training = counting(4, 5, 4, 6);
  for (const Policy policy : {Policy::f32, Policy::bf16, Policy::f16, Policy::fp8}) {
    CAPTURE(to_string(policy));
    const std::vector<double> losses = losses_of(training, policy, 1), expected = interpreted_losses_of(training, policy);
    // Sums in another order may round an activation to its other neighbour: of some hundred, a few by 2^-8 (bf16) or 2^-3 (fp8) of
    // themselves.
    const double tolerance = policy == Policy::f32 ? 1e-5 : policy == Policy::fp8 ? 5e-3 : 1e-3;
    for (size_t i = 0; i < losses.size(); ++i) CHECK(losses[i] == doctest::Approx(expected[i]).epsilon(tolerance));
  }
}
