// Elements of an array in a file as an input takes them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "runtime/base/dtype.h"

namespace einc {

// Writes the elements in `from` to `out` as dtype `to`. A float is rounded to the nearest; an integer, or bool, becomes a float or the same
// integer. Returns the position of the first element whose integer `to` cannot hold; nullopt: none. Never floats to integers.
std::optional<size_t> convert_row(std::span<const std::byte> from, DType dtype, std::byte* out, DType to);

// The element as an integer, for a message; its dtype is one of integers or bool.
int64_t integer_at(std::span<const std::byte> from, DType dtype, size_t position);

}  // namespace einc
