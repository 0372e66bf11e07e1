// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/initialize.h"

#include <algorithm>
#include <vector>

#include "runtime/base/float_format.h"

namespace einc {

void initialize(ThreadPool& pool, InitKind init, std::span<const double> arguments, uint64_t seed, std::string_view path, DType dtype,
                int64_t count, std::byte* memory) {
  constexpr int64_t kPiece = 16384;
  pool.run((count + kPiece - 1) / kPiece, [&](int, int64_t begin, int64_t end) {
    std::vector<double> values(static_cast<size_t>(kPiece));
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t first = piece * kPiece, n = std::min(kPiece, count - first);
      const std::span<double> part(values.data(), static_cast<size_t>(n));
      fill_init(init, arguments, seed, path, static_cast<uint64_t>(first), part);
      for (int64_t k = 0; k < n; ++k) store_number(dtype, part[static_cast<size_t>(k)], memory + (first + k) * bytes_of(dtype));
    }
  });
}

}  // namespace einc
