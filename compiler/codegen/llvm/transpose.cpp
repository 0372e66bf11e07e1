// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/llvm/transpose.h"

namespace einc {
namespace {

using Vectors = std::vector<llvm::Value*>;

// x0 y0 x1 y1 ... of the lower or upper half of each group of `group` lanes, by units of `unit` lanes.
llvm::Value* interleave(IrBuilder& b, llvm::Value* x, llvm::Value* y, int unit, int group, int half) {
  const int lanes = lanes_of(x->getType());
  std::vector<int> order;
  for (int first = 0; first < lanes; first += group)
    for (int u = 0; u < group / unit / 2; ++u)
      for (const int from : {0, lanes})
        for (int k = 0; k < unit; ++k) order.push_back(from + first + half * group / 2 + u * unit + k);
  return b.CreateShuffleVector(x, y, order);
}

// Every second group of four lanes of x, then of y.
llvm::Value* alternate(IrBuilder& b, llvm::Value* x, llvm::Value* y, int odd) {
  std::vector<int> order;
  for (const int from : {0, 16})
    for (const int group : {odd, odd + 2})
      for (int k = 0; k < 4; ++k) order.push_back(from + group * 4 + k);
  return b.CreateShuffleVector(x, y, order);
}

// 4 x 4 squares within groups of four lanes, then the groups: one instruction of the processor each.
Vectors transpose16(IrBuilder& b, const Vectors& rows) {
  Vectors squares(16);
  for (size_t g = 0; g < 16; g += 4) {
    llvm::Value* low01 = interleave(b, rows[g], rows[g + 1], 1, 4, 0);
    llvm::Value* high01 = interleave(b, rows[g], rows[g + 1], 1, 4, 1);
    llvm::Value* low23 = interleave(b, rows[g + 2], rows[g + 3], 1, 4, 0);
    llvm::Value* high23 = interleave(b, rows[g + 2], rows[g + 3], 1, 4, 1);
    squares[g] = interleave(b, low01, low23, 2, 4, 0);
    squares[g + 1] = interleave(b, low01, low23, 2, 4, 1);
    squares[g + 2] = interleave(b, high01, high23, 2, 4, 0);
    squares[g + 3] = interleave(b, high01, high23, 2, 4, 1);
  }
  Vectors columns(16);
  for (size_t c = 0; c < 4; ++c)
    for (const int odd : {0, 1}) {
      llvm::Value* upper = alternate(b, squares[c], squares[4 + c], odd);
      llvm::Value* lower = alternate(b, squares[8 + c], squares[12 + c], odd);
      columns[c + 4 * static_cast<size_t>(odd)] = alternate(b, upper, lower, 0);
      columns[c + 4 * static_cast<size_t>(odd) + 8] = alternate(b, upper, lower, 1);
    }
  return columns;
}

}  // namespace

std::vector<llvm::Value*> transpose(IrBuilder& b, std::vector<llvm::Value*> rows) {
  const auto lanes = rows.size();
  if (lanes == 16) return transpose16(b, rows);
  // Blocks off the diagonal change places, by blocks of growing size.
  for (size_t unit = 1; unit < lanes; unit *= 2)
    for (size_t i = 0; i < lanes; ++i) {
      if (i & unit) continue;
      std::vector<int> first, second;
      for (size_t k = 0; k < lanes; ++k) {
        const bool other = (k & unit) != 0;
        first.push_back(static_cast<int>(other ? lanes + k - unit : k));
        second.push_back(static_cast<int>(other ? lanes + k : k + unit));
      }
      llvm::Value *x = rows[i], *y = rows[i + unit];
      rows[i] = b.CreateShuffleVector(x, y, first);
      rows[i + unit] = b.CreateShuffleVector(x, y, second);
    }
  return rows;
}

}  // namespace einc
