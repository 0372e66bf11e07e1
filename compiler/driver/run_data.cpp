// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/run_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_set>

#include <einc/error.h>
#include "compiler/driver/saved_states.h"
#include "compiler/ir/interpret.h"
#include "compiler/ir/text.h"
#include "runtime/base/failure.h"
#include "runtime/base/first_names.h"
#include "runtime/base/float_format.h"
#include "runtime/base/printable.h"

namespace einc {
namespace {

std::optional<Name> name_of(const Node& node) {
  if (node.op == Op::input) return node.as<InputAttr>().name;
  if (node.op == Op::param) return node.as<ParamAttr>().path;
  if (node.op == Op::state) return node.as<StateAttr>().path;
  return std::nullopt;
}

std::vector<std::string> names_of(const Graph& graph, Op op) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes)
    if (node.op == op) names.push_back(name_of(node)->str());
  return names;
}

bool read_named(const Graph& graph, Op op, const char* option, const Assignments& paths, std::unordered_map<Name, HostArray>& into) {
  const std::vector<std::string> names = names_of(graph, op);
  for (const auto& [name, path] : paths) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      fmt::print(stderr, "einc: {} {}: the program has no {} of that name; it has {}\n", option, printable(name), to_string(op),
                 first_names(names));
      return false;
    }
    into[Name(name)] = ArrayFile(path).pick(name);
  }
  return true;
}

template <class Stored, class Test>
int64_t count_if(const HostArray& array, Test test) {
  int64_t count = 0;
  for (size_t at = 0; at < array.bytes.size(); at += sizeof(Stored)) {
    Stored x;
    std::memcpy(&x, array.bytes.data() + at, sizeof x);
    count += test(x) ? 1 : 0;
  }
  return count;
}

int64_t count_non_finite(const HostArray& array) {
  const auto wide = [](auto x) { return !std::isfinite(x); };
  const auto coded = [&](auto bits) { return !std::isfinite(decode_float(array.dtype, bits)); };
  switch (array.dtype) {
    case DType::f64:
      return count_if<double>(array, wide);
    case DType::real:
    case DType::f32:
      return count_if<float>(array, wide);
    case DType::bf16:
    case DType::f16:
      return count_if<uint16_t>(array, coded);
    case DType::f8e4m3:
    case DType::f8e5m2:
      return count_if<uint8_t>(array, coded);
    case DType::i64:
    case DType::i32:
    case DType::u16:
    case DType::u8:
    case DType::boolean:
      return 0;
  }
  return 0;
}

bool is_output(const Graph& graph, const std::string& name) {
  return std::any_of(graph.outputs.begin(), graph.outputs.end(), [&](const Output& o) { return o.name.str() == name; });
}

}  // namespace

std::optional<RunData> RunData::open(const Graph& graph, const DataFiles& files) {
  RunData data;
  if (!read_named(graph, Op::input, "--input", files.inputs, data.inputs_) ||
      !read_named(graph, Op::param, "--param", files.params, data.params_))
    return std::nullopt;
  if (!files.names.empty()) data.names_ = NameMap::read(files.names);
  for (const std::string& path : files.weights) data.weights_.push_back(std::make_unique<ArrayFile>(path));
  data.check_weights(graph);
  return data;
}

void RunData::check_weights(const Graph& graph) const {
  if (weights_.empty()) return;
  const std::vector<std::string> params = names_of(graph, Op::param), states = names_of(graph, Op::state);
  std::vector<std::string> ours = params;
  ours.insert(ours.end(), states.begin(), states.end());
  std::vector<const ArrayFile*> files;
  for (const auto& file : weights_) files.push_back(file.get());
  names_.check_used(ours, files);
  std::unordered_set<std::string> known;
  for (const std::string& name : ours) known.insert(names_.theirs(name));
  std::vector<std::string> left_over, missing;
  for (const auto& file : weights_) {
    const std::vector<std::string> names = file->names();
    size_t used = 0;
    for (const std::string& name : names) {
      if (known.count(name) == 0) {
        left_over.push_back(name);
        continue;
      }
      ++used;
      if (const int64_t count = count_non_finite(file->read(name)); count > 0)
        fmt::print(stderr, "einc: warning: {}: '{}' has {} values that are NaN or infinite\n", printable(file->path()), printable(name),
                   count);
    }
    if (names.size() == 1 && names[0].empty())
      throw RuntimeFailure(FailureKind::data,
                           fmt::format("{}: a .npy file holds one array without a name: give it by --param NAME=FILE, or weights with "
                                       "their names, as .safetensors or .npz",
                                       printable(file->path())));
    if (used == 0)
      throw RuntimeFailure(
          FailureKind::data,
          fmt::format("{}: none of its arrays ({}) is a param of the program, which has {}; --rename FILE says which is which",
                      printable(file->path()), first_names(names), first_names(params)));
  }
  for (const std::string& name : params)
    if (params_.count(Name(name)) == 0 &&
        std::none_of(weights_.begin(), weights_.end(), [&](const auto& file) { return file->contains(names_.theirs(name)); }))
      missing.push_back(name);
  if (!left_over.empty())
    fmt::print(stderr, "einc: warning: {} of the weights' arrays belong to no param: {}\n", left_over.size(), first_names(left_over));
  note_missing_states(graph, [&](const std::string& state) {
    return std::ranges::any_of(weights_, [&](const auto& file) { return file->contains(names_.theirs(state)); });
  });
  if (!missing.empty())
    fmt::print(stderr, "einc: warning: {} not among the weights and start{} from {}: {}\n",
               missing.size() == 1 ? "1 param is" : fmt::format("{} params are", missing.size()), missing.size() == 1 ? "s" : "",
               missing.size() == 1 ? "its initialiser" : "their initialisers", first_names(missing));
}

