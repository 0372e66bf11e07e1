#include "compiler/codegen/llvm/emit_contraction.h"

#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <bit>

#include "compiler/codegen/llvm/emit_values.h"
#include "compiler/codegen/llvm/transpose.h"
#include "runtime/program/kernel_function.h"

namespace einc {
namespace {

using llvm::BasicBlock;

constexpr int kDepthUnroll = 4;
constexpr int64_t kLine = 64;          // bytes that the caches move at once
constexpr size_t kShortEpilogue = 12;  // values that are worth repeating for every vector of a tile

// A range of a block: from `begin` to `end`, known only when the code runs.
struct Extent {
  llvm::Value *begin, *end;
};
struct Block {
  Extent rows, columns, depth;
};

class ContractionEmitter : ValueEmitter {
 public:
  ContractionEmitter(llvm::Module& module, const std::string& name, const TiledContraction& plan)
      : ValueEmitter(module, name, plan.kernel), t_(plan), element_(register_type(context_, plan.dtype)) {
    lane_start_ = LaneStart::aligned;
    vector_ = llvm::FixedVectorType::get(element_, static_cast<unsigned>(t_.lanes));
    Register scratch = field(offsetof(KernelArguments, scratch), b_.getPtrTy());
    left_panel_ = scratch;
    right_panel_ = at(left_panel_, i64((t_.left_elements() + t_.lanes - 1) / t_.lanes * t_.lanes));
    partial_ = at(right_panel_, i64(t_.right_elements()));
  }

  void run() {
    Register begin = function_->getArg(1), end = function_->getArg(2), parts = i64(t_.parts);
    for_loop(b_.CreateUDiv(begin, parts), b_.CreateUDiv(b_.CreateAdd(end, i64(t_.parts - 1)), parts), i64(1), [&](Register batch) {
      decode(batch);
      Register first = b_.CreateMul(batch, parts);
      Register low = larger(b_.CreateSub(begin, first), i64(0)), high = smaller(b_.CreateSub(end, first), parts);
      const bool by_rows = t_.shared == SharedAxis::rows;
      const int64_t unit = by_rows ? t_.tile_rows : t_.tile_columns();
      const Extent own{b_.CreateMul(low, i64(unit)), smaller(b_.CreateMul(high, i64(unit)), i64(by_rows ? t_.rows() : t_.columns()))};
      if (by_rows)
        rows(own, {i64(0), i64(t_.columns())});
      else
        rows({i64(0), i64(t_.rows())}, own);
    });
    b_.CreateRetVoid();
  }

 private:
  Register smaller(Register a, Register b) { return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b); }
  Register larger(Register a, Register b) { return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, a, b); }
  Register at(Register base, Register index) { return b_.CreateInBoundsGEP(element_, base, index); }
  Register times(Register x, int64_t factor) { return b_.CreateMul(x, i64(factor), "", false, true); }
  llvm::Align alignment() const { return llvm::Align(static_cast<uint64_t>(bytes_of(t_.dtype))); }
  llvm::Align panel_alignment() const { return llvm::Align(static_cast<uint64_t>(bytes_of(t_.dtype) * t_.lanes)); }

  void decode(Register batch) {
    const std::vector<AxisId>& axes = kernel_.contraction->batch;
    for (size_t k = axes.size(); k-- > 0;) {
      axis_[axes[k]] = k == 0 ? batch : b_.CreateURem(batch, i64(kernel_.extent(axes[k])));
      if (k > 0) batch = b_.CreateUDiv(batch, i64(kernel_.extent(axes[k])));
    }
  }

  // body for each piece of `whole` of `size` elements, the last maybe shorter.
  void pieces(Extent whole, int64_t size, int64_t extent, const std::function<void(Extent)>& body) {
    if (size >= extent) return body(whole);
    for_loop(whole.begin, whole.end, i64(size), [&](Register i) { body({i, smaller(b_.CreateAdd(i, i64(size)), whole.end)}); });
  }

