// SPDX-License-Identifier: Apache-2.0
// Elements of an array in a file as an input takes them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "runtime/base/dtype.h"

namespace einc {

// Writes the elements in `from` to `out` as dtype `to`. A float is rounded to the nearest; an integer, or bool, becomes a float or the same
// integer. Returns the position of the first element that `to` cannot hold (an integer outside its range, a finite number beyond its
// largest); nullopt: none. Never floats to integers.
std::optional<size_t> convert_row(std::span<const std::byte> from, DType dtype, std::byte* out, DType to);

// The element as text, for a message.
std::string number_at(std::span<const std::byte> from, DType dtype, size_t position);

}  // namespace einc
