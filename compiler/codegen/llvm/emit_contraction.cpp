// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/llvm/emit_contraction.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>

#include "compiler/codegen/llvm/emit_products.h"
#include "compiler/codegen/llvm/matrix_tiles.h"

namespace einc {
namespace {

using llvm::BasicBlock;

constexpr size_t kShortEpilogue = 12;  // values that are worth repeating for every vector of a tile

class ContractionEmitter : ProductEmitter {
 public:
  ContractionEmitter(llvm::Module& module, const std::string& name, const TiledContraction& plan) : ProductEmitter(module, name, plan) {}

  void run() {
    if (t_.microkernel == Microkernel::matrix_tiles) matrix_.configure(module_), streamed_ = t_.streamed;
    sums_are_normal_ = t_.panels_in_tiles();
    Register begin = function_->getArg(1), end = function_->getArg(2), parts = i64(t_.parts);
    for_loop(b_.CreateUDiv(begin, parts), b_.CreateUDiv(b_.CreateAdd(end, i64(t_.parts - 1)), parts), i64(1), [&](Register batch) {
      decode(batch);
      Register first = b_.CreateMul(batch, parts);
      Register low = larger(b_.CreateSub(begin, first), i64(0)), high = smaller(b_.CreateSub(end, first), parts);
      const bool by_rows = t_.shared == SharedAxis::rows;
      const int64_t unit = by_rows ? t_.part_rows() : t_.tile_columns();
      const Extent own{b_.CreateMul(low, i64(unit)), smaller(b_.CreateMul(high, i64(unit)), i64(by_rows ? t_.rows() : t_.columns()))};
      if (by_rows)
        rows(own, {i64(0), i64(t_.columns())});
      else
        rows({i64(0), i64(t_.rows())}, own);
    });
    if (t_.microkernel == Microkernel::matrix_tiles) matrix_.release();
    b_.CreateRetVoid();
  }

 private:
  void decode(Register batch) {
    const std::vector<AxisId>& axes = kernel_.contraction->batch;
    for (size_t k = axes.size(); k-- > 0;) {
      axis_[axes[k]] = k == 0 ? batch : b_.CreateURem(batch, i64(kernel_.extent(axes[k])));
      if (k > 0) batch = b_.CreateUDiv(batch, i64(kernel_.extent(axes[k])));
    }
  }

  // --- blocks ---

  void rows(Extent all_rows, Extent all_columns) {
    pieces(all_rows, t_.block_rows, t_.rows(), [&](Extent row_block) {
      pieces(all_columns, t_.block_columns, t_.columns(), [&](Extent column_block) {
        pieces({i64(0), i64(t_.depths())}, t_.block_depth, t_.depths(), [&](Extent depth_block) {
          block({row_block, column_block, depth_block});
        });
      });
    });
  }

  void block(const Block& block) {
    if (t_.microkernel == Microkernel::matrix_tiles) return matrix_block(block);
    pack_left(block);
    if (t_.microkernel == Microkernel::bf16_pairs) return pairs_block(block);
    tiles(block.columns, t_.tile_columns(), t_.columns(), [&](Register column, int64_t width) {
      make_right_panel(block, column, width);
      const Source right = right_source(block, column, vectors_of(width));
      const std::optional<NextPanel> next = next_right_panel(block, column);
      tiles(block.rows, t_.tile_rows, t_.rows(),
            [&](Register row, int64_t count) { tile(block, row, static_cast<int>(count), column, width, right, next); });
      if (next) copy_rest(*next, block);
    });
  }

  // Panels of several tiles' columns, filled as those of matrix tiles are.
  void pairs_block(const Block& block) {
    for_loop(block.columns.begin, block.columns.end, i64(t_.panel_columns()), [&](Register first) {
      const Extent panel{first, smaller(b_.CreateAdd(first, i64(t_.panel_columns())), block.columns.end)};
      pack_matrix_panel(right_panel(panel, block.depth));
      tiles(panel, t_.tile_columns(), t_.columns(), [&](Register column, int64_t width) {
        const Source right{matrix_right(b_.CreateSub(column, first), 0).base, 1, t_.lanes};
        tiles(block.rows, t_.tile_rows, t_.rows(),
              [&](Register row, int64_t count) { tile(block, row, static_cast<int>(count), column, width, right, std::nullopt); });
      });
    });
  }

  // --- tiles of sums ---

  int vectors_of(int64_t width) const { return static_cast<int>((width + t_.lanes - 1) / t_.lanes); }

