#include "tests/support/agree.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "compiler/precision/assign.h"
#include "compiler/simplify/expand.h"
#include "compiler/simplify/simplify.h"
#include "tests/fuzz/random_program.h"

namespace einc {
namespace {

double distance(double x, double y) {
  if (x == y || (std::isnan(x) && std::isnan(y))) return 0;
  return std::isfinite(x) && std::isfinite(y) ? std::fabs(x - y) : HUGE_VAL;
}

std::string difference(const std::string& name, const Tensor& found, const Tensor& exact, const Tensor& stored, double tolerance) {
  if (found.shape != exact.shape) return fmt::format("value: the shape of {}", name);
  double scale = 1, noise = 0;
  for (int64_t i = 0; i < exact.count(); ++i) {
    if (std::isfinite(exact.real_at(i))) scale = std::max(scale, std::fabs(exact.real_at(i)));
    noise = std::max(noise, distance(exact.real_at(i), stored.real_at(i)));
  }
  if (!is_floating(found.dtype) && noise == 0) tolerance = 0;
  const double allowed = tolerance * scale + 16 * noise;
  for (int64_t i = 0; i < exact.count(); ++i)
    if (!(distance(found.real_at(i), exact.real_at(i)) <= allowed))
      return fmt::format("value: {}{} is {}, not {}", name, describe_position(exact.shape, i), found.real_at(i), exact.real_at(i));
  return "";
}

bool has_f32(const Graph& graph) {
  for (const Node& node : graph.nodes)
    if (is_floating(node.type.dtype) && node.type.dtype != DType::f64 && node.op != Op::constant) return true;
  return false;
}

}  // namespace

std::optional<Wanted> interpret_text(const std::string& text, uint64_t seed, std::string& problem) {
  SourceMap sources;
  Diagnostics diagnostics;
  const auto file = sources.add("random.ein", text, diagnostics);
  std::optional<Graph> graph;
  if (file) graph = elaborate(sources, *file, {}, diagnostics);
  if (!graph) {
    problem = "program: " + render_text(sources, diagnostics);
    return {};
  }
  try {
    Wanted wanted;
    wanted.inputs = program_inputs(*graph, {}, seed);
    wanted.params = initial_params(*graph, {}, seed, Arithmetic::stored);
    wanted.states = initial_states(*graph, {}, seed, Arithmetic::stored);
    wanted.options.seed = seed;
    wanted.options.step = seed % 3;
    wanted.graph = assign_precision(simplify(expand(*graph, Roots::training), Roots::training), Policy::f32);
    InterpretOptions rounded = wanted.options;
    rounded.arithmetic = Arithmetic::casts;
    wanted.exact = interpret(*graph, {}, wanted.inputs, wanted.params, wanted.states, rounded);
    rounded.arithmetic = Arithmetic::stored;
    wanted.stored = interpret(wanted.graph, {}, wanted.inputs, wanted.params, wanted.states, rounded);
    wanted.tolerance = has_f32(wanted.graph) ? 2e-5 : 1e-10;
    return wanted;
  } catch (const std::exception& e) {
    problem = fmt::format("oracle: {}", e.what());
    return {};
  }
}

std::string difference(const Wanted& wanted, const CpuRun& found) {
  const InterpretResult &exact = wanted.exact, &stored = wanted.stored;
  if (found.outputs.size() != exact.outputs.size()) return "value: the number of outputs";
  for (size_t i = 0; i < exact.outputs.size(); ++i)
    if (std::string d = difference(exact.outputs[i].first.str(), found.outputs[i].second, exact.outputs[i].second, stored.outputs[i].second,
                                   wanted.tolerance);
        !d.empty())
      return d;
  if (exact.loss && found.loss)
    if (std::string d = difference("loss", *found.loss, *exact.loss, *stored.loss, wanted.tolerance); !d.empty()) return d;
  const auto each = [&](const char* what, const TensorMap& is, const TensorMap& of_exact, const TensorMap& of_stored) -> std::string {
    for (const auto& [name, rounded] : of_stored) {  // states that nothing reads are dropped from the final graph
      if (!is.contains(name)) return fmt::format("value: no {} {}", what, name.str());
      if (std::string d = difference(fmt::format("{} {}", what, name.str()), is.at(name), of_exact.at(name), rounded, wanted.tolerance);
          !d.empty())
        return d;
    }
    return "";
  };
  if (std::string d = each("gradient", found.gradients, exact.gradients, stored.gradients); !d.empty()) return d;
  if (std::string d = each("param", found.params, exact.params, stored.params); !d.empty()) return d;
  return each("state", found.states, exact.states, stored.states);
}

std::string disagreement(const std::string& text, uint64_t seed) {
  std::string problem;
  const std::optional<Wanted> wanted = interpret_text(text, seed, problem);
  if (!wanted) return problem;
  // The values of such small programs are too small to be made again, unless asked for.
  Fusion recomputing;
  recomputing.limits = {0, 0};
  for (const Fusion& fusion : {Fusion::on, Fusion::off, recomputing}) {
    if (fusion == Fusion::off && seed % 8 != 0) continue;
    if (fusion == recomputing && seed % 4 != 1) continue;
    const char* ways = fusion == Fusion::on ? "" : fusion == Fusion::off ? " (without fusion)" : " (recomputing all it may)";
    try {
      const CpuRun found = run_cpu(wanted->graph, {}, wanted->inputs, wanted->params, wanted->states, wanted->options,
                                   1 + static_cast<int>(seed % 2), fusion);
      if (std::string d = difference(*wanted, found); !d.empty()) return d + ways;
    } catch (const std::exception& e) {
      return fmt::format("run: {}{}", e.what(), ways);
    }
  }
  return "";
}

void check_regress_programs(const Disagrees& disagrees) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(EINC_SOURCE_DIR "/tests/regress"))
    if (entry.path().extension() == ".ein") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  REQUIRE(!files.empty());
  for (const auto& file : files) {
    CAPTURE(file.filename().string());
    std::ifstream in(file);
    std::stringstream text;
    text << in.rdbuf();
    for (const uint64_t seed : {8, 9}) CHECK(disagrees(text.str(), seed) == "");
  }
}

void check_random_programs(uint64_t first, uint64_t count, const Disagrees& disagrees) {
  if (const char* asked = std::getenv("EINC_RANDOM_PROGRAMS")) {
    const std::string range = asked;
    const size_t colon = range.find(':');
    REQUIRE(colon != std::string::npos);
    first = std::stoull(range.substr(0, colon));
    count = std::stoull(range.substr(colon + 1));
  }
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const RandomProgram program = random_program(seed);
    const std::string problem = disagrees(program.text(), seed);
    if (problem.empty()) continue;
    const auto kind = [](const std::string& p) { return p.substr(0, p.find(':')); };
    const RandomProgram small = shrink(program, [&](const std::string& text) { return kind(disagrees(text, seed)) == kind(problem); });
    MESSAGE(fmt::format("seed {}: {}\nThe smallest program found that still fails:\n{}", seed, problem, small.text()));
    CHECK(problem == "");
  }
}

}  // namespace einc
