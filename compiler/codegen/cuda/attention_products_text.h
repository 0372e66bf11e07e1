// SPDX-License-Identifier: Apache-2.0
// Tiles of attention in shared memory and what is multiplied of them on tensor cores: by a warp (mma.sync), which loads fragments, or by
// four together (wgmma), which read the tiles themselves. Lane 4 * group + quad of a warp holds, of each 16 x 8 tile of sums, rows group
// and group + 8 at columns 2 * quad and 2 * quad + 1. A warp of several sets of 16 rows multiplies each operand of the other axis by all of
// them when it has it; row 8 * h + group is in set h / 2.
#pragma once
#include <functional>
#include <string>

#include "compiler/codegen/cuda/attention_bounds_text.h"
#include "compiler/codegen/cuda/value_text.h"

namespace einc {

class AttentionProductsText : protected ValueText {
 protected:
  enum class Pass : uint8_t { folds, products };

  AttentionProductsText(const Kernel& kernel, const AttentionTiles& tiles);
  ~AttentionProductsText() = default;

  const AttentionStep& step_of(const AttentionTiles::Product& p) const { return a_.steps[p.step]; }
  int64_t extent(AxisId axis) const { return kernel_.extent(axis); }
  int columns() const { return t_.step / 8; }
  // What a result multiplies is made under this number.
  ValueId left_of(size_t result) const { return t_.online ? t_.online->exponential : t_.lefts[result]; }

  void find_memory();
  void find_block();
  void load_own();
  // `body` for each tile of the other axis from `first` to `last`.
  void over_tiles(const std::function<void()>& body, Pass pass);
  // All scores that the pass needs, of a tile: s0, s1, ...
  void scores(Pass pass);
  // Adds to the results o0, o1, ... what they sum of a tile.
  void multiply();
  void open_sets();
  void otherwise();

  const AttentionTiles& t_;
  const Attention& a_;
  const std::string element_;
  const bool short_;  // of 16 bits
  AttentionBoundsText bounds_{kernel_, t_};
  std::string index_ = "i32";

 private:
  void copy(size_t k, const std::string& first, int rows, const std::string& to);
  static std::string swizzled_place(const AttentionTiles::Tile& tile, int rows);
  // In units of an operand's address, 16 bytes.
  static int64_t rows_of_operand(int64_t rows) { return rows * AttentionTiles::kSwizzledRow * 2 / 16; }
  void copy_vectors(const std::string& first, const std::string& turn);
  bool is_read(size_t k, Pass pass) const;
  void load_other(const std::string& first, Pass pass, const std::string& turn);
  void group_scores(Pass pass);
  std::string other_operand(const AttentionTiles::Product& p) const;
  void group_results();
  bool is_needed(uint16_t r, Pass pass) const;
  void multiply(const AttentionTiles::Product& p, ValueId left);
  void multiply_tf32(const AttentionTiles::Product& p, ValueId left);
  void round_to_tf32(const char* registers);

  const std::string mma_;
};

}  // namespace einc
