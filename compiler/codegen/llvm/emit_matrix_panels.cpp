// Panels of matrix tiles: 16 rows of 64 bytes each. A tile of the left operand has a row of it in each, 32 elements of depth; a
// tile of the right one has two elements of depth of 16 columns in each. Either is the other with its words of two elements
// turned.
#include "compiler/codegen/llvm/emit_panels.h"
#include "compiler/codegen/llvm/transpose.h"

namespace einc {
namespace {

constexpr int64_t kTileBytes = 1024, kTileRowBytes = 64;
constexpr int kWide = TiledContraction::kTileRows, kDeep = TiledContraction::kTileDepth;

}  // namespace

// The upper halves of a value's lanes: it is rounded to bf16 already. 0 where the mask is off.
llvm::Value* PanelEmitter::bf16_bits(ValueId id) {
  Register x = splat(b_, as(id, DType::bf16), lanes_);
  Register bits = b_.CreateBitCast(x, with_lanes_of(b_.getInt32Ty(), x->getType()));
  bits = b_.CreateTrunc(b_.CreateLShr(bits, 16), with_lanes_of(b_.getInt16Ty(), x->getType()));
  return mask_ ? b_.CreateSelect(mask_, bits, llvm::Constant::getNullValue(bits->getType())) : bits;
}

// Vector j holds the elements at depths 2j and 2j + 1 of 16 rows or columns.
std::vector<llvm::Value*> PanelEmitter::pairs_by_width(ValueId id, AxisId axis, Register first, Register depth, int64_t depths) {
  axis_[axis] = first;
  Register left = b_.CreateTrunc(b_.CreateSub(i64(kernel_.extent(axis)), first), b_.getInt32Ty());
  std::vector<uint32_t> lanes;
  for (uint32_t k = 0; k < kWide; ++k) lanes.push_back(k);
  llvm::Constant* numbers = llvm::ConstantDataVector::get(context_, lanes);
  Register mask = nullptr;
  if (kernel_.extent(axis) % kWide != 0) mask = b_.CreateICmpULT(numbers, splat(b_, left, kWide));
  std::vector<Register> single, pairs;
  for (int64_t d = 0; d < depths; ++d) {
    axis_[t_.depth] = b_.CreateAdd(depth, i64(d));
    lanes_along(axis, kWide, mask, [&] { single.push_back(bf16_bits(id)); });
  }
  while (single.size() < kDeep) single.push_back(llvm::Constant::getNullValue(single.front()->getType()));
  std::vector<int> order;
  for (int k = 0; k < kWide; ++k) order.insert(order.end(), {k, kWide + k});
  for (size_t j = 0; j < kDeep / 2; ++j)
    pairs.push_back(b_.CreateBitCast(b_.CreateShuffleVector(single[2 * j], single[2 * j + 1], order),
                                     llvm::FixedVectorType::get(b_.getInt32Ty(), kWide)));
  return pairs;
}

// Vector i holds 32 elements of depth of row or column i; those beyond the last repeat it.
std::vector<llvm::Value*> PanelEmitter::pairs_by_depth(ValueId id, AxisId axis, Register first, Register depth, int64_t depths) {
  axis_[t_.depth] = depth;
  std::vector<Register> rows;
  lanes_along(t_.depth, kDeep, first_lanes(kDeep, depths), [&] {
    for (int i = 0; i < kWide; ++i) {
      Register place = b_.CreateAdd(first, i64(i));
      axis_[axis] = kernel_.extent(axis) % kWide == 0 ? place : smaller(place, i64(kernel_.extent(axis) - 1));
      scopes_.emplace_back();
      rows.push_back(b_.CreateBitCast(bf16_bits(id), llvm::FixedVectorType::get(b_.getInt32Ty(), kWide)));
      scopes_.pop_back();
    }
  });
  return rows;
}

void PanelEmitter::pack_matrix_tiles(ValueId id, AxisId axis, Extent range, Extent depth, PanelSource source, TileOrder order,
                                     Register panel) {
  for_loop(range.begin, range.end, i64(kWide), [&](Register first) {
    Register line = b_.CreateUDiv(b_.CreateSub(first, range.begin), i64(kWide));
    Register tiles_at = b_.CreateGEP(b_.getInt8Ty(), panel, times(line, t_.tile_depths() * kTileBytes));
    tiles(depth, kDeep, t_.depths(), [&](Register p, int64_t depths) {
      std::vector<Register> rows =
          source == PanelSource::by_depth ? pairs_by_depth(id, axis, first, p, depths) : pairs_by_width(id, axis, first, p, depths);
      if ((source == PanelSource::by_depth) != (order == TileOrder::rows_of_depth)) rows = transpose(b_, std::move(rows));
      Register to = b_.CreateGEP(b_.getInt8Ty(), tiles_at, times(b_.CreateSub(p, depth.begin), kTileBytes / kDeep));
      for (int64_t r = 0; r < kWide; ++r)
        b_.CreateAlignedStore(rows[static_cast<size_t>(r)],
                              b_.CreateConstGEP1_64(b_.getInt8Ty(), to, static_cast<uint64_t>(r * kTileRowBytes)), panel_alignment());
    });
  });
}

PanelEmitter::MatrixSource PanelEmitter::matrix_left(const Block& block, Register row) {
  if (t_.left == PanelSource::in_place) {
    const Scalar& load = kernel_.values[kernel_.contraction->left];
    axis_[t_.row] = row, axis_[t_.depth] = block.depth.begin;
    scopes_.emplace_back();
    Register base = element(load.slot, place_of(load.index).scalar);
    scopes_.pop_back();
    return {base, load.index.affine.coefficient(t_.row) * bytes_of(DType::bf16), kTileRowBytes};
  }
  Register line = b_.CreateUDiv(b_.CreateSub(row, block.rows.begin), i64(kWide));
  return {b_.CreateGEP(b_.getInt8Ty(), left_panel_, times(line, t_.tile_depths() * kTileBytes)), kTileRowBytes, kTileBytes};
}

PanelEmitter::MatrixSource PanelEmitter::matrix_right(int tile) {
  return {b_.CreateGEP(b_.getInt8Ty(), right_panel_, i64(tile * t_.tile_depths() * kTileBytes)), kTileRowBytes, kTileBytes};
}

}  // namespace einc
