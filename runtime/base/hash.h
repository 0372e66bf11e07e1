// SPDX-License-Identifier: Apache-2.0
// FNV-1a, 64 bits: the one hash of texts whose value matters (random streams, file names). Not cryptographic. Files have xxh64.h.
#pragma once
#include <cstdint>
#include <string_view>

namespace einc {

constexpr uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

}  // namespace einc
