// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/llvm/emit_attention.h"

#include <llvm/IR/Intrinsics.h>

#include <algorithm>

#include "compiler/codegen/llvm/attention_parts.h"
#include "compiler/codegen/llvm/matrix_tiles.h"
#include "runtime/base/check.h"

namespace einc {
namespace {

class AttentionEmitter : AttentionParts {
 public:
  AttentionEmitter(llvm::Module& module, const std::string& name, const TiledAttention& plan) : AttentionParts(module, name, plan) {
    for (const AttentionStep& step : a_.steps)
      if (step.part == AttentionPart::fold) folds_[step.reduction] = entry_array(t_.block_rows());
  }

  void run() {
    const MatrixTiles matrix{b_};
    if (t_.has_matrix_tiles()) matrix.configure(module_);
    Register begin = function_->getArg(1), end = function_->getArg(2), parts = i64(t_.parts());
    for_loop(b_.CreateUDiv(begin, parts), b_.CreateUDiv(b_.CreateAdd(end, i64(t_.parts() - 1)), parts), i64(1), [&](Register batch) {
      decode(batch);
      for_each_product([&](const AttentionStep& step, const Product& p) {
        if (step.part == AttentionPart::gather) clear(p);
        if (step.part == AttentionPart::gather || p.in_place) return;
        if (p.on_matrix_tiles)
          pack_pairs(step, p, a_.key, i64(0), t_.keys());
        else
          pack_right(step, p, a_.key, i64(0), i64(t_.keys()));
      });
      if (t_.gathers()) {
        turns(0);
      } else {
        Register first = b_.CreateMul(batch, parts);
        blocks(larger(b_.CreateSub(begin, first), i64(0)), smaller(b_.CreateSub(end, first), parts));
      }
      for_each_product([&](const AttentionStep& step, const Product& p) {
        if (step.part == AttentionPart::gather) store_gathered(step, p);
      });
    });
    if (t_.has_matrix_tiles()) matrix.release();
    b_.CreateRetVoid();
  }

 private:
  // A block of rows and the keys that it needs.
  struct Block {
    Register first, count;
    Register first_key, last_key;
    Register keys = nullptr;
  };

  llvm::AllocaInst* entry_array(int64_t elements) {
    IrBuilder entry(entry_, entry_->begin());
    llvm::AllocaInst* slot = entry.CreateAlloca(llvm::ArrayType::get(entry.getFloatTy(), static_cast<uint64_t>(elements)));
    slot->setAlignment(llvm::Align(64));
    return slot;
  }

  void for_each_product(const std::function<void(const AttentionStep&, const Product&)>& body) {
    for (size_t i = 0; i < a_.steps.size(); ++i)
      if (a_.steps[i].part != AttentionPart::fold) body(a_.steps[i], t_.products[i]);
  }

  void decode(Register batch) {
    for (size_t k = a_.batch.size(); k-- > 0;) {
      const int64_t extent = kernel_.extent(a_.batch[k]);
      axis_[a_.batch[k]] = k == 0 ? batch : b_.CreateURem(batch, i64(extent));
      if (k > 0) batch = b_.CreateUDiv(batch, i64(extent));
    }
  }

  void turns(size_t level) {
    if (level == a_.turns.size()) return blocks(i64(0), i64(t_.blocks));
    for_loop(i64(0), i64(kernel_.extent(a_.turns[level])), i64(1), [&](Register i) {
      axis_[a_.turns[level]] = i;
      turns(level + 1);
    });
  }

  void blocks(Register low, Register high) {
    for_loop(low, high, i64(1), [&](Register i) {
      Block block;
      block.first = times(i, t_.block_rows());
      block.count = t_.rows() % t_.block_rows() == 0 ? static_cast<Register>(i64(t_.block_rows()))
                                                     : smaller(i64(t_.block_rows()), b_.CreateSub(i64(t_.rows()), block.first));
      find_keys(block);
      run(block);
    });
  }