  void tile(const Block& block, Register row, int count, Register column, int64_t width, const Source& right,
            const std::optional<NextPanel>& next) {
    const int vectors = vectors_of(width);
    const Source left = left_source(block, row);
    Register partial = at(partial_, b_.CreateAdd(times(b_.CreateSub(column, block.columns.begin), t_.block_rows),
                                                 times(b_.CreateSub(row, block.rows.begin), t_.tile_columns())));
    Register tail = last_lanes(width);
    std::function<void(Register)> before_phase;
    if (count == t_.tile_rows && !t_.panels_in_tiles() && !left_out_) before_phase = meanwhile(block, row, column, left, next);
    Sums sums = first_sums(block, partial, count * vectors);
    sums = multiply({left, right, block, count, vectors, tail}, row, before_phase, std::move(sums));
    if (!t_.depth_in_blocks()) return epilogue(sums, row, count, column, width);
    BasicBlock *done = ValueEmitter::block("done"), *more = ValueEmitter::block("more"), *after = ValueEmitter::block("after");
    b_.CreateCondBr(b_.CreateICmpEQ(block.depth.end, i64(t_.depths())), done, more);
    b_.SetInsertPoint(done);
    epilogue(sums, row, count, column, width);
    b_.CreateBr(after);
    b_.SetInsertPoint(more);
    for (size_t k = 0; k < sums.size(); ++k)
      b_.CreateAlignedStore(sums[k], at(partial, i64(static_cast<int64_t>(k) * t_.lanes)), panel_alignment());
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
  }

  // What a whole tile does besides: it fetches what is wanted soon and copies its share of the next panel.
  std::function<void(Register)> meanwhile(const Block& block, Register row, Register column, const Source& left,
                                          const std::optional<NextPanel>& next) {
    std::vector<Stream> streams = result_lines(row, column);
    if (const auto panel = next_panel(block, row, column)) streams.push_back(*panel);
    if (const auto rows = next_rows(left)) streams.push_back(*rows);
    if (streams.empty() && !next) return {};
    Register before = times(b_.CreateUDiv(b_.CreateSub(row, block.rows.begin), i64(t_.tile_rows)), phases());
    return [this, streams, next, before](Register phase) {
      for (const Stream& s : streams) fetch(s, phase);
      if (next) copy_share(*next, share_of(b_.CreateAdd(before, phase)));
    };
  }

  // What must be masked when the last vector of columns is read where it lies.
  Register last_lanes(int64_t width) {
    if (t_.right != PanelSource::in_place || width % t_.lanes == 0) return nullptr;
    return first_lanes(t_.lanes, width % t_.lanes);
  }

  // Zeros, or what the block of depth before has left.
  Sums first_sums(const Block& block, Register partial, int count) {
    llvm::Constant* zero = llvm::Constant::getNullValue(vector_);
    Sums sums(static_cast<size_t>(count), zero);
    if (!t_.depth_in_blocks()) return sums;
    BasicBlock *before = b_.GetInsertBlock(), *again = ValueEmitter::block("again"), *start = ValueEmitter::block("start");
    b_.CreateCondBr(b_.CreateICmpEQ(block.depth.begin, i64(0)), start, again);
    b_.SetInsertPoint(again);
    Sums loaded;
    for (int k = 0; k < count; ++k)
      loaded.push_back(b_.CreateAlignedLoad(vector_, at(partial, i64(int64_t{k} * t_.lanes)), panel_alignment()));
    b_.CreateBr(start);
    b_.SetInsertPoint(start);
    for (size_t k = 0; k < sums.size(); ++k) {
      llvm::PHINode* sum = b_.CreatePHI(vector_, 2);
      sum->addIncoming(zero, before);
      sum->addIncoming(loaded[k], again);
      sums[k] = sum;
    }
    return sums;
  }

  // --- what is made of the sums ---

  void epilogue(const Sums& sums, Register row, int count, Register column, int64_t width) {
    find_needed(kernel_.stages[1]);
    const auto vectors = static_cast<int>(sums.size()) / count;
    const auto short_enough = std::count(needed_.begin(), needed_.end(), true) <= static_cast<ptrdiff_t>(kShortEpilogue);
    if (short_enough) {
      for (int v = 0; v < vectors; ++v)
        in_columns(column, int64_t{v} * t_.lanes, width, t_.lanes, [&] {
          for (int r = 0; r < count; ++r) stores(b_.CreateAdd(row, i64(r)), sums[static_cast<size_t>(r * vectors + v)]);
        });
      return;
    }
    llvm::AllocaInst* kept = tile_slot();
    for (size_t k = 0; k < sums.size(); ++k)
      b_.CreateAlignedStore(sums[k], at(kept, i64(static_cast<int64_t>(k) * t_.lanes)), panel_alignment());
    epilogue_of(kept, vectors, row, count, column, width);
  }