std::optional<HostArray> RunData::given(const Graph& graph, NodeId id, const std::vector<int64_t>& shape) const {
  const Node& node = graph[id];
  const Name name = *name_of(node);
  const std::unordered_map<Name, HostArray>& named = node.op == Op::input ? inputs_ : params_;
  if (const auto found = named.find(name); found != named.end()) return found->second;
  if (node.op == Op::input)
    throw Error(ErrorKind::usage, fmt::format("no value given for input '{}': --input {}=FILE", name.str(), name.str()));
  for (const auto& file : weights_)
    if (file->contains(names_.theirs(name.str()))) return names_.read(*file, name.str(), shape);
  return std::nullopt;
}

std::optional<HostArray> RunData::value_of(const Graph& graph, NodeId id, const std::vector<int64_t>& shape) const {
  std::optional<HostArray> array = given(graph, id, shape);
  if (!array) return std::nullopt;
  const DType wanted = graph.type(id).dtype == DType::real ? DType::f32 : graph.type(id).dtype;
  if (array->dtype == wanted && array->shape == shape) return array;
  const TensorMap one{{*name_of(graph[id]), from_host(*array)}};
  return to_host(given_value(graph, id, shape, one));
}

std::optional<OutputFiles> OutputFiles::open(const Graph& graph, const Assignments& outputs) {
  OutputFiles files;
  for (const auto& [name, path] : outputs) {
    if (!is_output(graph, name) && !(name == "loss" && graph.loss.valid())) {
      std::vector<std::string> names;
      for (const Output& o : graph.outputs) names.push_back(o.name.str());
      fmt::print(stderr, "einc: --output {}: the program has no output of that name; it has {}\n", printable(name), first_names(names));
      return std::nullopt;
    }
    const std::optional<ArrayFormat> format = array_format(path);
    if (!format) {
      fmt::print(stderr, "einc: --output {}={}: the file's name must end in .npy, .npz or .safetensors\n", printable(name),
                 printable(path));
      return std::nullopt;
    }
    if (*format == ArrayFormat::npy && files.files_.count(path) > 0) {
      fmt::print(stderr, "einc: --output {}={}: a .npy file holds one array, and this one is taken; .npz and .safetensors hold several\n",
                 printable(name), printable(path));
      return std::nullopt;
    }
    if (!files.path_of_.emplace(Name(name), path).second) {
      fmt::print(stderr, "einc: --output {} is given twice\n", printable(name));
      return std::nullopt;
    }
    files.files_[path].format = *format;
  }
  return files;
}

bool OutputFiles::wants(Name output) const { return path_of_.count(output) > 0; }

void OutputFiles::take(Name output, HostArray array) {
  File& file = files_.at(path_of_.at(output));
  if (!can_hold(file.format, array.dtype)) {
    fmt::print(stderr, "einc: {} is {}, which {} has no name for: written as f32, its values the same\n", output.str(),
               to_string(array.dtype), file.format == ArrayFormat::npy ? ".npy" : ".npz");
    array = to_host(convert(from_host(array), DType::f32));
  }
  file.arrays.emplace_back(output.str(), std::move(array));
}

void OutputFiles::write() const {
  for (const auto& [path, file] : files_) write_arrays(path, file.format, file.arrays);
}

}  // namespace einc