  // As keys_of does.
  void find_keys(Block& block) {
    block.first_key = i64(0), block.last_key = i64(t_.keys());
    Register last_row = b_.CreateSub(b_.CreateAdd(block.first, block.count), i64(1));
    const auto limit = [&](const KeyBound& b, Register row) {
      Register line = b_.CreateAdd(times(row, b.factor), i64(b.limit));
      return b.base == kNoValue ? line : b_.CreateAdd(line, as(b.base, DType::i64));
    };
    for (const KeyBound& b : a_.bounds) {
      Register from = limit(b, block.first), to = limit(b, last_row), unit = i64(a_.block_keys);
      if (b.side == BoundSide::least) {
        Register key = larger(smaller(from, to), i64(0));
        block.first_key = larger(block.first_key, b_.CreateMul(b_.CreateUDiv(key, unit), unit));
      } else {
        Register end = larger(b_.CreateAdd(larger(from, to), i64(1)), i64(0));
        Register whole = b_.CreateMul(b_.CreateUDiv(b_.CreateAdd(end, i64(a_.block_keys - 1)), unit), unit);
        block.last_key = smaller(block.last_key, whole);
      }
    }
    // Where rows may be without keys a lower bound may lie above the upper one: the loops over keys run from first to last.
    if (std::ranges::any_of(a_.bounds, [](const KeyBound& b) { return b.side == BoundSide::least; }))
      block.last_key = larger(block.last_key, block.first_key);
    block.keys = b_.CreateSub(block.last_key, block.first_key);
  }

  void run(const Block& block) {
    for_each_product([&](const AttentionStep& step, const Product& p) {
      if (step.part != AttentionPart::scores) return;
      if (t_.has_one_row())
        scores_of_row(step, p, block);
      else
        scores(step, p, block);
    });
    for (const AttentionLoop& loop : t_.schedule.loops) {
      if (t_.has_one_row()) key_loop_of_row(loop, block);
      for (int v = 0; v < t_.row_vectors(); ++v) key_loop(loop, block, v);
    }
    for_each_product([&](const AttentionStep& step, const Product& p) {
      if (step.part == AttentionPart::mix) mix(step, p, block);
      if (step.part == AttentionPart::gather) gather(step, p, block);
    });
  }

  // --- products ---

  void scores(const AttentionStep& step, const Product& p, const Block& block) {
    Register to = tile(t_.schedule.scores_tile.at(step.reduction));
    if (p.on_matrix_tiles) return scores_on_tiles(step, p, block.first, {block.first_key, block.last_key}, to);
    pack_left(step, p, block.first, block.count);
    Register panel = scratch(p.left_panel);
    const int64_t pitch = t_.block_rows();
    tiles(block.first_key, block.last_key, p.tile_rows, t_.keys(), [&](Register key, int64_t count) {
      for (int v = 0; v < t_.row_vectors(); v += p.tile_vectors) {
        const NarrowOperand narrow{right_at(step, p, a_.key, key, i64(0), i64(0)), right_step(step, p, a_.key), inner_step(step, p)};
        const WideOperand wide{at(panel, i64(int64_t{v} * t_.lanes)), pitch, llvm::Align(static_cast<uint64_t>(t_.lanes) * 4)};
        const int rows = static_cast<int>(count), vectors = std::min(p.tile_vectors, t_.row_vectors() - v);
        const Sums sums = multiply(narrow, wide, rows, vectors, i64(kernel_.extent(p.inner)), nullptr, zeros(rows * vectors));
        for (int i = 0; i < rows; ++i)
          for (int k = 0; k < vectors; ++k)
            store_at(sums[static_cast<size_t>(i * vectors + k)], to,
                     b_.CreateAdd(times(b_.CreateAdd(key, i64(i)), pitch), i64(int64_t{v + k} * t_.lanes)));
      }
    });
  }

  void scores_of_row(const AttentionStep& step, const Product& p, const Block& block) {
    pack_row(step, p);
    Register to = tile(t_.schedule.scores_tile.at(step.reduction));
    for_loop(block.first_key, block.last_key, i64(t_.lanes), [&](Register key) { store_at(row_scores(step, p, key), to, key); });
  }

