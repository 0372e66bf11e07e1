// SPDX-License-Identifier: Apache-2.0
// Tensors that a model is given follow a formula which torch_models/tensors.py states; the files hold what comes out alone.
#include "tests/support/zoo.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "dsl/render.h"
#include "tests/support/tensor_difference.h"

namespace einc {
namespace {

using nlohmann::json;

const std::filesystem::path kFolder = EINC_SOURCE_DIR "/tests/zoo";
constexpr double kRate = 0.1;  // of the sgd that every model ends with
constexpr const char* kGradient = "gradient of ";

// 32 bits for each element of the tensor of a name.
class Bits {
 public:
  explicit Bits(const std::string& name) {
    for (const char c : name) start_ = (start_ ^ static_cast<uint8_t>(c)) * 16777619u;
  }
  uint32_t operator()(size_t element) const {
    uint32_t x = start_ + static_cast<uint32_t>(element) * 0x9E3779B9u;
    x = (x ^ (x >> 16)) * 0x7FEB352Du;
    x = (x ^ (x >> 15)) * 0x846CA68Bu;
    return x ^ (x >> 16);
  }

 private:
  uint32_t start_ = 2166136261u;
};

Tensor given(const json& described) {
  const Bits bits(described["name"]);
  const auto shape = described["shape"].get<std::vector<int64_t>>();
  const bool whole = described["kind"] == "ids";
  Tensor tensor = Tensor::zeros(whole ? DType::i64 : DType::f64, shape);
  for (size_t i = 0; i < static_cast<size_t>(tensor.count()); ++i)
    if (whole) {
      tensor.ints[i] = bits(i) % described["bound"].get<uint32_t>() + described["first"].get<int64_t>();
    } else {
      const double u = (bits(i) >> 16) / 32768.0 - 1;
      tensor.reals[i] = static_cast<float>(described["scale"].get<double>() * u + described["offset"].get<double>());
    }
  return tensor;
}

TensorMap wanted(const json& values) {
  TensorMap tensors;
  for (const auto& [name, numbers] : values.items()) {
    const auto reals = numbers.get<std::vector<double>>();
    tensors[Name(name)] = Tensor::of_reals({static_cast<int64_t>(reals.size())}, reals);
  }
  return tensors;
}

// "" or the worst of the tensors of one kind. What the backend leaves out is wrong; what it adds is not looked at.
std::string worst(const char* kind, const TensorMap& found, const TensorMap& wanted, double relative, double absolute = 0) {
  double scale = 0, most = 1;
  std::string problem;
  for (const auto& [name, tensor] : wanted) scale = std::max(scale, largest(tensor));
  for (const auto& [name, tensor] : wanted) {
    const auto it = found.find(name);
    if (it == found.end()) return fmt::format("no {}{}", kind, name.str());
    if (it->second.count() != tensor.count()) return fmt::format("{}{} has {} elements", kind, name.str(), it->second.count());
    const double allowed = relative * std::max(largest(tensor), scale / 100) + absolute;
    for (int64_t i = 0; i < tensor.count(); ++i) {
      const double off = std::fabs(it->second.real_at(i) - tensor.real_at(i)) / allowed;
      if (off <= most) continue;
      problem = fmt::format("{}{}{} is {}, not {}: {:.3g} times what is allowed", kind, name.str(), describe_position(it->second.shape, i),
                            it->second.real_at(i), tensor.real_at(i), off);
      if (std::isnan(off)) return problem;
      most = off;
    }
  }
  return problem;
}

// After params - rate * gradients: the sum's own rounding to f32, too.
std::string worst_param(const ZooModel& model, const TensorMap& found, double relative) {
  TensorMap changes;
  for (const auto& [path, before] : model.params) {
    const auto it = found.find(path);
    if (it == found.end()) return fmt::format("no param {}", path.str());
    Tensor change = it->second;
    for (size_t i = 0; i < change.reals.size(); ++i) change.reals[i] = (before.reals[i] - change.reals[i]) / kRate;
    changes[path] = std::move(change);
  }
  constexpr double kHalfUlp = 0x1p-24;
  double rounding = 0;
  for (const auto& [path, before] : model.params) rounding = std::max(rounding, kHalfUlp * 2 * largest(before) / kRate);
  return worst("change of param ", changes, model.gradients, relative, rounding);
}

}  // namespace

std::vector<std::string> zoo_models() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder / "models")) names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

ZooModel load_zoo_model(const std::string& name, Policy precision) {
  PipelineOptions options;
  options.precision = precision;
  Compilation c = compile_file(kFolder / "models" / (name + ".ein"), options);
  REQUIRE_MESSAGE(c.graph.has_value(), render_text(c.sources, c.diagnostics));
  std::ifstream in(kFolder / "values" / (name + ".json"));
  REQUIRE_MESSAGE(in.good(), name, " has no values: run make_values.py");
  const json file = json::parse(in);
  ZooModel model{name, std::move(*c.elaborated), {}, {}, {}, wanted(file["outputs"]), wanted(file["gradients"]), wanted(file["states"])};
  model.states = initial_states(model.elaborated, {}, 0);  // the optimizer's own
  for (const json& described : file["tensors"]) {
    const std::string kind = described["kind"];
    TensorMap& tensors = kind == "param" ? model.params : kind == "state" ? model.states : model.inputs;
    tensors[Name(described["name"].get<std::string>())] = given(described);
  }
  return model;
}

Graph zoo_graph(const ZooModel& model, ZooRun run, Policy precision) {
  PipelineOptions options;
  options.precision = precision;
  options.roots = run == ZooRun::everything ? Roots::training : run == ZooRun::step ? Roots::step : Roots::inference;
  Graph graph = model.elaborated;
  if (run == ZooRun::everything)
    for (const Update& gradient : graph.gradients)
      graph.outputs.push_back({kGradient + graph[gradient.target].as<ParamAttr>().path.str(), gradient.value});
  return run_passes(std::move(graph), options);
}

InterpretOptions zoo_options(ZooRun run) {
  InterpretOptions options;
  options.mode = run == ZooRun::inference ? RunMode::inference : RunMode::training;
  return options;
}

std::string zoo_problem(const ZooModel& model, ZooRun run, const ZooBound& bound, const std::function<CpuRun()>& found) try {
  const CpuRun is = found();
  TensorMap outputs, gradients = is.gradients, wanted_outputs = model.outputs;
  for (const auto& [name, value] : is.outputs)
    if (name.str().starts_with(kGradient))
      gradients[name.str().substr(std::string_view(kGradient).size())] = value;
    else
      outputs[name] = value;
  if (is.loss) outputs["loss"] = *is.loss;
  if (run == ZooRun::step) wanted_outputs = {{"loss", model.outputs.at("loss")}};
  if (run == ZooRun::inference) wanted_outputs.erase("loss");
  std::string problem = worst("output ", outputs, wanted_outputs, bound.values);
  if (problem.empty() && run == ZooRun::everything) problem = worst("gradient of ", gradients, model.gradients, bound.gradients);
  if (problem.empty() && run != ZooRun::inference) problem = worst_param(model, is.params, bound.gradients);
  if (problem.empty()) problem = worst("state ", is.states, model.new_states, bound.values);
  return problem.empty() ? "" : model.name + ": " + problem;
} catch (const std::exception& e) {
  return model.name + ": " + e.what();
}

}  // namespace einc
