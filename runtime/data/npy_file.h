// SPDX-License-Identifier: Apache-2.0
// The array of a .npy file where it lies: mapped, not read, so that one larger than memory does.
#pragma once
#include <string>
#include <vector>

#include "runtime/base/host_array.h"
#include "runtime/data/npy_header.h"

namespace einc {

class NpyFile {
 public:
  // Throws RuntimeFailure: data with the byte offset, or resource. Fortran-ordered and big-endian arrays are read and converted.
  explicit NpyFile(std::string path);

  const std::string& path() const { return file_.path(); }
  DType dtype() const { return place_.header.dtype; }
  const std::vector<int64_t>& shape() const { return place_.header.shape; }
  // Row-major little-endian elements, at an address of any alignment; a bool is true when its byte is not 0.
  std::span<const std::byte> bytes() const { return bytes_; }
  void check_whole() const { file_.check_whole(); }  // what was read from bytes() so far: see MappedFile
  // Has the system start to read a part of bytes() that is wanted soon.
  void fetch(std::span<const std::byte> part) const;
  uint64_t sample_hash() const { return file_.sample_hash(); }

 private:
  MappedFile file_;
  NpyPlace place_;
  HostArray converted_;
  std::span<const std::byte> bytes_;
};

}  // namespace einc
