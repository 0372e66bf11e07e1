// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/llvm/emit_products.h"

#include <algorithm>

namespace einc {
namespace {

using llvm::BasicBlock;

constexpr int64_t kDepthsAhead = 12;  // of few rows, whose other operand streams from memory

}  // namespace

ProductEmitter::Sums ProductEmitter::multiply(const TileOperands& tile, Register row, const std::function<void(Register)>& before_phase,
                                              Sums sums) {
  if (t_.panels_in_tiles()) return multiply_pairs(tile, std::move(sums));
  if (left_out_) return multiply_inside(tile, row, std::move(sums));
  return multiply_elements(tile, before_phase, std::move(sums));
}

WideOperand ProductEmitter::wide_operand(const Source& right) {
  WideOperand wide{right.base, right.depth, panel_alignment()};
  if (t_.right != PanelSource::in_place) return wide;
  const DType stored = kernel_.values[kernel_.contraction->right].dtype;
  wide.align = llvm::Align(static_cast<uint64_t>(bytes_of(stored)));
  if (stored == DType::bf16) wide.dtype = stored, wide.fetched_ahead = kDepthsAhead * right.depth * bytes_of(stored);
  return wide;
}

ProductEmitter::Sums ProductEmitter::multiply_elements(const TileOperands& tile, const std::function<void(Register)>& before_phase,
                                                       Sums sums) {
  const RegisterBlock all = registers(tile, tile.count);
  NarrowOperand narrow{tile.left.base, tile.left.width, tile.left.depth};
  WideOperand wide = wide_operand(tile.right);
  Register depth = b_.CreateSub(tile.block.depth.end, tile.block.depth.begin);
  if (t_.left_groups) {
    // Blocks hold whole groups. Nothing is fetched ahead: windows overlap, and 3 x 3 ones of 64 channels run at 94 % of peak (Zen 5).
    const OperandGroups& g = *t_.left_groups;
    const int64_t unroll = g.depths <= OperandGroups::kUnrolled ? g.depths : kDepthUnroll;
    return all.multiply_in_groups(narrow, wide, b_.CreateUDiv(depth, i64(g.depths)), g.depths / unroll, static_cast<int>(unroll), g.apart,
                                  std::move(sums));
  }
  if (t_.depths() >= kDepthUnroll) {
    Register steps = b_.CreateUDiv(depth, i64(kDepthUnroll));
    if (before_phase)
      sums = all.multiply_in_phases(narrow, wide, steps, kDepthUnroll, phases(), phase_steps(), std::move(sums), before_phase);
    else
      sums = all.multiply(narrow, wide, steps, kDepthUnroll, std::move(sums));
  }
  if (t_.depths() % kDepthUnroll != 0 || t_.block_depth % kDepthUnroll != 0)
    sums = all.multiply(narrow, wide, b_.CreateURem(depth, i64(kDepthUnroll)), 1, std::move(sums));
  return sums;
}

ProductEmitter::Sums ProductEmitter::multiply_pairs(const TileOperands& tile, Sums sums) {
  constexpr int64_t kPairs = TiledContraction::kTileDepth / 2, kTileWords = TiledContraction::kTileRows * kPairs;
  NarrowOperand narrow{tile.left.base, tile.left.width, tile.left.depth};
  WideOperand wide{tile.right.base, tile.right.depth, panel_alignment()};
  wide.across = t_.tile_depths() * kTileWords;
  Register depth = b_.CreateSub(tile.block.depth.end, tile.block.depth.begin);
  Register groups = b_.CreateUDiv(b_.CreateAdd(depth, i64(2 * kPairs - 1)), i64(2 * kPairs));
  return registers(tile, tile.count, Product::of_pairs)
      .multiply_in_groups(narrow, wide, groups, kPairs / kDepthUnroll, kDepthUnroll, kTileWords, std::move(sums));
}

// padded_axis.h, of a place that is known when the code runs.
ProductEmitter::Extent ProductEmitter::elements_inside(const PaddedAxis& axis, Register place) {
  Register first = b_.CreateAdd(times(place, axis.step), i64(axis.first));
  const auto least = [&](int64_t bound) {
    Register apart = larger(b_.CreateSub(i64(bound + axis.dilation - 1), first), i64(0));
    return smaller(axis.dilation == 1 ? apart : b_.CreateUDiv(apart, i64(axis.dilation)), i64(axis.elements));
  };
  return {least(0), least(axis.size)};
}

// Without what lies in the zeros around an image. In the first and the last tiles of a line these are elements of some rows, so that such
// tiles have code of their own.
ProductEmitter::Sums ProductEmitter::multiply_inside(const TileOperands& tile, Register row, Sums sums) {
  const LeftOutPadding& out = *left_out_;
  const std::vector<TilesOfLine> kinds = out.tiles_of_line(t_.tile_rows);
  const Extent& depth = tile.block.depth;
  Register of_line = i64(out.line_depths());
  Extent lines{i64(0), i64(t_.depths() / out.line_depths())};
  if (out.lines) lines = elements_inside(*out.lines, b_.CreateURem(b_.CreateUDiv(row, i64(out.line_rows())), i64(out.lines->places)));
  if (t_.depth_in_blocks()) {
    lines.begin = larger(lines.begin, b_.CreateUDiv(depth.begin, of_line));
    lines.end = smaller(lines.end, b_.CreateUDiv(b_.CreateAdd(depth.end, i64(out.line_depths() - 1)), of_line));
  }
  if (kinds.size() == 1) return multiply_lines(tile, lines, kinds[0], std::move(sums));

  Register number = b_.CreateUDiv(b_.CreateURem(row, i64(out.line_rows())), i64(t_.tile_rows));
  BasicBlock* after = ValueEmitter::block("inside");
  std::vector<std::pair<BasicBlock*, Sums>> made;
  for (size_t k = 0; k < kinds.size(); ++k) {
    BasicBlock* others = nullptr;
    if (k + 1 < kinds.size()) {
      BasicBlock* own = ValueEmitter::block("tiles");
      others = ValueEmitter::block("others");
      b_.CreateCondBr(b_.CreateICmpSLT(number, i64(kinds[k + 1].first)), own, others);
      b_.SetInsertPoint(own);
    }
    Sums of_kind = multiply_lines(tile, lines, kinds[k], sums);
    made.emplace_back(b_.GetInsertBlock(), std::move(of_kind));
    b_.CreateBr(after);
    if (others) b_.SetInsertPoint(others);
  }
  b_.SetInsertPoint(after);
  for (size_t s = 0; s < sums.size(); ++s) {
    llvm::PHINode* sum = b_.CreatePHI(vector_, static_cast<unsigned>(made.size()));
    for (const auto& [block, of_kind] : made) sum->addIncoming(of_kind[s], block);
    sums[s] = sum;
  }
  return sums;
}

// The lines of a window's elements that a block has, or parts of them.
ProductEmitter::Sums ProductEmitter::multiply_lines(const TileOperands& tile, Extent lines, const TilesOfLine& kind, Sums sums) {
  const LeftOutPadding& out = *left_out_;
  const Extent& depth = tile.block.depth;
  // Where blocks hold whole lines the steps of a part are a constant.
  const bool whole_lines = !t_.depth_in_blocks() || t_.block_depth % out.line_depths() == 0;
  // Lines of an image that is read in place are groups, and blocks hold whole ones.
  Register first_line = t_.left_groups ? b_.CreateUDiv(depth.begin, i64(out.line_depths())) : nullptr;
  const auto multiply_part = [&](const RowsOfElements& part, Register line, Sums& now) {
    Register start = times(line, out.line_depths()), begin = b_.CreateAdd(start, i64(part.elements.begin * out.element_depths()));
    Register steps = i64(part.elements.length() * out.element_depths() / kDepthUnroll);
    if (!whole_lines) {
      begin = larger(depth.begin, begin);
      Register end = smaller(depth.end, b_.CreateAdd(start, i64(part.elements.end * out.element_depths())));
      steps = b_.CreateUDiv(larger(b_.CreateSub(end, begin), i64(0)), i64(kDepthUnroll));
    }
    Register in_block = b_.CreateSub(begin, depth.begin), of_left = times(in_block, tile.left.depth);
    if (first_line)
      of_left =
          b_.CreateAdd(times(b_.CreateSub(line, first_line), t_.left_groups->apart), times(b_.CreateSub(begin, start), tile.left.depth));
    // Pointers of which LLVM 19 knows nothing more: from what they are made of its pass over induction variables (LSR) would form so many
    // candidates that a kernel of 28 x 16 sums takes 1.1 s to compile, not 0.03.
    Register from = at(tile.left.base, b_.CreateAdd(of_left, i64(part.rows.begin * tile.left.width)));
    NarrowOperand narrow{b_.CreateLaunderInvariantGroup(from), tile.left.width, tile.left.depth};
    const RegisterBlock rows = registers(tile, part.rows.length());
    WideOperand wide = wide_operand(tile.right);
    wide.base = b_.CreateLaunderInvariantGroup(b_.CreateInBoundsGEP(rows.stored(wide), wide.base, times(in_block, wide.depth)));
    const auto own = now.begin() + part.rows.begin * tile.vectors;
    const Sums more = rows.multiply(narrow, wide, steps, kDepthUnroll, {own, own + part.rows.length() * tile.vectors});
    std::copy(more.begin(), more.end(), own);
  };
  return registers(tile, tile.count).repeat(b_.CreateSub(lines.end, lines.begin), std::move(sums), [&](Register i, Sums now) {
    for (const RowsOfElements& part : kind.parts) multiply_part(part, b_.CreateAdd(lines.begin, i), now);
    return now;
  });
}

}  // namespace einc
