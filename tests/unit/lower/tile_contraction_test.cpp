// SPDX-License-Identifier: Apache-2.0
// Where a contraction's operands are read, and how deep its blocks are, by what the first cache keeps of lines that lie apart.
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

TiledContraction tiles_of(const std::string& text, const Processor& processor) {
  Kernel kernel = kernel_of(text);
  find_contraction(kernel);
  const std::optional<TiledContraction> tiles = tile_contraction(kernel, processor, {});
  REQUIRE(tiles.has_value());
  return *tiles;
}

int64_t block_depth(const WeightsGradient& g, const Processor& processor) {
  const TiledContraction tiles = tiles_of(text_of(g), processor);
  REQUIRE(tiles.left_groups.has_value());
  CHECK(tiles.left_groups->depth_step == g.step * g.channels);
  return tiles.block_depth;
}

// Rows by columns, both operands with the depth's rows or columns side by side.
PanelSource right_source(int64_t rows, int64_t columns, int64_t depth, const Processor& processor) {
  const std::string text = fmt::format(
      "axes a0={0} a1={1} a2={2}\nouter a0 a1\nb0: read f32[{3}]\nb1: read f32[{4}]\nb2: write f32[{5}]\n"
      "v0: f32 = b0[{2}*a0 + a2]\nv1: f32 = b1[{1}*a2 + a1]\nv2: f32 = mul(v0, v1)\nv3: f32 = r0\n"
      "stage a2\n  r0: f32 = sum v2\nstage\n  b2[{1}*a0 + a1] = v3\n",
      rows, columns, depth, rows * depth, depth * columns, rows * columns);
  return tiles_of(text, processor).right;
}

constexpr Processor kShortVectors{.vector_bits = 256, .vector_registers = 16},
    kLongVectors{.vector_bits = 512, .vector_registers = 32, .level1_bytes = 48 << 10, .level2_bytes = 1 << 20};

}  // namespace

// A first cache of 32 KiB has 64 sets of 8 lines. Places of 32 channels are 128 bytes apart and lie in every second set: 256 lines, of
// which windows have half. Of 128 channels 64 lines are left, one line of an image.
TEST_CASE("tiles: windows whose lines the first cache would lose are read in blocks that it keeps") {
  Processor large = kShortVectors;
  large.level1_bytes = 48 << 10;  // twelve lines a set
  struct Row {
    WeightsGradient gradient;
    int64_t depth, of_large;
  };
  const Row rows[] = {{{112, 32, 32, 1}, 112, 112}, {{56, 64, 64, 1}, 56, 56}, {{28, 64, 64, 2}, 28, 28},  {{28, 128, 128, 1}, 28, 28},
                      {{24, 32, 32, 1}, 96, 192},   {{14, 32, 64, 2}, 28, 28}, {{14, 16, 64, 1}, 196, 196}};
  for (const auto& [gradient, depth, of_large] : rows) {
    CAPTURE(text_of(gradient));
    CHECK(block_depth(gradient, kShortVectors) == depth);
    CHECK(block_depth(gradient, large) == of_large);
  }
}

// Vectors of 512 bits whose caches give as much in a cycle, or that take two cycles, have time for the lines of deep blocks.
TEST_CASE("tiles: windows are read in deep blocks where lines come fast enough") {
  Processor halves = kLongVectors;
  halves.unit_bits = 256, halves.level1_bytes = 32 << 10;
  for (const Processor& processor : {kLongVectors, halves}) {
    CHECK(block_depth({112, 32, 32, 1}, processor) == 896);
    CHECK(block_depth({56, 64, 64, 1}, processor) == 784);
  }
}

// Columns of 64 numbers put each depth into every fourth set: 128 lines stay. Columns of 80 use all sets, 512 lines.
TEST_CASE("tiles: a right operand is packed whose tile the first cache would lose") {
  using enum PanelSource;
  Processor large = kShortVectors;
  large.level1_bytes = 48 << 10;
  struct Row {
    int64_t rows, columns, depth;
    PanelSource source, of_large;
  };
  const Row rows[] = {{256, 64, 128, in_place, in_place},  {256, 64, 160, by_width, in_place}, {256, 64, 200, by_width, by_width},
                      {256, 256, 256, by_width, by_width}, {256, 80, 500, in_place, in_place}, {256, 80, 600, by_width, in_place},
                      {256, 24, 300, by_width, in_place},  // tiles two lines wide
                      {12, 64, 200, in_place, in_place}};  // few tiles of rows
  for (const Row& row : rows) {
    CAPTURE(row.columns);
    CAPTURE(row.depth);
    CHECK(right_source(row.rows, row.columns, row.depth, kShortVectors) == row.source);
    CHECK(right_source(row.rows, row.columns, row.depth, large) == row.of_large);
    CHECK(right_source(row.rows, row.columns, row.depth, kLongVectors) == in_place);
  }
}