  // body(first, size) for the whole tiles of `block`, then for what is left at the end of the axis.
  void tiles(Extent block, int64_t size, int64_t extent, const std::function<void(Register, int64_t)>& body) {
    const int64_t rest = extent % size;
    Register whole = block.end;
    if (rest > 0) whole = b_.CreateSub(block.end, b_.CreateURem(b_.CreateSub(block.end, block.begin), i64(size)));
    if (extent >= size) for_loop(block.begin, whole, i64(size), [&](Register i) { body(i, size); });
    if (rest > 0) if_then(b_.CreateICmpSLT(whole, block.end), [&] { body(whole, rest); });
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
    if (t_.left == PanelSource::by_depth) pack_left_by_depth(block);
    if (t_.left == PanelSource::by_width) pack_left_by_rows(block);
    tiles(block.columns, t_.tile_columns(), t_.columns(), [&](Register column, int64_t width) {
      const int vectors = static_cast<int>((width + t_.lanes - 1) / t_.lanes);
      if (t_.right == PanelSource::by_depth) pack_right_by_depth(block, column, vectors);
      if (t_.right == PanelSource::by_width) pack_right_by_columns(block, column, width);
      tiles(block.rows, t_.tile_rows, t_.rows(),
            [&](Register row, int64_t count) { tile(block, row, static_cast<int>(count), column, width); });
    });
  }

  // --- panels ---

  void lanes_along(AxisId axis, int lanes, Register mask, const std::function<void()>& body) {
    lane_axis_ = axis, lanes_ = lanes, mask_ = mask;
    scopes_.emplace_back();
    body();
    scopes_.pop_back();
    lane_axis_.reset(), lanes_ = 1, mask_ = nullptr;
  }

  // The first `count` of `lanes`; null when that is all.
  Register first_lanes(int lanes, int64_t count) {
    if (count >= lanes) return nullptr;
    std::vector<llvm::Constant*> bits;
    for (int k = 0; k < lanes; ++k) bits.push_back(b_.getInt1(k < count));
    return llvm::ConstantVector::get(bits);
  }

  // An operand's value in every lane, 0 where the mask is off.
  Register operand(ValueId id) { return splat(b_, as(id, t_.dtype), lanes_); }

  // Steps of whole vectors along depth, then one with the lanes that are left.
  void along_depth(Extent depth, const std::function<void(Register offset)>& body) {
    const auto step = [&](Register p, Register mask) {
      axis_[t_.depth] = p;
      lanes_along(t_.depth, t_.lanes, mask, [&] { body(b_.CreateSub(p, depth.begin)); });
    };
    tiles(depth, t_.lanes, t_.depths(), [&](Register p, int64_t count) { step(p, first_lanes(t_.lanes, count)); });
  }

  void pack_left_by_depth(const Block& block) {
    for_loop(block.rows.begin, block.rows.end, i64(1), [&](Register i) {
      axis_[t_.row] = i;
      Register row = at(left_panel_, times(b_.CreateSub(i, block.rows.begin), t_.left_pitch()));
      along_depth(block.depth,
                  [&](Register offset) { b_.CreateAlignedStore(operand(kernel_.contraction->left), at(row, offset), panel_alignment()); });
    });
  }

  void pack_left_by_rows(const Block& block) {
    const auto lanes = static_cast<int>(std::bit_ceil(static_cast<unsigned>(std::max(t_.tile_rows, 2))));
    lane_start_ = LaneStart::anywhere;
    for_loop(block.depth.begin, block.depth.end, i64(1), [&](Register p) {
      axis_[t_.depth] = p;
      Register offset = times(b_.CreateSub(p, block.depth.begin), t_.tile_rows);
      tiles(block.rows, t_.tile_rows, t_.rows(), [&](Register i, int64_t count) {
        axis_[t_.row] = i;
        Register to = at(left_panel_, b_.CreateAdd(times(b_.CreateSub(i, block.rows.begin), t_.block_depth), offset));
        lanes_along(t_.row, lanes, first_lanes(lanes, count), [&] {
          Register x = operand(kernel_.contraction->left);
          if (mask_)
            b_.CreateMaskedStore(x, to, alignment(), mask_);
          else
            b_.CreateAlignedStore(x, to, alignment());
        });
      });
    });
    lane_start_ = LaneStart::aligned;
  }

