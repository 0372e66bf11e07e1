// SPDX-License-Identifier: Apache-2.0
// A tensor as files and embedding programs hold it: dtype, shape, and row-major elements in their storage format, in the
// byte order of this machine (little-endian; bool is one byte, 0 or 1).
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/base/dtype.h"

namespace einc {

struct HostArray {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;

  int64_t count() const { return static_cast<int64_t>(bytes.size()) / bytes_of(dtype); }
};

}  // namespace einc
