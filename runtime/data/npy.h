// SPDX-License-Identifier: Apache-2.0
// NumPy's array files, formats 1.0, 2.0 and 3.0 ("A simple file format for NumPy arrays", NEP 1): a magic string, the
// length of a header, the header (a Python dict literal of descr, fortran_order and shape), the elements. Big-endian and
// Fortran-ordered data are converted. Every claim is checked against the file's size before memory is asked for.
#pragma once
#include <string>

#include "runtime/base/host_array.h"
#include "runtime/data/file.h"

namespace einc {

inline constexpr uint32_t kMaxNpyHeader = 10000;  // bytes, as in NumPy
inline constexpr size_t kMaxNpyRank = 32;

// Dtypes f64 f32 f16 i64 i32 u16 u8 bool. Throws RuntimeFailure: data with the byte offset, or resource.
HostArray read_npy(const std::string& path);
// The array that lies in `length` bytes of the source from `begin` on, such as a member of an .npz.
HostArray read_npy(const ByteSource& file, uint64_t begin, uint64_t length);

// Format 1.0, little-endian, C order, as np.save writes it. The dtype is one of those above.
void write_npy(const std::string& path, const HostArray& array);
// The bytes before the elements.
std::string npy_header(const HostArray& array);

}  // namespace einc
