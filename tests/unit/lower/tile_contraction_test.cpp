// SPDX-License-Identifier: Apache-2.0
// How deep the blocks of a contraction are, whose left operand is windows of an image.
#include "compiler/lower/tile_contraction.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "compiler/lower/contraction.h"
#include "tests/support/kernel_text.h"

using namespace einc;

namespace {

// The gradient of a kernel's 3 x 3 weights: eight images whose places, by `step`, are `size` x `size`.
struct WeightsGradient {
  int64_t size, channels, features, step;
};

std::string text_of(const WeightsGradient& g) {
  const int64_t padded = g.step * g.size + 2, row = padded * g.channels, places = 8 * g.size * g.size;
  return fmt::format(
      "axes a0=3 a1={1} a2={2} a3=8 a4={0} a5={0}\nouter a0 a1 a2\n"
      "b0: read f32[{3}]\nb1: read f32[{4}]\nb2: write f32[{5}]\n"
      "v0: f32 = b0[a2 + {6}*a3 + {7}*a4 + {2}*a5]\nv1: f32 = b1[{8}*a0 + a1 + {9}*a3 + {10}*a4 + {11}*a5]\n"
      "v2: f32 = mul(v0, v1)\nv3: f32 = r0\nstage a3 a4 a5\n  r0: f32 = sum v2\nstage \n  b2[{12}*a0 + {2}*a1 + a2] = v3\n",
      g.size, 3 * g.channels, g.features, places * g.features, 8 * padded * row, 9 * g.channels * g.features, g.size * g.size * g.features,
      g.size * g.features, row, padded * row, g.step * row, g.step * g.channels, 3 * g.channels * g.features);
}

int64_t block_depth(const WeightsGradient& g, const Processor& processor) {
  Kernel kernel = kernel_of(text_of(g));
  find_contraction(kernel);
  const std::optional<TiledContraction> tiles = tile_contraction(kernel, processor, {});
  REQUIRE(tiles.has_value());
  REQUIRE(tiles->left_groups.has_value());
  CHECK(tiles->left_groups->depth_step == g.step * g.channels);
  return tiles->block_depth;
}

}  // namespace

// A first cache of 32 KiB has 64 sets of 8 lines. Places of 32 channels are 128 bytes apart and lie in every second set: 256 lines, of
// which windows have half. Of 128 channels 64 lines are left, one line of an image.
TEST_CASE("tiles: windows whose lines the first cache would lose are read in blocks that it keeps") {
  constexpr Processor kNarrow{.vector_bits = 256, .vector_registers = 16};
  Processor large = kNarrow;
  large.level1_bytes = 48 << 10;  // twelve lines a set
  struct Row {
    WeightsGradient gradient;
    int64_t depth, of_large;
  };
  const Row rows[] = {{{112, 32, 32, 1}, 112, 112}, {{56, 64, 64, 1}, 56, 56}, {{28, 64, 64, 2}, 28, 28},  {{28, 128, 128, 1}, 28, 28},
                      {{24, 32, 32, 1}, 96, 192},   {{14, 32, 64, 2}, 28, 28}, {{14, 16, 64, 1}, 196, 196}};
  for (const auto& [gradient, depth, of_large] : rows) {
    CAPTURE(text_of(gradient));
    CHECK(block_depth(gradient, kNarrow) == depth);
    CHECK(block_depth(gradient, large) == of_large);
  }
}

// Vectors of 512 bits whose caches give as much in a cycle, or that take two cycles, have time for the lines of deep blocks.
TEST_CASE("tiles: windows are read in deep blocks where lines come fast enough") {
  constexpr Processor kWide{.vector_bits = 512, .vector_registers = 32, .level1_bytes = 48 << 10, .level2_bytes = 1 << 20};
  Processor halves = kWide;
  halves.unit_bits = 256, halves.level1_bytes = 32 << 10;
  for (const Processor& processor : {kWide, halves}) {
    CHECK(block_depth({112, 32, 32, 1}, processor) == 896);
    CHECK(block_depth({56, 64, 64, 1}, processor) == 784);
  }
}
