// SPDX-License-Identifier: Apache-2.0
// What the emitter of attention is made of: places in the thread's memory, panels, and the microkernel.
#pragma once
#include "compiler/codegen/llvm/emit_values.h"
#include "compiler/codegen/llvm/register_block.h"
#include "compiler/lower/tile_attention.h"

namespace einc {

class AttentionParts : protected ValueEmitter {
 protected:
  static constexpr int kDepthUnroll = 4;
  // Where one row reads its operands: the processor's own prefetching ends with each page of 4 KB.
  static constexpr int64_t kFetchedAhead = 4096;

  AttentionParts(llvm::Module& module, const std::string& name, const TiledAttention& plan);
  ~AttentionParts() = default;

  using Product = TiledAttention::Product;
  using Sums = RegisterBlock::Sums;

  Register smaller(Register a, Register b);
  Register larger(Register a, Register b);
  Register at(Register base, Register index) { return b_.CreateInBoundsGEP(b_.getFloatTy(), base, index); }
  Register times(Register x, int64_t factor) { return b_.CreateMul(x, i64(factor), "", false, true); }
  Register vector_at(Register base, Register index) { return b_.CreateAlignedLoad(vector_, at(base, index), llvm::Align(4)); }
  void store_at(Register x, Register base, Register index) { b_.CreateAlignedStore(x, at(base, index), llvm::Align(4)); }
  Register scratch(int64_t offset) { return at(scratch_, i64(offset)); }
  Register tile(int index) { return scratch(index * t_.tile_elements); }

  // body(first, size) for whole pieces of begin .. end and what is left of `extent` at its end.
  void tiles(Register begin, Register end, int64_t size, int64_t extent, const std::function<void(Register, int64_t)>& body);
  // body(first, vectors, width) for pieces of the result's own axis of a product.
  void columns(const Product& p, const std::function<void(int64_t, int, int64_t)>& body);
  void lanes_along(AxisId axis, Register mask, const std::function<void()>& body);
  Register first_lanes(int64_t count);

  // The right operand's values along p.inner for positions first .. last-1 of `axis`, into its panel.
  void pack_right(const AttentionStep& step, const Product& p, AxisId axis, Register first, Register last);
  // The lanes of the v-th vector of a block that are among its `count` rows; null when all are.
  Register rows_mask(Register count, int v);
  // The left operand of scores for a block of rows, turned: rows lie next to each other.
  void pack_left(const AttentionStep& step, const Product& p, Register first, Register count);

  // Of one row: its left operand of scores, zeros behind it.
  void pack_row(const AttentionStep& step, const Product& p);
  // The products of the row with as many keys as there are lanes, the last key again where there are fewer.
  Register row_scores(const AttentionStep& step, const Product& p, Register key);
  // The lanes from `first` on that lie before `last`; null when the extent is in whole vectors.
  Register lanes_before(Register first, Register last, int64_t extent);

  // The right operand from position `i` of `axis` (panel_first is the panel's first) and `inner` of its inner axis on.
  Register right_at(const AttentionStep& step, const Product& p, AxisId axis, Register i, Register panel_first, Register inner);
  int64_t right_step(const AttentionStep& step, const Product& p, AxisId axis) const;
  int64_t inner_step(const AttentionStep& step, const Product& p) const;

  // The right operand from there on, `depth` elements to the next position.
  WideOperand wide_right(const AttentionStep& step, const Product& p, Register base, int64_t depth) const;

  struct Keys {
    Register first, last;
  };
  // Products on matrix tiles; `pairs` is a tile of rows times keys, `to` as well.
  void scores_on_tiles(const AttentionStep& step, const Product& p, Register first_row, const Keys& keys, Register to);
  void mix_on_tiles(const Product& p, Register pairs, const Keys& keys);
  void gather_on_tiles(const Product& p, Register pairs, const Keys& keys);
  // The right operand's values of `count` positions of `axis` from `first` on, in tiles of pairs of them.
  void pack_pairs(const AttentionStep& step, const Product& p, AxisId axis, Register first, int64_t count);

  // sums[i][v] += sum over t < steps of narrow(i, t) * wide(t, v).
  Sums multiply(NarrowOperand narrow, WideOperand wide, int count, int vectors, Register steps, Register tail, Sums sums);
  Sums zeros(int count) const { return Sums(static_cast<size_t>(count), llvm::Constant::getNullValue(vector_)); }

  const TiledAttention& t_;
  const Attention& a_;
  llvm::FixedVectorType* vector_;
  Register scratch_;

 private:
  Register operand(ValueId id);
  Register only(Register mask, Register x);  // zeros elsewhere
  Register lanes_below(Register count);
  bool turns_squares(const AttentionStep& step, const Product& p) const;
  Register bf16_row(Register low, Register high);
  Register bf16_pairs(Register low, Register high);
  Register words(Register halves);
  void store_tile(const std::vector<Register>& rows, Register to);
  Register key_tiles_begin(Register first_key);
  Register key_tiles_end(Register last_key);
  void clear_other_keys(Register pairs, const Keys& keys);
  void pack_rows_in_pairs(const AttentionStep& step, const Product& p, Register first);
};

}  // namespace einc
