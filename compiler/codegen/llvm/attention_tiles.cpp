// SPDX-License-Identifier: Apache-2.0
// Attention's products of bf16 on matrix tiles. The tile of scores has the keys as its rows: keys times rows of the block are made
// with the keys as they lie in memory, mixes take it turned, gathers as it is.
#include "compiler/codegen/llvm/attention_parts.h"
#include "compiler/codegen/llvm/matrix_tiles.h"
#include "compiler/codegen/llvm/transpose.h"

namespace einc {
namespace {

constexpr int64_t kWide = MatrixTiles::kRows, kDeep = 2 * kWide;
constexpr int64_t kTile = MatrixTiles::kBytes / 4, kTileRow = MatrixTiles::kRowBytes / 4;  // in elements of f32

}  // namespace

// 32 values in bf16, those of `low` first. Matrix tiles take subnormal numbers for 0, so their rounding may as well.
llvm::Value* AttentionParts::bf16_row(Register low, Register high) {
  std::vector<int> order;
  for (int k = 0; k < 2 * t_.lanes; ++k) order.push_back(k);
  return bf16_bits_of_normal(b_, b_.CreateShuffleVector(low, high, order));
}

// Lane k holds the bf16 of low's lane k and of high's.
llvm::Value* AttentionParts::bf16_pairs(Register low, Register high) {
  std::vector<int> order;
  for (int k = 0; k < t_.lanes; ++k) order.insert(order.end(), {k, t_.lanes + k});
  return words(b_.CreateShuffleVector(bf16_row(low, high), order));
}

llvm::Value* AttentionParts::words(Register halves) {
  return b_.CreateBitCast(halves, llvm::FixedVectorType::get(b_.getInt32Ty(), static_cast<unsigned>(t_.lanes)));
}

void AttentionParts::store_tile(const std::vector<Register>& rows, Register to) {
  for (size_t i = 0; i < rows.size(); ++i) store_at(rows[i], to, i64(static_cast<int64_t>(i) * kTileRow));
}

llvm::Value* AttentionParts::key_tiles_begin(Register first_key) { return b_.CreateAnd(first_key, i64(-kDeep)); }
llvm::Value* AttentionParts::key_tiles_end(Register last_key) { return b_.CreateAnd(b_.CreateAdd(last_key, i64(kDeep - 1)), i64(-kDeep)); }

// Keys of whole tiles that the block does not need add nothing.
void AttentionParts::clear_other_keys(Register pairs, const Keys& keys) {
  const auto clear = [&](Register begin, Register end) {
    for_loop(times(begin, t_.block_rows()), times(end, t_.block_rows()), i64(t_.lanes),
             [&](Register i) { store_at(llvm::Constant::getNullValue(vector_), pairs, i); });
  };
  clear(key_tiles_begin(keys.first), keys.first);
  clear(keys.last, key_tiles_end(keys.last));
}

void AttentionParts::pack_pairs(const AttentionStep& step, const Product& p, AxisId axis, Register first, int64_t count) {
  Register panel = scratch(p.right_panel);
  for_loop(i64(0), i64(count), i64(kDeep), [&](Register depth) {
    for (int64_t c = 0; c < kernel_.extent(p.inner); c += kWide) {
      axis_[p.inner] = i64(c);
      const auto values = [&](int64_t i) {
        axis_[axis] = b_.CreateAdd(b_.CreateAdd(first, depth), i64(i));
        Register x = nullptr;
        lanes_along(p.inner, nullptr, [&] { x = operand(step.right); });
        return x;
      };
      std::vector<Register> rows;
      for (int64_t i = 0; i < kDeep; i += 2) {
        Register low = values(i);
        rows.push_back(bf16_pairs(low, values(i + 1)));
      }
      store_tile(rows, at(panel, b_.CreateAdd(i64(c / kWide * count / kDeep * kTile), times(depth, kTile / kDeep))));
    }
  });
}

// Pairs along what is summed over, of 16 rows of the block in each tile.
void AttentionParts::pack_rows_in_pairs(const AttentionStep& step, const Product& p, Register first) {
  const int64_t extent = kernel_.extent(p.inner);
  for (int64_t v = 0; v < t_.row_vectors(); ++v)
    for_loop(i64(0), i64(extent), i64(kDeep), [&](Register depth) {
      std::vector<Register> rows;
      for (int64_t i = 0; i < kWide; ++i) {
        axis_[a_.row] = b_.CreateAdd(first, i64(v * kWide + i));
        const auto values = [&](int64_t offset) {
          axis_[p.inner] = b_.CreateAdd(depth, i64(offset));
          Register x = nullptr;
          lanes_along(p.inner, nullptr, [&] { x = operand(step.left); });
          return x;
        };
        Register low = values(0);
        rows.push_back(words(bf16_row(low, values(kWide))));
      }
      store_tile(transpose(b_, std::move(rows)),
                 at(scratch(p.left_panel), b_.CreateAdd(i64(v * extent / kDeep * kTile), times(depth, kTile / kDeep))));
    });
}

void AttentionParts::scores_on_tiles(const AttentionStep& step, const Product& p, Register first_row, const Keys& keys, Register to) {
  pack_rows_in_pairs(step, p, first_row);
  const MatrixTiles tiles{b_};
  const int64_t pitch = right_step(step, p, a_.key) * bytes_of(DType::bf16), steps = kernel_.extent(p.inner) / kDeep;
  for_loop(key_tiles_begin(keys.first), key_tiles_end(keys.last), i64(kDeep), [&](Register key) {
    for (int64_t v = 0; v < t_.row_vectors(); v += 2) {
      for (int s = 0; s < 4; ++s) tiles.clear(s);
      for (int64_t s = 0; s < steps; ++s) {
        for (int r = 0; r < 2; ++r)
          tiles.load(4 + r, right_at(step, p, a_.key, b_.CreateAdd(key, i64(r * kWide)), i64(0), i64(s * kDeep)), pitch);
        for (int c = 0; c < 2; ++c) tiles.load(6 + c, scratch(p.left_panel + ((v + c) * steps + s) * kTile), MatrixTiles::kRowBytes);
        tiles.multiply(2, 2);
      }
      for (int s = 0; s < 4; ++s)
        tiles.store(s, at(to, b_.CreateAdd(times(b_.CreateAdd(key, i64(s / 2 * kWide)), t_.block_rows()), i64((v + s % 2) * kWide))),
                    t_.block_rows() * 4);
    }
  });
}

// Into p.sums: the block's rows times the result's own axis.
void AttentionParts::mix_on_tiles(const Product& p, Register pairs, const Keys& keys) {
  clear_other_keys(pairs, keys);
  Register begin = key_tiles_begin(keys.first), end = key_tiles_end(keys.last);
  const int64_t line = t_.keys() / kDeep * kTile, inner = kernel_.extent(p.inner);
  for_loop(begin, end, i64(kDeep), [&](Register key) {
    for (int64_t v = 0; v < t_.row_vectors(); ++v) {
      const auto values = [&](int64_t i) {
        return vector_at(pairs, b_.CreateAdd(times(b_.CreateAdd(key, i64(i)), t_.block_rows()), i64(v * kWide)));
      };
      std::vector<Register> rows;
      for (int64_t i = 0; i < kDeep; i += 2) {
        Register low = values(i);
        rows.push_back(bf16_pairs(low, values(i + 1)));
      }
      store_tile(transpose(b_, std::move(rows)), at(scratch(p.left_panel), b_.CreateAdd(i64(v * line), times(key, kTile / kDeep))));
    }
  });
  const MatrixTiles tiles{b_};
  for (int64_t v = 0; v < t_.row_vectors(); v += 2)
    for (int64_t c = 0; c < inner; c += kDeep) {
      const int across = c + kWide < inner ? 2 : 1;
      for (int s = 0; s < 4; ++s) tiles.clear(s);
      for_loop(begin, end, i64(kDeep), [&](Register key) {
        Register offset = times(key, kTile / kDeep);
        for (int r = 0; r < 2; ++r) tiles.load(4 + r, at(scratch(p.left_panel + (v + r) * line), offset), MatrixTiles::kRowBytes);
        for (int k = 0; k < across; ++k)
          tiles.load(6 + k, at(scratch(p.right_panel + (c / kWide + k) * line), offset), MatrixTiles::kRowBytes);
        tiles.multiply(2, across);
      });
      for (int r = 0; r < 2; ++r)
        for (int k = 0; k < across; ++k) tiles.store(2 * r + k, scratch(p.sums + (v + r) * kWide * p.pitch + c + k * kWide), p.pitch * 4);
    }
}

// Added to p.sums: keys times the result's own axis.
void AttentionParts::gather_on_tiles(const Product& p, Register pairs, const Keys& keys) {
  clear_other_keys(pairs, keys);
  Register begin = key_tiles_begin(keys.first), end = key_tiles_end(keys.last), left = scratch(p.left_panel);
  for_loop(times(begin, t_.block_rows()), times(end, t_.block_rows()), i64(kDeep), [&](Register i) {
    Register low = vector_at(pairs, i);
    store_at(words(bf16_row(low, vector_at(pairs, b_.CreateAdd(i, i64(kWide))))), left, b_.CreateUDiv(i, i64(2)));
  });
  const MatrixTiles tiles{b_};
  const int64_t steps = t_.block_rows() / kDeep, inner = kernel_.extent(p.inner);
  for_loop(begin, end, i64(kDeep), [&](Register key) {
    for (int64_t c = 0; c < inner; c += kDeep) {
      const int across = c + kWide < inner ? 2 : 1;
      const auto sums = [&](int r, int k) {
        return at(scratch(p.sums), b_.CreateAdd(times(b_.CreateAdd(key, i64(r * kWide)), p.pitch), i64(c + k * kWide)));
      };
      const auto each_sum = [&](const auto& visit) {
        for (int r = 0; r < 2; ++r)
          for (int k = 0; k < across; ++k) visit(2 * r + k, sums(r, k));
      };
      each_sum([&](int tile, Register from) { tiles.load(tile, from, p.pitch * 4); });
      for (int64_t s = 0; s < steps; ++s) {
        for (int r = 0; r < 2; ++r)
          tiles.load(4 + r, at(left, b_.CreateAdd(times(b_.CreateAdd(key, i64(r * kWide)), t_.block_rows() / 2), i64(s * kTileRow))),
                     t_.block_rows() * 2);
        for (int k = 0; k < across; ++k)
          tiles.load(6 + k, scratch(p.right_panel + ((c / kWide + k) * steps + s) * kTile), MatrixTiles::kRowBytes);
        tiles.multiply(2, across);
      }
      each_sum([&](int tile, Register to) { tiles.store(tile, to, p.pitch * 4); });
    }
  });
}

}  // namespace einc