  void pack_right_by_columns(const Block& block, Register column, int64_t width) {
    const int64_t pitch = (width + t_.lanes - 1) / t_.lanes * t_.lanes;
    for_loop(block.depth.begin, block.depth.end, i64(1), [&](Register p) {
      axis_[t_.depth] = p;
      Register row = at(right_panel_, times(b_.CreateSub(p, block.depth.begin), pitch));
      for (int64_t k = 0; k < pitch; k += t_.lanes) {
        axis_[t_.column] = b_.CreateAdd(column, i64(k));
        lanes_along(t_.column, t_.lanes, first_lanes(t_.lanes, width - k),
                    [&] { b_.CreateAlignedStore(operand(kernel_.contraction->right), at(row, i64(k)), panel_alignment()); });
      }
    });
  }

  // Squares: a vector along depth of each column, turned. Columns beyond the last repeat it; nobody reads their sums.
  void pack_right_by_depth(const Block& block, Register column, int vectors) {
    const int64_t pitch = int64_t{vectors} * t_.lanes;
    for_loop(i64(0), i64(pitch), i64(t_.lanes), [&](Register first) {
      along_depth(block.depth, [&](Register offset) {
        std::vector<Register> square;
        for (int c = 0; c < t_.lanes; ++c) {
          Register j = b_.CreateAdd(b_.CreateAdd(column, first), i64(c));
          axis_[t_.column] = t_.columns() % t_.lanes == 0 ? j : smaller(j, i64(t_.columns() - 1));
          scopes_.emplace_back();
          square.push_back(operand(kernel_.contraction->right));
          scopes_.pop_back();
        }
        square = transpose(b_, std::move(square));
        Register to = at(right_panel_, b_.CreateAdd(times(offset, pitch), first));
        for (int p = 0; p < t_.lanes; ++p) b_.CreateAlignedStore(square[static_cast<size_t>(p)], at(to, i64(p * pitch)), panel_alignment());
      });
    });
  }

  // --- the microkernel ---

  // Where an operand's first element lies and how far its rows (or columns) and its depths are apart, in elements.
  struct Source {
    Register base;
    int64_t width, depth;
  };

  Source left_source(const Block& block, Register row) {
    if (t_.left == PanelSource::in_place) return in_place(kernel_.contraction->left, t_.row, row, block);
    Register offset = b_.CreateSub(row, block.rows.begin);
    if (t_.left == PanelSource::by_depth) return {at(left_panel_, times(offset, t_.left_pitch())), t_.left_pitch(), 1};
    return {at(left_panel_, times(offset, t_.block_depth)), 1, t_.tile_rows};
  }

  Source right_source(const Block& block, Register column, int vectors) {
    if (t_.right == PanelSource::in_place) return in_place(kernel_.contraction->right, t_.column, column, block);
    return {right_panel_, 1, int64_t{vectors} * t_.lanes};
  }

  Source in_place(ValueId id, AxisId axis, Register i, const Block& block) {
    const Scalar& load = kernel_.values[id];
    axis_[axis] = i;
    axis_[t_.depth] = block.depth.begin;
    return {element(load.slot, place_of(load.index).scalar), load.index.affine.coefficient(axis), load.index.affine.coefficient(t_.depth)};
  }

  // Lines of memory that are wanted soon: `rows` rows of `lines` lines each, fetched a few per step of the depth loop from
  // line `first` on. Bytes.
  struct Stream {
    Register base, first;
    int64_t pitch, lines, rows, per_step;
  };

