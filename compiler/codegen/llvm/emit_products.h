// SPDX-License-Identifier: Apache-2.0
// The sums of a tile over a block's depth, in registers: what a tiled contraction multiplies but for matrix tiles.
#pragma once
#include "compiler/codegen/llvm/emit_panels.h"
#include "compiler/codegen/llvm/register_block.h"

namespace einc {

class ProductEmitter : protected PanelEmitter {
 protected:
  using Sums = RegisterBlock::Sums;

  // `count` rows of a tile and `vectors` of columns, of the last one the lanes in `tail` (null: all).
  struct TileOperands {
    const Source &left, &right;
    const Block& block;
    int count, vectors;
    Register tail;
  };

  ProductEmitter(llvm::Module& module, const std::string& name, const TiledContraction& plan)
      : PanelEmitter(module, name, plan), left_out_(plan.left_out()) {}
  ~ProductEmitter() = default;

  // Adds the products of the tile whose first row is `row`. `before_phase`, if any, is called in each phase of the depth.
  Sums multiply(const TileOperands& tile, Register row, const std::function<void(Register)>& before_phase, Sums sums);

  const std::optional<LeftOutPadding> left_out_;

 private:
  Sums multiply_elements(const TileOperands& tile, const std::function<void(Register)>& before_phase, Sums sums);
  Sums multiply_pairs(const TileOperands& tile, Sums sums);
  Sums multiply_inside(const TileOperands& tile, Register row, Sums sums);
  Sums multiply_lines(const TileOperands& tile, Extent lines, const TilesOfLine& kind, Sums sums);
  Extent elements_inside(const PaddedAxis& axis, Register place);
  WideOperand wide_operand(const Source& right);
  RegisterBlock registers(const TileOperands& tile, int64_t rows, Product product = Product::of_elements) {
    return {b_, vector_, alignment(), static_cast<int>(rows), tile.vectors, tile.tail, product};
  }
};

}  // namespace einc
