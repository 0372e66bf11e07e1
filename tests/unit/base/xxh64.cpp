// SPDX-License-Identifier: Apache-2.0
// Against the Python package xxhash over bytes (31 i + 7) mod 256.
#include "runtime/base/xxh64.h"

#include <doctest/doctest.h>

#include <vector>

using namespace einc;

TEST_CASE("XXH64 as the reference implementation computes it, in one piece and in several") {
  struct Row {
    size_t length;
    uint64_t hash;
  };
  for (const auto& [length, hash] : std::vector<Row>{{0, 0xef46db3751d8e999},
                                                     {1, 0xa96c7f0ce858bbb7},
                                                     {3, 0x56e6957632a487f9},
                                                     {4, 0xc60d15b1e3ff8f04},
                                                     {7, 0xafbefc3d6c6f9a8e},
                                                     {8, 0x3da5c7aa269683e0},
                                                     {31, 0x4a74f3a1a39ad4a1},
                                                     {32, 0x8d57d6a4671cc43d},
                                                     {33, 0x62c9fd21ed857664},
                                                     {100, 0xefa0ad2d3e70c151},
                                                     {1000, 0x99594f4828043d35}}) {
    CAPTURE(length);
    std::vector<std::byte> bytes(length);
    for (size_t i = 0; i < length; ++i) bytes[i] = static_cast<std::byte>(31 * i + 7);
    CHECK(xxh64(bytes) == hash);
    for (size_t piece = 1; piece < 70; ++piece) {
      Xxh64 pieces;
      for (size_t at = 0; at < length; at += piece) pieces.update(std::span(bytes).subspan(at, std::min(piece, length - at)));
      CHECK(pieces.digest() == hash);
    }
  }
}
