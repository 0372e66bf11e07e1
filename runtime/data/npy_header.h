// SPDX-License-Identifier: Apache-2.0
// The dict literal in a .npy file, read by a parser of exactly that: nothing is evaluated.
#pragma once
#include <array>
#include <string_view>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/data/file.h"

namespace einc {

enum class ByteOrder { little, big };
enum class Layout { row_major, column_major };

struct NpyHeader {
  DType dtype = DType::f32;
  ByteOrder order = ByteOrder::little;
  Layout layout = Layout::row_major;
  std::vector<int64_t> shape;
};

// NumPy's name of a dtype without the byte order.
struct NpyCode {
  std::string_view text;
  DType dtype;
};
inline constexpr std::array<NpyCode, 8> kNpyCodes{{{"f8", DType::f64},
                                                   {"f4", DType::f32},
                                                   {"f2", DType::f16},
                                                   {"i8", DType::i64},
                                                   {"i4", DType::i32},
                                                   {"u2", DType::u16},
                                                   {"u1", DType::u8},
                                                   {"b1", DType::boolean}}};

// Where an array lies in its source.
struct NpyPlace {
  NpyHeader header;
  uint64_t begin = 0, bytes = 0;  // of the elements, all of which are there
};

// Of the .npy file in `length` bytes of the source from `begin` on. Throws RuntimeFailure (data).
NpyPlace find_npy(const ByteSource& file, uint64_t begin, uint64_t length);

// `text` is the header, which begins at byte `offset` of the file; failures name the place.
NpyHeader parse_npy_header(const ByteSource& file, uint64_t offset, std::string_view text);

}  // namespace einc
