// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/array_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "runtime/base/check.h"
#include "runtime/data/npy.h"
#include "runtime/data/npy_header.h"
#include "runtime/data/npz.h"

namespace einc {
namespace {

constexpr std::pair<std::string_view, ArrayFormat> kEndings[] = {
    {".npy", ArrayFormat::npy}, {".npz", ArrayFormat::npz}, {".safetensors", ArrayFormat::safetensors}};

// By what a file of another kind begins with.
std::string how_to_convert(std::string_view start) {
  static constexpr std::pair<std::string_view, const char*> kKinds[] = {
      {"\x1F\x8B", "it is compressed: gunzip it"},
      {"\x89HDF", "it is HDF5: with h5py, numpy.save(\"x.npy\", file[\"name\"][:])"},
      {"PAR1", "it is Parquet: numpy.save(\"x.npy\", pandas.read_parquet(...).to_numpy())"},
      {"GGUF", "it is GGUF, whose tensors are in blocks: take the model's .safetensors"},
      {"\xFF\xD8\xFF", "it is a picture: numpy.save(\"x.npy\", numpy.asarray(PIL.Image.open(...)))"},
      {"\x89PNG", "it is a picture: numpy.save(\"x.npy\", numpy.asarray(PIL.Image.open(...)))"},
      {"\x80", "it is Python's pickle: numpy.save(\"x.npy\", numpy.asarray(pickle.load(...)))"}};
  for (const auto& [magic, cure] : kKinds)
    if (start.starts_with(magic)) return cure;
  if (start.starts_with('{') || start.starts_with('['))
    return "if it is JSON: numpy.save(\"x.npy\", numpy.asarray(json.load(...))); of an index of weights take the files that it names";
  const bool is_text =
      std::all_of(start.begin(), start.end(), [](char c) { return c == '\n' || c == '\r' || c == '\t' || (c >= ' ' && c <= '~'); });
  if (is_text && !start.empty()) return "it is text: numpy.save(\"x.npy\", numpy.loadtxt(\"FILE\", delimiter=\",\")) converts a table";
  return "numpy.save(\"x.npy\", array) writes one";
}

// The header's length of a .safetensors file is below 2^27, so its bytes 4 to 7 are zero and byte 8 opens a JSON object.
ArrayFormat format_of(const InputFile& file) {
  std::array<std::byte, 9> start{};
  const size_t present = static_cast<size_t>(std::min<uint64_t>(file.size(), start.size()));
  file.read(0, std::span(start).first(present));
  const std::string_view text(reinterpret_cast<const char*>(start.data()), present);
  if (text.starts_with("\x93NUMPY")) return ArrayFormat::npy;
  if (text.starts_with("PK\3\4") || text.starts_with("PK\5\6")) return ArrayFormat::npz;
  if (text.size() == start.size() && text.substr(4, 4) == std::string_view("\0\0\0\0", 4) && text[8] == '{')
    return ArrayFormat::safetensors;
  if (text.starts_with("\x80\x02")) file.fail(0, std::string(kTorchCheckpoint));  // torch.save before 1.6: a pickle of protocol 2
  if (const auto format = array_format(file.path())) return *format;              // whose reader says what is wrong
  file.fail(0, "neither a .npy, nor a .npz, nor a .safetensors file: " + how_to_convert(text));
}

}  // namespace

std::optional<ArrayFormat> array_format(std::string_view path) {
  for (const auto& [ending, format] : kEndings)
    if (path.ends_with(ending)) return format;
  return std::nullopt;
}

bool can_hold(ArrayFormat format, DType dtype) {
  return format == ArrayFormat::safetensors ||
         std::any_of(kNpyCodes.begin(), kNpyCodes.end(), [&](const NpyCode& c) { return c.dtype == dtype; });
}

ArrayFile::ArrayFile(std::string path) : path_(std::move(path)) {
  switch (format_of(InputFile(path_))) {
    case ArrayFormat::npy:
      arrays_.emplace_back("", read_npy(path_));
      break;
    case ArrayFormat::npz:
      arrays_ = read_npz(path_);
      break;
    case ArrayFormat::safetensors:
      safetensors_ = std::make_unique<SafetensorsFile>(path_);
      break;
  }
}

std::vector<std::string> ArrayFile::names() const {
  std::vector<std::string> names;
  if (safetensors_)
    for (const SafetensorsEntry& entry : safetensors_->tensors()) names.push_back(entry.name);
  for (const auto& named : arrays_) names.push_back(named.first);
  return names;
}

bool ArrayFile::contains(std::string_view name) const {
  if (safetensors_) return safetensors_->find(name) != nullptr;
  return std::any_of(arrays_.begin(), arrays_.end(), [&](const auto& named) { return named.first == name; });
}

HostArray ArrayFile::read(std::string_view name) const {
  EINC_CHECK(contains(name), "{} has no '{}'", path_, name);
  if (safetensors_) return safetensors_->read(*safetensors_->find(name));
  return std::find_if(arrays_.begin(), arrays_.end(), [&](const auto& named) { return named.first == name; })->second;
}

HostArray ArrayFile::pick(std::string_view name) const {
  if (contains(name)) return read(name);
  const std::vector<std::string> all = names();
  if (all.size() == 1) return read(all.front());
  std::string shown;
  for (size_t i = 0; i < std::min<size_t>(all.size(), 5); ++i) shown += (i == 0 ? "" : ", ") + printable(all[i].substr(0, 64));
  throw RuntimeFailure(FailureKind::data, fmt::format("{}: no array '{}' among its {}{}{}{}", printable(path_), printable(name), all.size(),
                                                      all.empty() ? "" : ": ", shown, all.size() > 5 ? ", ..." : ""));
}

void write_arrays(const std::string& path, ArrayFormat format, const NamedArrays& arrays) {
  switch (format) {
    case ArrayFormat::npy:
      EINC_CHECK(arrays.size() == 1, "{} arrays for one .npy file", arrays.size());
      return write_npy(path, arrays.front().second);
    case ArrayFormat::npz:
      return write_npz(path, arrays);
    case ArrayFormat::safetensors: {
      std::vector<SafetensorsItem> items;
      for (const auto& [name, array] : arrays) items.push_back({name, array.dtype, array.shape, array.bytes});
      return write_safetensors(path, std::move(items));
    }
  }
}

}  // namespace einc
