// SPDX-License-Identifier: Apache-2.0
// The interpreter's values of a program, and what may be apart from them: a multiple of what rounding changes, which the interpreter
// itself shows by rounding every node, and, where that is not enough, by changing what the program is given in the last digits.
#include "tests/support/agree.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <random>

#include "compiler/autodiff/gradient_check.h"
#include "compiler/codegen/llvm/math.h"
#include "compiler/pipeline/pipeline.h"
#include "tests/fuzz/random_program.h"
#include "tests/support/shared_code.h"

namespace einc {
namespace {

constexpr double kNoiseFactor = 16;

double distance(double x, double y) {
  if (x == y || (std::isnan(x) && std::isnan(y))) return 0;
  return std::isfinite(x) && std::isfinite(y) ? std::fabs(x - y) : HUGE_VAL;
}

std::string difference(const std::string& name, const Tensor& found, const Tensor& exact, const std::vector<const Tensor*>& near,
                       double tolerance) {
  if (found.shape != exact.shape) return fmt::format("value: the shape of {}", name);
  double scale = 1, noise = 0;
  for (int64_t i = 0; i < exact.count(); ++i) {
    if (std::isfinite(exact.real_at(i))) scale = std::max(scale, std::fabs(exact.real_at(i)));
    for (const Tensor* other : near) noise = std::max(noise, distance(exact.real_at(i), other->real_at(i)));
  }
  if (!is_floating(found.dtype) && noise == 0) tolerance = 0;
  const double allowed = tolerance * scale + kNoiseFactor * noise;
  for (int64_t i = 0; i < exact.count(); ++i)
    if (!(distance(found.real_at(i), exact.real_at(i)) <= allowed))
      return fmt::format("value: {}{} is {}, not {}", name, describe_position(exact.shape, i), found.real_at(i), exact.real_at(i));
  return "";
}

// What sums and products of a format's numbers are apart by, relative to the largest.
double agreement_of(DType dtype) {
  if (dtype == DType::f64) return 1e-10;
  if (dtype == DType::f32 || dtype == DType::real) return 2e-5;
  return 4 * info(dtype).epsilon;
}

// Of the narrowest format that values are rounded to at places of the compiler's choice: those of casts are fixed.
double agreement_of(const Graph& elaborated) {
  double tolerance = agreement_of(DType::f64);
  const auto include = [&](DType dtype) { tolerance = std::max(tolerance, agreement_of(dtype)); };
  for (const Node& node : elaborated.nodes)
    if (is_floating(node.type.dtype) && node.op != Op::constant && node.op != Op::cast) include(node.type.dtype);
  if (elaborated.policy == Policy::bf16) include(DType::bf16);
  if (elaborated.policy == Policy::f16) include(DType::f16);
  if (elaborated.policy == Policy::fp8) include(DType::f8e4m3);
  return tolerance;
}

void change_last_digits(TensorMap& values, double relative, std::mt19937_64& random) {
  for (auto& [name, tensor] : values)
    for (double& x : tensor.reals) x *= 1 + relative * (static_cast<double>(random() >> 11) * 0x1p-52 - 1);
}

// What a function in f32 may be off by, however small its value: units of the last place of a number (codegen/llvm/math.h).
double least_accuracy(MathFn fn) {
  constexpr double kPlaces = 0x1p-23;
  switch (fn) {
#define EINC_ACCURACY(name, in_float, floor_in_float, in_double, floor_in_double) \
  case MathFn::name:                                                              \
    return (in_float) * (floor_in_float)*kPlaces;
    EINC_MATH_FNS(EINC_ACCURACY)
#undef EINC_ACCURACY
  }
  return 0;
}

// gelu in f32 is 0 where its tail is below its accuracy. What its sign decides is open there, and no digit of a source changes that.
// A sum over positions in 16 bits is rounded whenever whoever adds it up stores it: two that cancel here need not there.
void change_within_accuracy(const Node& node, Tensor& value, std::mt19937_64& random) {
  const auto part = [&random] { return static_cast<double>(random() >> 11) * 0x1p-52 - 1; };
  if (node.op == Op::scatter_add && (value.dtype == DType::bf16 || value.dtype == DType::f16))
    for (double& y : value.reals) y *= 1 + info(value.dtype).epsilon * part();
  if (node.op != Op::map || node.as<MapAttr>().fn != MapFn::gelu || value.dtype == DType::f64) return;
  const double most = least_accuracy(MathFn::gelu);
  for (double& y : value.reals) y += most * part();
}

InterpretResult changed_run(const Wanted& wanted, std::mt19937_64& random) {
  const double relative = wanted.tolerance / 50;
  TensorMap inputs = wanted.inputs, params = wanted.params, states = wanted.states;
  for (TensorMap* values : {&inputs, &params, &states}) change_last_digits(*values, relative, random);
  InterpretOptions options = wanted.options;
  options.computed = [&random](const Node& node, Tensor& value) { change_within_accuracy(node, value, random); };
  return interpret(wanted.elaborated, {}, inputs, params, states, options);
}

const Tensor* output_named(const InterpretResult& result, Name name) {
  for (const auto& [key, value] : result.outputs)
    if (key == name) return &value;
  return nullptr;
}

}  // namespace

std::optional<Wanted> interpret_text(const std::string& text, uint64_t seed, std::string& problem, RunMode mode) {
  PipelineOptions options;
  Compilation compiled;
  try {
    compiled = compile_text("random.ein", text, options);
    if (!compiled.graph) {
      problem = "program: " + render_text(compiled.sources, compiled.diagnostics);
      return {};
    }
    Wanted wanted;
    wanted.elaborated = std::move(*compiled.elaborated);
    wanted.graph = std::move(*compiled.graph);
    wanted.inputs = program_inputs(wanted.elaborated, {}, seed);
    wanted.params = initial_params(wanted.elaborated, {}, seed, Arithmetic::stored);
    wanted.states = initial_states(wanted.elaborated, {}, seed, Arithmetic::stored);
    wanted.states.merge(initial_states(wanted.graph, {}, seed, Arithmetic::stored));  // the policy's own: scales of fp8
    wanted.options.seed = seed;
    wanted.options.step = seed % 3;
    wanted.options.mode = mode;
    wanted.options.arithmetic = Arithmetic::casts;
    wanted.exact = interpret(wanted.elaborated, {}, wanted.inputs, wanted.params, wanted.states, wanted.options);
    InterpretOptions rounded = wanted.options;
    rounded.arithmetic = Arithmetic::stored;
    wanted.near.push_back(interpret(wanted.graph, {}, wanted.inputs, wanted.params, wanted.states, rounded));
    wanted.tolerance = agreement_of(wanted.elaborated);
    return wanted;
  } catch (const std::exception& e) {
    problem = fmt::format("oracle: {}", e.what());
    return {};
  }
}

std::string difference(const Wanted& wanted, const CpuRun& found) {
  const InterpretResult& exact = wanted.exact;
  std::vector<const Tensor*> near;
  if (found.outputs.size() != exact.outputs.size()) return "value: the number of outputs";
  for (size_t i = 0; i < exact.outputs.size(); ++i) {
    near.clear();
    for (const InterpretResult& other : wanted.near) near.push_back(output_named(other, exact.outputs[i].first));
    if (std::string d = difference(exact.outputs[i].first.str(), found.outputs[i].second, exact.outputs[i].second, near, wanted.tolerance);
        !d.empty())
      return d;
  }
  if (exact.loss && found.loss) {
    near.clear();
    for (const InterpretResult& other : wanted.near) near.push_back(&*other.loss);
    if (std::string d = difference("loss", *found.loss, *exact.loss, near, wanted.tolerance); !d.empty()) return d;
  }
  const auto each = [&](const char* what, const TensorMap& is, TensorMap InterpretResult::*of) -> std::string {
    for (const auto& [name, stored] : wanted.near.front().*of) {  // states that nothing reads are dropped from the final graph
      if (!(exact.*of).contains(name)) continue;                  // and the policy's own are not in the elaborated one
      if (!is.contains(name)) return fmt::format("value: no {} {}", what, name.str());
      near.clear();
      for (const InterpretResult& other : wanted.near) near.push_back(&(other.*of).at(name));
      if (std::string d = difference(fmt::format("{} {}", what, name.str()), is.at(name), (exact.*of).at(name), near, wanted.tolerance);
          !d.empty())
        return d;
    }
    return "";
  };
  if (wanted.options.mode == RunMode::training) {
    if (std::string d = each("gradient", found.gradients, &InterpretResult::gradients); !d.empty()) return d;
    if (std::string d = each("param", found.params, &InterpretResult::params); !d.empty()) return d;
  }
  return each("state", found.states, &InterpretResult::states);
}

std::string certain_difference(Wanted& wanted, const CpuRun& found) {
  constexpr size_t kRuns = 5;
  std::mt19937_64 random(wanted.options.seed);
  std::string d = difference(wanted, found);
  while (!d.empty() && wanted.near.size() < kRuns) {
    wanted.near.push_back(changed_run(wanted, random));
    d = difference(wanted, found);
  }
  return d;
}

std::string gradient_difference(const Wanted& wanted, uint64_t seed) {
  constexpr double kAllowed = 1e-4;
  GradientCheckOptions options;
  options.seed = seed;
  options.elements = 2;
  for (const GradientError& e : check_gradients(wanted.elaborated, {}, wanted.inputs, wanted.params, wanted.states, options))
    if (e.compared > 0 && !(e.error <= kAllowed))
      return fmt::format("gradient: of the loss by {}, element {}, is {}, by finite differences {}", e.path.str(), e.position, e.symbolic,
                         e.numeric);
  return "";
}

std::span<const Way> all_ways() {
  static const std::vector<Way> ways = [] {
    // Values of such small programs are too small to be made again, unless asked for.
    Scheduling recomputing, keeping, apart, plain = Scheduling::unfused;
    recomputing.recompute = {0, 0};
    keeping.without = {"recompute"};
    apart.without = {"in_place"};
    plain.without.emplace_back("in_place");
    return std::vector<Way>{{"as is", RunMode::training, Scheduling::all},
                            {"without fusion", RunMode::training, Scheduling::unfused},
                            {"recomputing all it may", RunMode::training, recomputing},
                            {"recomputing nothing", RunMode::training, keeping},
                            {"nothing in place", RunMode::training, apart},
                            {"without fusion, nothing in place", RunMode::training, plain},
                            {"inference", RunMode::inference, Scheduling::all}};
  }();
  return ways;
}

std::vector<Way> ways_of(uint64_t seed) {
  const std::span<const Way> ways = all_ways();
  return {ways[0], ways[1 + seed % (ways.size() - 1)]};
}

Runs cpu_runs(const Graph& graph, std::span<const Way> ways, int threads) {
  std::vector<std::shared_ptr<LoweredGraph>> lowered;
  std::vector<const LoweredProgram*> programs;
  for (const Way& way : ways) {
    CpuOptions options;
    options.mode = way.mode;
    options.scheduling = way.scheduling;
    lowered.push_back(lower_graph(graph, {}, options));
    programs.push_back(&lowered.back()->lowered);
  }
  const std::vector<std::vector<KernelFunction*>> functions = shared_code(programs);
  Runs runs;
  for (size_t i = 0; i < ways.size(); ++i)
    runs.push_back([program = lowered[i], functions = functions[i], threads](const Wanted& w) {
      return run_program(program->lowered.program, functions, w.inputs, w.params, w.states, w.options, threads);
    });
  return runs;
}

std::string disagreement(const std::string& text, uint64_t seed, std::span<const Way> ways, const Compile& compile) {
  std::string problem, at;
  std::optional<Wanted> training = interpret_text(text, seed, problem), inference;
  if (!training) return problem;
  if (is_differentiable(seed) && !training->graph.gradients.empty())
    if (std::string d = gradient_difference(*training, seed); !d.empty()) return d;
  if (std::ranges::any_of(ways, [](const Way& way) { return way.mode == RunMode::inference; })) {
    inference = interpret_text(text, seed, problem, RunMode::inference);
    if (!inference) return problem;
  }
  try {
    const Runs runs = compile(training->graph, ways);
    for (size_t i = 0; i < ways.size(); ++i) {
      at = fmt::format(" ({})", ways[i].name);
      Wanted& wanted = ways[i].mode == RunMode::inference ? *inference : *training;
      if (std::string d = certain_difference(wanted, runs[i](wanted)); !d.empty()) return d + at;
    }
  } catch (const std::exception& e) {
    return fmt::format("run: {}{}", e.what(), at);
  }
  return "";
}

std::string disagreement(const std::string& text, uint64_t seed) { return disagreement(text, seed, ways_of(seed)); }

std::string disagreement(const std::string& text, uint64_t seed, std::span<const Way> ways) {
  const int threads = 1 + static_cast<int>(seed / 7 % 2);
  return disagreement(text, seed, ways, [&](const Graph& graph, std::span<const Way> asked) { return cpu_runs(graph, asked, threads); });
}

}  // namespace einc