  // From sums in memory, whose rows are `pitch` vectors apart.
  void epilogue_of(Register kept, int pitch, Register row, int count, Register column, int64_t width) {
    // Two vectors of a matrix tile as one: what one waits for, the other fills.
    const int lanes = t_.microkernel == Microkernel::matrix_tiles && width > t_.lanes ? 2 * t_.lanes : t_.lanes;
    auto* type = llvm::FixedVectorType::get(element_, static_cast<unsigned>(lanes));
    for (int64_t k = 0; k < width; k += lanes)
      in_columns(column, k, width, lanes, [&] {
        for_loop(i64(0), i64(count), i64(1), [&](Register r) {
          Register from = at(kept, b_.CreateAdd(times(r, int64_t{pitch} * t_.lanes), i64(k)));
          stores(b_.CreateAdd(row, r), b_.CreateAlignedLoad(type, from, panel_alignment()));
        });
      });
  }

  // --- matrix tiles ---

  // A tile's results are made of its sums while the next tile is multiplied: what it takes to move and store them is then not waited for.
  void matrix_block(const Block& block) {
    pack_left(block);
    llvm::AllocaInst* slot = t_.sums_in_parts() ? nullptr : tile_slot();
    for_loop(block.columns.begin, block.columns.end, i64(t_.panel_columns()), [&](Register first) {
      const Extent panel{first, smaller(b_.CreateAdd(first, i64(t_.panel_columns())), block.columns.end)};
      pack_matrix_panel(right_panel(panel, block.depth));
      tiles(panel, t_.tile_columns(), t_.columns(), [&](Register column, int64_t width) {
        pieces(block.depth, t_.cached_depth, t_.depths(), [&](Extent depth) {
          const MatrixColumns columns{first, column, width, depth, slot};
          tiles(block.rows, t_.tile_rows, t_.rows(),
                [&](Register row, int64_t count) { matrix_tile(block, columns, row, static_cast<int>(count)); });
          finish_last(block, columns);
        });
      });
    });
  }

  // The first columns of a right panel and of a tile, the part of the block's depth that is multiplied, and where sums lie that are done
  // with at once.
  struct MatrixColumns {
    Register panel, first;
    int64_t width;
    Extent depth;
    llvm::AllocaInst* slot;
  };

  void matrix_tile(const Block& block, const MatrixColumns& columns, Register row, int count) {
    const int down = (count + TiledContraction::kTileRows - 1) / TiledContraction::kTileRows,
              across = static_cast<int>((columns.width + t_.lanes - 1) / t_.lanes);
    const int64_t pitch = t_.tile_columns() * bytes_of(t_.dtype);
    Register sums = sums_at(block, columns, row);
    const auto each_sum = [&](const auto& visit) {
      for (int r = 0; r < down; ++r)
        for (int c = 0; c < across; ++c)
          visit(2 * r + c, b_.CreateConstGEP1_64(b_.getInt8Ty(), sums,
                                                 static_cast<uint64_t>(r * TiledContraction::kTileRows * pitch + c * kCacheLine)));
    };
    each_sum([&](int tile, Register) { matrix_.clear(tile); });
    if (t_.sums_in_parts())
      if_then(b_.CreateICmpSGT(columns.depth.begin, i64(0)),
              [&] { each_sum([&](int tile, Register from) { matrix_.load(tile, from, pitch); }); });
    multiply_tiles(block, columns, row, count, across);
    if_then(b_.CreateICmpSGT(row, block.rows.begin), [&] { finish(block, columns, b_.CreateSub(row, i64(t_.tile_rows)), t_.tile_rows); });
    each_sum([&](int tile, Register to) { matrix_.store(tile, to, pitch); });
    if (count < t_.tile_rows) finish(block, columns, row, count);
  }

  Register sums_at(const Block& block, const MatrixColumns& columns, Register row) {
    if (columns.slot) return columns.slot;
    Register place = times(b_.CreateSub(row, block.rows.begin), t_.tile_columns());
    if (t_.depth_in_blocks()) place = b_.CreateAdd(place, times(b_.CreateSub(columns.first, block.columns.begin), t_.block_rows));
    return at(partial_, place);
  }

  // What is made of a tile's sums when its depth is done.
  void finish(const Block& block, const MatrixColumns& columns, Register row, int count) {
    at_last_depth(columns, [&] {
      find_needed(kernel_.stages[1]);
      epilogue_of(sums_at(block, columns, row), t_.tile_vectors, row, count, columns.first, columns.width);
    });
  }

  void finish_last(const Block& block, const MatrixColumns& columns) {
    const auto whole_tile = [&] { finish(block, columns, b_.CreateSub(block.rows.end, i64(t_.tile_rows)), t_.tile_rows); };
    if (t_.rows() % t_.tile_rows == 0) return whole_tile();
    Register rest = b_.CreateURem(b_.CreateSub(block.rows.end, block.rows.begin), i64(t_.tile_rows));
    if_then(b_.CreateICmpEQ(rest, i64(0)), whole_tile);
  }

