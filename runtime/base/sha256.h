// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4) of bytes in memory: the seal of cached machine code, where a second content of the same digest must not be found.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace einc {

using Sha256 = std::array<unsigned char, 32>;

// Of the parts, one after the other.
Sha256 sha256(std::initializer_list<std::string_view> parts);

}  // namespace einc
