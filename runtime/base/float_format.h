// SPDX-License-Identifier: Apache-2.0
// Storage formats of floating numbers, from their description in DTypeInfo: rounding a double to a format (nearest, ties
// to even) and its bit patterns. Beyond the largest finite value: infinity, and NaN in f8e4m3, which has no infinity.
#pragma once
#include <cstddef>
#include <cstdint>

#include "runtime/base/dtype.h"

namespace einc {

// The nearest value of the format; `real` counts as f32. x itself for f64 and for integers.
double round_to_format(DType dtype, double x);

// False for a finite x that is infinite, or NaN, in the format.
bool can_hold(DType dtype, double x);

// Bit pattern of round_to_format(dtype, x) for the formats of 16 and 8 bits.
uint16_t encode_float(DType dtype, double x);
double decode_float(DType dtype, uint16_t bits);

// Writes x as one element of the dtype: floats rounded, integers towards zero, bool as x != 0.
void store_number(DType dtype, double x, std::byte* out);

}  // namespace einc
