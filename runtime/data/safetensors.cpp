// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/base/check.h"
#include "runtime/data/safetensors_header.h"

namespace einc {
namespace {

constexpr uint64_t kLengthBytes = 8;

std::string_view header_of(const MappedFile& file) {
  const std::span<const std::byte> bytes = file.bytes();
  if (bytes.size() < kLengthBytes) file.fail(bytes.size(), fmt::format("{} bytes are too few for a .safetensors file", bytes.size()));
  uint64_t length = 0;
  for (size_t i = kLengthBytes; i-- > 0;) length = length << 8 | std::to_integer<uint64_t>(bytes[i]);
  if (length > kMaxSafetensorsHeader)
    file.fail(0, fmt::format("a header of {} bytes is above the limit of {}", length, kMaxSafetensorsHeader));
  const uint64_t present = bytes.size() - kLengthBytes;
  if (length > present) file.fail(0, fmt::format("a header of {} bytes, but only {} follow", length, present));
  return {reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, static_cast<size_t>(length)};
}

// In the order of their bytes, which are all there, once.
void check_cover(const MappedFile& file, const std::vector<SafetensorsEntry>& tensors, uint64_t data) {
  uint64_t at = data;
  for (const SafetensorsEntry& t : tensors) {
    if (t.begin < at) file.fail(t.begin, fmt::format("{} overlaps another tensor", quoted_name(t.name)));
    if (t.begin > at) file.fail(at, fmt::format("{} bytes before {} belong to no tensor", t.begin - at, quoted_name(t.name)));
    at = t.end;
  }
  if (at != file.size()) file.fail(at, fmt::format("the last {} bytes belong to no tensor", file.size() - at));
}

// Rank in the reference implementation's order of bytes.
ptrdiff_t rank_of(DType dtype) {
  const DType stored = dtype == DType::real ? DType::f32 : dtype;
  const auto* found = std::find_if(kSafetensorsCodes.begin(), kSafetensorsCodes.end(),
                                   [&](const SafetensorsCode& c) { return c.ours && c.dtype == stored; });
  EINC_CHECK(found != kSafetensorsCodes.end(), "safetensors has no dtype {}", to_string(dtype));
  return found - kSafetensorsCodes.begin();
}

std::string json_text(const std::string& path, const nlohmann::json& value) {
  try {
    return value.dump();
  } catch (const nlohmann::json::exception&) {
    throw RuntimeFailure(FailureKind::data, fmt::format("{}: a name or metadata is not UTF-8", printable(path)));
  }
}

}  // namespace

SafetensorsFile::SafetensorsFile(std::string path) : file_(std::move(path)) {
  const std::string_view text = header_of(file_);
  SafetensorsHeader header = parse_safetensors_header(file_, text);
  tensors_ = std::move(header.tensors);
  metadata_ = std::move(header.metadata);
  const uint64_t data = kLengthBytes + text.size();
  for (SafetensorsEntry& t : tensors_) {
    if (t.end > file_.size() - data)
      file_.fail(data, fmt::format("{} ends at byte {} of the data, which has {}", quoted_name(t.name), t.end, file_.size() - data));
    t.begin += data;
    t.end += data;
  }
  std::stable_sort(tensors_.begin(), tensors_.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  check_cover(file_, tensors_, data);
  for (size_t i = 0; i < tensors_.size(); ++i) by_name_[tensors_[i].name] = i;
}

const SafetensorsEntry* SafetensorsFile::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

std::span<const std::byte> SafetensorsFile::bytes(const SafetensorsEntry& entry) const {
  return file_.bytes().subspan(static_cast<size_t>(entry.begin), static_cast<size_t>(entry.end - entry.begin));
}

HostArray SafetensorsFile::read(const SafetensorsEntry& entry) const {
  const SafetensorsCode* code = safetensors_code(entry.dtype);
  if (!code->ours) file_.fail(entry.begin, fmt::format("{} is {}, a dtype that einc has not", quoted_name(entry.name), entry.dtype));
  HostArray array{code->dtype, entry.shape, {}};
  try {
    const std::span<const std::byte> from = bytes(entry);
    array.bytes.assign(from.begin(), from.end());
    check_whole();
  } catch (const std::bad_alloc&) {
    throw RuntimeFailure(FailureKind::resource,
                         fmt::format("{}: not enough memory for {} bytes", printable(path()), entry.end - entry.begin));
  }
  if (array.dtype == DType::boolean)
    for (std::byte& b : array.bytes) b = b == std::byte{0} ? std::byte{0} : std::byte{1};
  return array;
}

std::string_view safetensors_dtype(DType dtype) { return kSafetensorsCodes[static_cast<size_t>(rank_of(dtype))].text; }

SafetensorsLayout lay_out_safetensors(const std::string& path, std::vector<SafetensorsItem> items, const SafetensorsMetadata& metadata) {
  std::sort(items.begin(), items.end(), [](const SafetensorsItem& a, const SafetensorsItem& b) {
    const ptrdiff_t x = rank_of(a.dtype), y = rank_of(b.dtype);
    return x != y ? x > y : a.name < b.name;
  });
  std::string text = "{";
  if (!metadata.empty()) text += "\"__metadata__\":" + json_text(path, metadata);
  std::set<std::string_view> names{"__metadata__"};
  std::vector<std::span<const std::byte>> pieces(1);
  uint64_t offset = 0;
  for (const SafetensorsItem& item : items) {
    EINC_CHECK(names.insert(item.name).second, "two tensors named {}", item.name);
    auto bytes = static_cast<uint64_t>(bytes_of(item.dtype));
    for (const int64_t size : item.shape) bytes *= static_cast<uint64_t>(size);
    EINC_CHECK(bytes == item.bytes.size(), "'{}' has {} bytes, not {}", item.name, item.bytes.size(), bytes);
    text += fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}", text.size() > 1 ? "," : "",
                        json_text(path, item.name), safetensors_dtype(item.dtype), fmt::join(item.shape, ","), offset, offset + bytes);
    offset += bytes;
    pieces.push_back(item.bytes);
  }
  text += '}';
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');
  std::string length;
  for (size_t i = 0; i < kLengthBytes; ++i) length += static_cast<char>(text.size() >> (8 * i) & 0xFF);
  auto head = std::make_unique<const std::string>(length + text);
  pieces[0] = std::as_bytes(std::span(*head));
  return {std::move(head), std::move(pieces)};
}

void write_safetensors(const std::string& path, std::vector<SafetensorsItem> items, const SafetensorsMetadata& metadata) {
  write_file(path, lay_out_safetensors(path, std::move(items), metadata).pieces);
}

}  // namespace einc