  // The tile that holds the left operand of a mix or gather.
  Register left_tile(const AttentionStep& step) {
    const auto kept = t_.schedule.kept_tile.find(step.left);
    if (kept != t_.schedule.kept_tile.end()) return tile(kept->second);
    return tile(t_.schedule.scores_tile.at(kernel_.values[step.left].slot));
  }

  void mix(const AttentionStep& step, const Product& p, const Block& block) {
    Register left = left_tile(step);
    if (p.on_matrix_tiles) {
      mix_on_tiles(p, left, {block.first_key, block.last_key});
      for_loop(i64(0), block.count, i64(1), [&](Register row) {
        axis_[a_.row] = b_.CreateAdd(block.first, row);
        for (int64_t column = 0; column < kernel_.extent(p.inner); column += t_.lanes)
          store_mixed(step, p, row, column, vector_at(scratch(p.sums), b_.CreateAdd(times(row, p.pitch), i64(column))));
      });
      return;
    }
    columns(p, [&](int64_t column, int vectors, int64_t width) {
      const auto rows = [&](Register row, int count) {
        const NarrowOperand narrow{at(left, b_.CreateAdd(times(block.first_key, t_.block_rows()), row)), 1, t_.block_rows()};
        const WideOperand wide =
            wide_right(step, p, right_at(step, p, a_.key, block.first_key, i64(0), i64(column)), right_step(step, p, a_.key));
        Register tail = p.in_place ? first_lanes(width - int64_t{vectors - 1} * t_.lanes) : nullptr;
        const Sums sums = multiply(narrow, wide, count, vectors, block.keys, tail, zeros(count * vectors));
        for (int i = 0; i < count; ++i) {
          axis_[a_.row] = b_.CreateAdd(b_.CreateAdd(block.first, row), i64(i));
          Register at_row = b_.CreateAdd(row, i64(i));
          for (int v = 0; v < vectors; ++v)
            store_mixed(step, p, at_row, column + int64_t{v} * t_.lanes, sums[static_cast<size_t>(i * vectors + v)]);
        }
      };
      const bool divides = t_.rows() % p.tile_rows == 0 && t_.block_rows() % p.tile_rows == 0;
      Register whole = divides ? block.count : b_.CreateSub(block.count, b_.CreateURem(block.count, i64(p.tile_rows)));
      for_loop(i64(0), whole, i64(p.tile_rows), [&](Register row) { rows(row, p.tile_rows); });
      if (!divides) for_loop(whole, block.count, i64(1), [&](Register row) { rows(row, 1); });
    });
  }

  // Of row number `row` of the block.
  void store_mixed(const AttentionStep& step, const Product& p, Register row, int64_t column, Register sum) {
    store_along(step, p, column, sum, [&] {
      for (const auto& [fold, array] : folds_) results_[fold] = b_.CreateLoad(b_.getFloatTy(), at(array, row));
    });
  }

  void gather(const AttentionStep& step, const Product& p, const Block& block) {
    if (p.on_matrix_tiles) {
      pack_pairs(step, p, a_.row, block.first, t_.block_rows());
      return gather_on_tiles(p, left_tile(step), {block.first_key, block.last_key});
    }
    if (!p.in_place) pack_right(step, p, a_.row, block.first, b_.CreateAdd(block.first, block.count));
    Register left = left_tile(step), kept = scratch(p.sums);
    columns(p, [&](int64_t column, int vectors, int64_t width) {
      Register tail = p.in_place ? first_lanes(width - int64_t{vectors - 1} * t_.lanes) : nullptr;
      tiles(block.first_key, block.last_key, p.tile_rows, t_.keys(), [&](Register key, int64_t count) {
        const NarrowOperand narrow{at(left, times(key, t_.block_rows())), t_.block_rows(), 1};
        const WideOperand wide =
            wide_right(step, p, right_at(step, p, a_.row, block.first, block.first, i64(column)), right_step(step, p, a_.row));
        const auto place = [&](int i, int v) {
          return b_.CreateAdd(times(b_.CreateAdd(key, i64(i)), p.pitch), i64(column + int64_t{v} * t_.lanes));
        };
        Sums sums;
        for (int i = 0; i < count; ++i)
          for (int v = 0; v < vectors; ++v) sums.push_back(vector_at(kept, place(i, v)));
        sums = multiply(narrow, wide, static_cast<int>(count), vectors, block.count, tail, std::move(sums));
        for (int i = 0; i < count; ++i)
          for (int v = 0; v < vectors; ++v) store_at(sums[static_cast<size_t>(i * vectors + v)], kept, place(i, v));
      });
    });
  }

