// SPDX-License-Identifier: Apache-2.0
// Arrays by name in a .npy, .npz or .safetensors file: what a file is, its first bytes say; what is written, the ending of its name.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/host_array.h"
#include "runtime/data/npz.h"
#include "runtime/data/safetensors.h"

namespace einc {

enum class ArrayFormat : uint8_t { npy, npz, safetensors };

// By the ending of a path; nullopt: none of the three.
std::optional<ArrayFormat> array_format(std::string_view path);
// Whether the format has the dtype: .npy and .npz lack bf16 and the formats of 8 bits.
bool can_hold(ArrayFormat format, DType dtype);

class ArrayFile {
 public:
  // Throws RuntimeFailure: data or resource, as the readers do.
  explicit ArrayFile(std::string path);

  const std::string& path() const { return path_; }
  // In the file's order; a .npy file's only array has the empty name.
  std::vector<std::string> names() const;
  bool contains(std::string_view name) const;
  // Of one of names(). Throws RuntimeFailure (data) for a dtype that einc has not.
  HostArray read(std::string_view name) const;
  // The array of that name, else the only one there is. Throws RuntimeFailure (data) when there are several others, or none.
  HostArray pick(std::string_view name) const;

 private:
  std::string path_;
  std::unique_ptr<SafetensorsFile> safetensors_;  // or
  NamedArrays arrays_;
};

// .npy takes one array, whose name is not written. Their dtypes are ones that the format can hold.
void write_arrays(const std::string& path, ArrayFormat format, const NamedArrays& arrays);

}  // namespace einc