  void fetch(const Stream& s, Register step) {
    for (int64_t k = 0; k < s.per_step; ++k) {
      Register line = b_.CreateAdd(s.first, b_.CreateAdd(times(step, s.per_step), i64(k)));
      Register row = s.lines == 1 ? line : b_.CreateUDiv(line, i64(s.lines));
      Register place = times(smaller(row, i64(s.rows - 1)), s.pitch);
      if (s.lines > 1) place = b_.CreateAdd(place, times(b_.CreateURem(line, i64(s.lines)), kLine));
      prefetch(b_.CreateGEP(b_.getInt8Ty(), s.base, place), 0, 2);
    }
  }

  void prefetch(Register address, int write, int locality) {
    b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()},
                       {address, b_.getInt32(static_cast<unsigned>(write)), b_.getInt32(static_cast<unsigned>(locality)), b_.getInt32(1)});
  }

  // The operand's elements that the next panel of columns is made of: each tile of rows fetches its share.
  std::optional<Stream> next_panel(const Block& block, Register row, Register column) {
    const Scalar* load = t_.right == PanelSource::in_place ? nullptr : largest_load(t_, kernel_.contraction->right);
    if (!load || t_.rows() < t_.tile_rows) return std::nullopt;
    const int64_t size = bytes_of(kernel_.buffers[load->slot].dtype);
    const int64_t along_columns = load->index.affine.coefficient(t_.column) * size,
                  along_depth = load->index.affine.coefficient(t_.depth) * size;
    Register beside = b_.CreateAdd(column, i64(t_.tile_columns()));
    Register is_beside = b_.CreateICmpSLT(beside, block.columns.end), is_below = b_.CreateICmpSLT(block.depth.end, i64(t_.depths()));
    axis_[t_.column] = b_.CreateSelect(is_beside, beside, b_.CreateSelect(is_below, block.columns.begin, block.columns.end));
    axis_[t_.depth] = b_.CreateSelect(is_beside, block.depth.begin, b_.CreateSelect(is_below, block.depth.end, i64(0)));
    Stream s{element(load->slot, place_of(load->index).scalar), nullptr, along_depth, 1, t_.block_depth, 1};
    if (along_depth == size)
      s.pitch = along_columns, s.rows = t_.tile_columns(), s.lines = t_.block_depth * size / kLine + 1;
    else if (along_columns == size)
      s.lines = t_.tile_columns() * size / kLine + (along_depth % kLine != 0 ? 1 : 0);
    else
      return std::nullopt;
    const int64_t steps = std::max<int64_t>(1, t_.block_depth / kDepthUnroll), tiles = std::max<int64_t>(1, t_.block_rows / t_.tile_rows);
    s.per_step = (s.rows * s.lines + steps * tiles - 1) / (steps * tiles);
    s.first = times(b_.CreateUDiv(b_.CreateSub(row, block.rows.begin), i64(t_.tile_rows)), steps * s.per_step);
    return s;
  }

  // The left operand's elements of the next tile, where few panels share the cost of reading them for the first time.
  std::optional<Stream> next_rows(const Source& left) {
    if (t_.left != PanelSource::in_place || t_.columns() > 2 * t_.tile_columns()) return std::nullopt;
    const int64_t size = bytes_of(t_.dtype), steps = std::max<int64_t>(1, t_.block_depth / kDepthUnroll);
    Stream s{at(left.base, i64(t_.tile_rows * left.width)), i64(0), left.width * size, t_.block_depth * size / kLine + 1, t_.tile_rows, 1};
    if (left.depth != 1) s.pitch = left.depth * size, s.lines = 1, s.rows = t_.block_depth;
    s.per_step = (s.rows * s.lines + steps - 1) / steps;
    return s;
  }

  // Lines that the tile's result goes to, so that its stores find them.
  void expect_result(Register row, int count, Register column, int vectors) {
    for (const Store& store : kernel_.stages[1].stores) {
      if (store.index.affine.coefficient(t_.column) != 1 || store.mode != StoreMode::set) continue;
      axis_[t_.row] = row, axis_[t_.column] = column;
      scopes_.emplace_back();
      for (int r = 0; r < count; ++r) {
        axis_[t_.row] = b_.CreateAdd(row, i64(r));
        if (!store.index.dynamic.empty()) break;
        Register first = element(store.buffer, place_of(store.index).scalar);
        for (int v = 0; v < vectors; ++v) prefetch(b_.CreateConstGEP1_64(b_.getInt8Ty(), first, static_cast<uint64_t>(v) * kLine), 1, 3);
      }
      scopes_.pop_back();
    }
  }

  using Sums = std::vector<Register>;  // row by row

  void tile(const Block& block, Register row, int count, Register column, int64_t width) {
    const int vectors = static_cast<int>((width + t_.lanes - 1) / t_.lanes);
    const Source left = left_source(block, row), right = right_source(block, column, vectors);
    Register partial = at(partial_, b_.CreateAdd(times(b_.CreateSub(column, block.columns.begin), t_.block_rows),
                                                 times(b_.CreateSub(row, block.rows.begin), t_.tile_columns())));
    Register tail = last_lanes(right, width);
    std::vector<Stream> streams;
    if (count == t_.tile_rows) {
      if (const auto panel = next_panel(block, row, column)) streams.push_back(*panel);
      if (const auto rows = next_rows(left)) streams.push_back(*rows);
      expect_result(row, count, column, vectors);
    }
    Sums sums = multiply(left, right, block, count, vectors, tail, streams, first_sums(block, partial, count * vectors));
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

  // What must be masked when the last vector of columns is read where it lies.
  Register last_lanes(const Source&, int64_t width) {
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

  Sums multiply(const Source& left, const Source& right, const Block& block, int count, int vectors, Register tail,
                const std::vector<Stream>& streams, Sums sums) {
    Register depth = b_.CreateSub(block.depth.end, block.depth.begin);
    Register left_at = left.base, right_at = right.base;
    const auto run = [&](Register steps, int unroll) {
      BasicBlock *before = b_.GetInsertBlock(), *head = ValueEmitter::block("depth"), *inside = ValueEmitter::block("step"),
                 *after = ValueEmitter::block("summed");
      b_.CreateBr(head);
      b_.SetInsertPoint(head);
      const auto phi = [&](Register x) {
        llvm::PHINode* node = b_.CreatePHI(x->getType(), 2);
        node->addIncoming(x, before);
        return node;
      };
      llvm::PHINode *left_now = phi(left_at), *right_now = phi(right_at), *remaining = phi(steps);
      std::vector<llvm::PHINode*> now;
      for (Register s : sums) now.push_back(phi(s));
      b_.CreateCondBr(b_.CreateICmpSGT(remaining, i64(0)), inside, after);
      b_.SetInsertPoint(inside);
      Sums next(now.begin(), now.end());
      if (unroll > 1)
        for (const Stream& s : streams) fetch(s, b_.CreateSub(steps, remaining));
      for (int u = 0; u < unroll; ++u) step(left, right, left_now, right_now, u, count, vectors, tail, next);
      left_now->addIncoming(at(left_now, i64(left.depth * unroll)), inside);
      right_now->addIncoming(at(right_now, i64(right.depth * unroll)), inside);
      remaining->addIncoming(b_.CreateSub(remaining, i64(1)), inside);
      for (size_t k = 0; k < next.size(); ++k) now[k]->addIncoming(next[k], inside);
      b_.CreateBr(head);
      b_.SetInsertPoint(after);
      left_at = left_now, right_at = right_now;
      sums.assign(now.begin(), now.end());
    };
    if (t_.depths() >= kDepthUnroll) run(b_.CreateUDiv(depth, i64(kDepthUnroll)), kDepthUnroll);
    if (t_.depths() % kDepthUnroll != 0 || t_.block_depth % kDepthUnroll != 0) run(b_.CreateURem(depth, i64(kDepthUnroll)), 1);
    return sums;
  }

  // sums[r][v] += left[r] * right[v] at one depth.
  void step(const Source& left, const Source& right, Register left_at, Register right_at, int u, int count, int vectors, Register tail,
            Sums& sums) {
    std::vector<Register> wide;
    for (int v = 0; v < vectors; ++v) {
      Register from = at(right_at, i64(u * right.depth + int64_t{v} * t_.lanes));
      if (tail && v == vectors - 1)
        wide.push_back(b_.CreateMaskedLoad(vector_, from, alignment(), tail, llvm::Constant::getNullValue(vector_)));
      else
        wide.push_back(b_.CreateAlignedLoad(vector_, from, t_.right == PanelSource::in_place ? alignment() : panel_alignment()));
    }
    for (int r = 0; r < count; ++r) {
      Register x = b_.CreateAlignedLoad(element_, at(left_at, i64(u * left.depth + r * left.width)), alignment());
      Register everywhere = b_.CreateVectorSplat(static_cast<unsigned>(t_.lanes), x);
      for (int v = 0; v < vectors; ++v) {
        Register& sum = sums[static_cast<size_t>(r * vectors + v)];
        sum = b_.CreateIntrinsic(llvm::Intrinsic::fma, {vector_}, {everywhere, wide[static_cast<size_t>(v)], sum});
      }
    }
  }

  // --- what is made of the sums ---

  void epilogue(const Sums& sums, Register row, int count, Register column, int64_t width) {
    find_needed(kernel_.stages[1]);
    const auto vectors = static_cast<int>(sums.size()) / count;
    const auto short_enough = std::count(needed_.begin(), needed_.end(), true) <= static_cast<ptrdiff_t>(kShortEpilogue);
    if (short_enough) {
      for (int v = 0; v < vectors; ++v)
        in_columns(column, v, width, [&] {
          for (int r = 0; r < count; ++r) stores(b_.CreateAdd(row, i64(r)), sums[static_cast<size_t>(r * vectors + v)]);
        });
      return;
    }
    llvm::AllocaInst* kept = tile_slot();
    for (size_t k = 0; k < sums.size(); ++k)
      b_.CreateAlignedStore(sums[k], at(kept, i64(static_cast<int64_t>(k) * t_.lanes)), panel_alignment());
    for (int v = 0; v < vectors; ++v)
      in_columns(column, v, width, [&] {
        for_loop(i64(0), i64(count), i64(1), [&](Register r) {
          Register from = at(kept, b_.CreateAdd(times(r, int64_t{vectors} * t_.lanes), i64(int64_t{v} * t_.lanes)));
          stores(b_.CreateAdd(row, r), b_.CreateAlignedLoad(vector_, from, panel_alignment()));
        });
      });
  }

  llvm::AllocaInst* tile_slot() {
    IrBuilder entry(entry_, entry_->begin());
    llvm::AllocaInst* slot = entry.CreateAlloca(llvm::ArrayType::get(vector_, static_cast<uint64_t>(t_.tile_rows * t_.tile_vectors)));
    slot->setAlignment(panel_alignment());
    return slot;
  }

  // Lanes along the v-th vector of columns; values of the columns alone are made once.
  void in_columns(Register column, int v, int64_t width, const std::function<void()>& body) {
    axis_[t_.column] = b_.CreateAdd(column, i64(int64_t{v} * t_.lanes));
    lanes_along(t_.column, t_.lanes, first_lanes(t_.lanes, width - int64_t{v} * t_.lanes), [&] {
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
    for (const Store& store : kernel_.stages[1].stores) emit_store(store);
    scopes_.pop_back();
  }

  const TiledContraction& t_;
  const std::vector<uint64_t> needs_ = reductions_of_values(t_.kernel);
  llvm::Type* element_;
  llvm::FixedVectorType* vector_ = nullptr;
  Register left_panel_ = nullptr, right_panel_ = nullptr, partial_ = nullptr;
};

}  // namespace

void emit_contraction(llvm::Module& module, const std::string& name, const TiledContraction& plan) {
  ContractionEmitter(module, name, plan).run();
}

}  // namespace einc