  void clear(const Product& p) {
    Register sums = scratch(p.sums);
    for_loop(i64(0), i64(t_.keys() * p.pitch), i64(t_.lanes),
             [&](Register i) { store_at(llvm::Constant::getNullValue(vector_), sums, i); });
  }

  void store_gathered(const AttentionStep& step, const Product& p) {
    Register sums = scratch(p.sums);
    for_loop(i64(0), i64(t_.keys()), i64(1), [&](Register key) {
      axis_[a_.key] = key;
      for (int64_t column = 0; column < kernel_.extent(p.inner); column += t_.lanes)
        store_along(step, p, column, vector_at(sums, b_.CreateAdd(times(key, p.pitch), i64(column))), [] {});
    });
  }

  // A result's stores for the vector that starts at `column` of its own axis.
  void store_along(const AttentionStep& step, const Product& p, int64_t column, Register sum, const std::function<void()>& prepare) {
    axis_[p.inner] = i64(column);
    lanes_along(p.inner, first_lanes(kernel_.extent(p.inner) - column), [&] {
      prepare();
      results_[step.reduction] = sum;
      for (const Store& store : step.stores) emit_store(store);
    });
  }

  // --- loops over the keys ---

  void key_loop(const AttentionLoop& loop, const Block& block, int v) {
    const int64_t offset = int64_t{v} * t_.lanes;
    axis_[a_.row] = b_.CreateAdd(block.first, i64(offset));
    lanes_along(a_.row, rows_mask(block.count, v), [&] {
      for (const auto& [fold, array] : folds_) results_[fold] = vector_at(array, i64(offset));
      std::vector<llvm::AllocaInst*> sums;
      for (uint16_t r : loop.folds) {
        IrBuilder entry(entry_, entry_->begin());
        sums.push_back(entry.CreateAlloca(vector_));
        b_.CreateStore(identity(kernel_.reductions[r].fold), sums.back());
      }
      for (ValueId id = 0; id < kernel_.values.size(); ++id)
        if (loop.made[id] && !(axes_of_[id] >> a_.key & 1)) value(id);
      for_loop(block.first_key, block.last_key, i64(1), [&](Register key) {
        axis_[a_.key] = key;
        Register place = b_.CreateAdd(times(key, t_.block_rows()), i64(offset));
        for (const auto& [r, index] : t_.schedule.scores_tile) results_[r] = vector_at(tile(index), place);
        for (ValueId id : loop.read)
          scopes_.back()[id] =
              convert(b_, vector_at(tile(t_.schedule.kept_tile.at(id)), place), DType::f32, compute_dtype(kernel_.values[id].dtype));
        for (size_t k = 0; k < sums.size(); ++k) {
          const Accumulation& r = kernel_.reductions[loop.folds[k]];
          b_.CreateStore(combine(r.fold, b_.CreateLoad(vector_, sums[k]), splat(b_, as(r.value, DType::f32), t_.lanes)), sums[k]);
        }
        std::vector<Register> kept;
        for (ValueId id : loop.kept) kept.push_back(splat(b_, as(id, DType::f32), t_.lanes));
        for (size_t k = 0; k < kept.size(); ++k) store_at(kept[k], tile(t_.schedule.kept_tile.at(loop.kept[k])), place);
      });
      for (size_t k = 0; k < sums.size(); ++k) {
        results_[loop.folds[k]] = b_.CreateLoad(vector_, sums[k]);
        store_at(results_[loop.folds[k]], folds_.at(loop.folds[k]), i64(offset));
      }
      for (const AttentionStep& step : a_.steps)
        if (std::find(loop.folds.begin(), loop.folds.end(), step.reduction) != loop.folds.end())
          for (const Store& store : step.stores) emit_store(store);
    });
  }