  void at_last_depth(const MatrixColumns& columns, const std::function<void()>& body) {
    if (!t_.sums_in_parts()) return body();
    if_then(b_.CreateICmpEQ(columns.depth.end, i64(t_.depths())), body);
  }

  void multiply_tiles(const Block& block, const MatrixColumns& columns, Register row, int count, int across) {
    const int down = (count + TiledContraction::kTileRows - 1) / TiledContraction::kTileRows;
    constexpr int64_t kDepth = TiledContraction::kTileDepth;
    Register first_step = b_.CreateUDiv(b_.CreateSub(columns.depth.begin, block.depth.begin), i64(kDepth));
    const auto of_part = [&](MatrixSource source) {
      source.base = b_.CreateGEP(b_.getInt8Ty(), source.base, times(first_step, source.next));
      return source;
    };
    Register in_panel = b_.CreateSub(columns.first, columns.panel);
    const MatrixSource left = of_part(matrix_left(block, row));
    const MatrixSource right[] = {of_part(matrix_right(in_panel, 0)), of_part(matrix_right(in_panel, 1))};
    Register depth = b_.CreateSub(columns.depth.end, columns.depth.begin);
    Register steps = b_.CreateUDiv(b_.CreateAdd(depth, i64(kDepth - 1)), i64(kDepth));
    const int64_t below = t_.left == PanelSource::in_place ? TiledContraction::kTileRows * left.pitch
                                                           : t_.tile_depths() * TiledContraction::kTileRows * left.pitch;
    const int64_t rows_per_step = (count + last_steps() - 1) / last_steps();
    for_loop(i64(0), steps, i64(1), [&](Register step) {
      Register left_at = b_.CreateGEP(b_.getInt8Ty(), left.base, times(step, left.next));
      for (int r = 0; r < down; ++r)
        matrix_.load_passing(4 + r, b_.CreateConstGEP1_64(b_.getInt8Ty(), left_at, static_cast<uint64_t>(r * below)), left.pitch);
      for (int c = 0; c < across; ++c)
        matrix_.load(6 + c, b_.CreateGEP(b_.getInt8Ty(), right[c].base, times(step, right[c].next)), right[c].pitch);
      at_last_depth(columns, [&] {
        for (int64_t k = 0; k < rows_per_step; ++k)
          fetch_tile(b_.CreateAdd(row, smaller(b_.CreateAdd(times(step, rows_per_step), i64(k)), i64(count - 1))), columns.first);
      });
      matrix_.multiply(down, across);
    });
  }

  // Steps of the last part of the last block of depth.
  int64_t last_steps() const { return (t_.depths() - 1) % t_.block_depth % t_.cached_depth / TiledContraction::kTileDepth + 1; }

  llvm::AllocaInst* tile_slot() {
    IrBuilder entry(entry_, entry_->begin());
    llvm::AllocaInst* slot = entry.CreateAlloca(llvm::ArrayType::get(vector_, static_cast<uint64_t>(t_.tile_rows * t_.tile_vectors)));
    slot->setAlignment(panel_alignment());
    return slot;
  }

  // Lanes along the columns from the k-th of a tile on; values of the columns alone are made once.
  void in_columns(Register column, int64_t k, int64_t width, int lanes, const std::function<void()>& body) {
    axis_[t_.column] = b_.CreateAdd(column, i64(k));
    lanes_along(t_.column, lanes, first_lanes(lanes, width - k), [&] {
      const uint64_t of_sums = bit(t_.row);
      for (ValueId id = 0; id < kernel_.values.size(); ++id)
        if (needed_[id] && (axes_of_[id] & of_sums) == 0 && (needs_[id] == 0)) value(id);
      body();
    });
  }

  void stores(Register row, Register sum) {
    axis_[t_.row] = row;
    scopes_.emplace_back();
    results_[0] = sum;
    // Loads before stores (kernel.h, Stage): a result may alias an operand that a later store of the epilogue needs.
    for (ValueId id = 0; id < kernel_.values.size(); ++id)
      if (needed_[id] && kernel_.values[id].kind == ScalarKind::load) value(id);
    for (const Store& store : kernel_.stages[1].stores) emit_store(store);
    scopes_.pop_back();
  }

  const std::vector<uint64_t> needs_ = reductions_of_values(t_.kernel);
  const MatrixTiles matrix_{b_};
};

}  // namespace

void emit_contraction(llvm::Module& module, const std::string& name, const TiledContraction& plan) {
  ContractionEmitter(module, name, plan).run();
}

}  // namespace einc
