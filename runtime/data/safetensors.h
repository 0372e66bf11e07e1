// SPDX-License-Identifier: Apache-2.0
// The .safetensors format: eight bytes for the length of a header, the header (a JSON object of tensor names, each with dtype,
// shape and offsets, and of a `__metadata__` of strings), the tensors' bytes. The format's own rules are held to: the tensors
// cover the bytes behind the header without hole or overlap, names are given once, shape times dtype is the number of bytes.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/host_array.h"
#include "runtime/data/file.h"

namespace einc {

inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;  // bytes, as in the reference implementation
inline constexpr size_t kMaxSafetensorsRank = 32;

using SafetensorsMetadata = std::map<std::string, std::string>;

struct SafetensorsEntry {
  std::string name;
  std::string_view dtype;  // as the format writes it, such as "BF16"; not all have a DType
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  // bytes of the file
};

// An open file. The tensors' bytes are mapped, not read: they stay valid as long as this object.
class SafetensorsFile {
 public:
  // Throws RuntimeFailure: data with the byte offset or the tensor's name, or resource.
  explicit SafetensorsFile(std::string path);

  const std::string& path() const { return file_.path(); }
  const std::vector<SafetensorsEntry>& tensors() const { return tensors_; }  // in the order of their bytes
  const SafetensorsMetadata& metadata() const { return metadata_; }
  const SafetensorsEntry* find(std::string_view name) const;  // nullptr: none
  // Little-endian elements in row-major order, at an address of any alignment.
  std::span<const std::byte> bytes(const SafetensorsEntry& entry) const;
  void check_whole() const { file_.check_whole(); }  // what was read from bytes() so far: see MappedFile
  // A copy, bools as 0 and 1. Throws RuntimeFailure (data) for a dtype that einc has not.
  HostArray read(const SafetensorsEntry& entry) const;

 private:
  MappedFile file_;
  std::vector<SafetensorsEntry> tensors_;
  std::map<std::string_view, size_t> by_name_;
  SafetensorsMetadata metadata_;
};

// As the format writes it; `real` is written as f32.
std::string_view safetensors_dtype(DType dtype);

// What is to be written: its bytes stay the caller's.
struct SafetensorsItem {
  std::string name;
  DType dtype = DType::f32;  // `real` is written as f32
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;  // of this shape and dtype
};

// The bytes of a file: its head, then the items' own. `pieces` point into `head` and the items' memory.
struct SafetensorsLayout {
  std::unique_ptr<const std::string> head;
  std::vector<std::span<const std::byte>> pieces;
};
// The same tensors and metadata give the same bytes in whatever order: sorted as the reference implementation does, wide
// dtypes first, then by name. Throws RuntimeFailure (data) for a name that is not UTF-8; `path` is for that message.
SafetensorsLayout lay_out_safetensors(const std::string& path, std::vector<SafetensorsItem> items,
                                      const SafetensorsMetadata& metadata = {});
// Writes that. Never leaves a half-written file. Throws RuntimeFailure (resource) too.
void write_safetensors(const std::string& path, std::vector<SafetensorsItem> items, const SafetensorsMetadata& metadata = {});

}  // namespace einc
