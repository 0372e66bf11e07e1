// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/weights.h"

#include <fmt/format.h>

#include <unordered_set>

#include "runtime/base/failure.h"
#include "runtime/base/first_names.h"
#include "runtime/base/float_format.h"
#include "runtime/base/printable.h"
#include "runtime/data/array_file.h"

namespace einc {
namespace {

bool fits(const HostArray& array, const TensorInfo& tensor) {
  const bool converts = is_floating(array.dtype) && is_floating(tensor.dtype);
  return array.shape == tensor.shape && (array.dtype == tensor.dtype || converts);
}

// Names the first few: a file of another model differs in many.
class Misfits {
 public:
  void add(const HostArray& array, const TensorInfo& tensor) {
    if (++count_ <= kShown)
      text_ += fmt::format("{}'{}' is {}, but the program's is {}", text_.empty() ? "" : "; ", printable(tensor.name),
                           type_text(array.dtype, array.shape), type_text(tensor.dtype, tensor.shape));
  }
  void refuse(const std::string& path) const {
    if (count_ == 0) return;
    const std::string more = count_ > kShown ? fmt::format("; and {} more do not fit", count_ - kShown) : "";
    throw RuntimeFailure(FailureKind::data, fmt::format("{}: {}{}", printable(path), text_, more));
  }

 private:
  static constexpr size_t kShown = 5;
  size_t count_ = 0;
  std::string text_;
};

// Of the tensor's dtype: a floating number becomes the nearest one of another format.
HostArray fitted(HostArray array, const TensorInfo& tensor, const std::string& path) {
  if (array.dtype == tensor.dtype) return array;
  const std::vector<double> numbers = TensorView(array.dtype, array.shape, array.bytes.data()).to_doubles();
  HostArray result{tensor.dtype, tensor.shape, std::vector<std::byte>(static_cast<size_t>(tensor.bytes()))};
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (!can_hold(tensor.dtype, numbers[i]))
      throw RuntimeFailure(FailureKind::data, fmt::format("{}: element {} of '{}' is {}, which {} cannot hold", printable(path), i,
                                                          printable(tensor.name), numbers[i], to_string(tensor.dtype)));
    store_number(tensor.dtype, numbers[i], result.bytes.data() + i * static_cast<size_t>(bytes_of(tensor.dtype)));
  }
  return result;
}

}  // namespace

LoadedWeights load_weights(const std::string& path, const NameMap& names, const ProgramInfo& info, SessionRep& session) {
  const ArrayFile file(path);
  LoadedWeights result;
  std::vector<std::pair<Source, HostArray>> values;
  std::vector<std::string> ours;
  std::unordered_set<std::string> used;
  Misfits misfits;
  for (const SourceKind kind : {SourceKind::param, SourceKind::state})
    for (uint32_t i = 0; i < sources_of(info, kind).size(); ++i) {
      const TensorInfo& tensor = sources_of(info, kind)[i];
      const std::string theirs = names.theirs(tensor.name);
      ours.push_back(tensor.name);
      if (file.contains(theirs)) {
        used.insert(theirs);
        HostArray array = names.read(file, tensor.name, tensor.shape);
        if (fits(array, tensor))
          values.emplace_back(Source{kind, i}, fitted(std::move(array), tensor, path));
        else
          misfits.add(array, tensor);
      } else if (kind == SourceKind::param) {
        result.missing.push_back(tensor.name);
      }
    }
  misfits.refuse(path);
  names.check_used(ours, {&file});
  if (values.empty())
    throw RuntimeFailure(FailureKind::data, fmt::format("{}: none of its tensors ({}) is a param or state of the program, which has {}",
                                                        printable(path), first_names(file.names()), first_names(ours)));
  for (const std::string& name : file.names())
    if (used.count(name) == 0) result.unused.push_back(name);
  for (const auto& [source, array] : values) session.set(source, array.bytes.data());
  return result;
}

void save_weights(const std::string& path, const ProgramInfo& info, const SessionRep& session, const std::vector<std::string>& states) {
  const std::unordered_set<std::string> wanted(states.begin(), states.end());
  std::vector<SafetensorsItem> items;
  for (const SourceKind kind : {SourceKind::param, SourceKind::state})
    for (uint32_t i = 0; i < sources_of(info, kind).size(); ++i) {
      const TensorInfo& tensor = sources_of(info, kind)[i];
      if (kind == SourceKind::state && !wanted.contains(tensor.name)) continue;
      const auto* at = static_cast<const std::byte*>(session.memory({kind, i}));
      items.push_back({tensor.name, tensor.dtype, tensor.shape, {at, static_cast<size_t>(tensor.bytes())}});
    }
  write_safetensors(path, std::move(items));
}

}  // namespace einc
