#include "runtime/executor/weights.h"

#include <fmt/format.h>

#include <unordered_map>

#include "runtime/base/failure.h"
#include "runtime/base/float_format.h"
#include "runtime/base/printable.h"
#include "runtime/data/array_file.h"

namespace einc {
namespace {

std::string text(DType dtype, const std::vector<int64_t>& shape) { return fmt::format("{}[{}]", to_string(dtype), fmt::join(shape, " ")); }

// Of the tensor's dtype: a floating number becomes the nearest one of another format.
HostArray fitted(HostArray array, const TensorInfo& tensor, const std::string& path) {
  const bool converts = is_floating(array.dtype) && is_floating(tensor.dtype);
  if (array.shape != tensor.shape || (array.dtype != tensor.dtype && !converts))
    throw RuntimeFailure(FailureKind::data, fmt::format("{}: '{}' is {}, but the program's is {}", printable(path), printable(tensor.name),
                                                        text(array.dtype, array.shape), text(tensor.dtype, tensor.shape)));
  if (array.dtype == tensor.dtype) return array;
  const std::vector<double> numbers = TensorView(array.dtype, array.shape, array.bytes.data()).to_doubles();
  HostArray result{tensor.dtype, tensor.shape, std::vector<std::byte>(static_cast<size_t>(tensor.bytes()))};
  for (size_t i = 0; i < numbers.size(); ++i)
    store_number(tensor.dtype, numbers[i], result.bytes.data() + i * static_cast<size_t>(bytes_of(tensor.dtype)));
  return result;
}

}  // namespace

LoadedWeights load_weights(const std::string& path, const ProgramInfo& info, SessionRep& session) {
  const ArrayFile file(path);
  std::unordered_map<std::string, Source> sources;
  for (const SourceKind kind : {SourceKind::param, SourceKind::state})
    for (uint32_t i = 0; i < sources_of(info, kind).size(); ++i) sources.emplace(sources_of(info, kind)[i].name, Source{kind, i});

  LoadedWeights result;
  std::vector<std::pair<Source, HostArray>> values;
  for (const std::string& name : file.names()) {
    const auto found = sources.find(name);
    if (found == sources.end()) {
      result.unused.push_back(name);
      continue;
    }
    values.emplace_back(found->second, fitted(file.read(name), sources_of(info, found->second.kind)[found->second.index], path));
  }
  if (values.empty())
    throw RuntimeFailure(FailureKind::data, fmt::format("{}: none of its tensors is a param or state of the program", printable(path)));
  for (const TensorInfo& param : info.params)
    if (!file.contains(param.name)) result.missing.push_back(param.name);
  for (const auto& [source, array] : values) session.set(source, array.bytes.data());
  return result;
}

void save_weights(const std::string& path, const ProgramInfo& info, const SessionRep& session, Saved what) {
  std::vector<SafetensorsItem> items;
  const auto add = [&](SourceKind kind) {
    for (uint32_t i = 0; i < sources_of(info, kind).size(); ++i) {
      const TensorInfo& tensor = sources_of(info, kind)[i];
      const auto* at = static_cast<const std::byte*>(session.memory({kind, i}));
      items.push_back({tensor.name, tensor.dtype, tensor.shape, {at, static_cast<size_t>(tensor.bytes())}});
    }
  };
  add(SourceKind::param);
  if (what == Saved::params_and_states) add(SourceKind::state);
  write_safetensors(path, std::move(items));
}

}  // namespace einc