  // The same of one row, lanes along its keys.
  void key_loop_of_row(const AttentionLoop& loop, const Block& block) {
    axis_[a_.row] = i64(0);
    for (const auto& [fold, array] : folds_) results_[fold] = b_.CreateLoad(b_.getFloatTy(), array);
    std::vector<llvm::AllocaInst*> sums;
    for (uint16_t r : loop.folds) {
      IrBuilder entry(entry_, entry_->begin());
      sums.push_back(entry.CreateAlloca(vector_));
      b_.CreateStore(identity(kernel_.reductions[r].fold), sums.back());
    }
    scopes_.emplace_back();
    for (ValueId id = 0; id < kernel_.values.size(); ++id)
      if (loop.made[id] && !(axes_of_[id] >> a_.key & 1)) value(id);
    for_loop(block.first_key, block.last_key, i64(t_.lanes), [&](Register key) {
      axis_[a_.key] = key;
      Register mask = lanes_before(key, block.last_key, t_.keys());
      lanes_along(a_.key, mask, [&] {
        for (const auto& [r, index] : t_.schedule.scores_tile) results_[r] = vector_at(tile(index), key);
        for (ValueId id : loop.read)
          scopes_.back()[id] =
              convert(b_, vector_at(tile(t_.schedule.kept_tile.at(id)), key), DType::f32, compute_dtype(kernel_.values[id].dtype));
        for (size_t k = 0; k < sums.size(); ++k) {
          const Accumulation& r = kernel_.reductions[loop.folds[k]];
          Register x = splat(b_, as(r.value, DType::f32), t_.lanes);
          if (mask) x = b_.CreateSelect(mask, x, identity(r.fold));
          b_.CreateStore(combine(r.fold, b_.CreateLoad(vector_, sums[k]), x), sums[k]);
        }
        std::vector<Register> kept;
        for (ValueId id : loop.kept) kept.push_back(splat(b_, as(id, DType::f32), t_.lanes));
        for (size_t k = 0; k < kept.size(); ++k) store_at(kept[k], tile(t_.schedule.kept_tile.at(loop.kept[k])), key);
      });
    });
    scopes_.pop_back();
    for (size_t k = 0; k < sums.size(); ++k)
      b_.CreateStore(folded(kernel_.reductions[loop.folds[k]].fold, b_.CreateLoad(vector_, sums[k])), folds_.at(loop.folds[k]));
  }

  // All lanes of a vector, by halves.
  Register folded(Fold fold, Register x) {
    for (int half = t_.lanes / 2; half > 0; half /= 2) {
      std::vector<int> upper;
      for (int k = 0; k < t_.lanes; ++k) upper.push_back(k < half ? k + half : k);
      x = combine(fold, x, b_.CreateShuffleVector(x, upper));
    }
    return b_.CreateExtractElement(x, uint64_t{0});
  }

  llvm::Constant* identity(Fold fold) {
    if (fold == Fold::max || fold == Fold::min) return llvm::ConstantFP::getInfinity(vector_, fold == Fold::max);
    EINC_CHECK(fold == Fold::sum || fold == Fold::prod, "attention folds by sums, products and extremes");
    return number(vector_, fold == Fold::prod ? 1 : 0);
  }

  std::map<uint16_t, llvm::AllocaInst*> folds_;
};

}  // namespace

void emit_attention(llvm::Module& module, const std::string& name, const TiledAttention& plan) {
  AttentionEmitter(module, name, plan).run();
}

}  // namespace einc
