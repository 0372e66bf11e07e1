// SPDX-License-Identifier: Apache-2.0
// Batches of windows into a file of tokens: `seq` tokens, and for each the one that follows it.
#pragma once
#include <memory>
#include <string>

#include "runtime/data/token_file.h"
#include "runtime/train/batches.h"
#include "runtime/train/row_order.h"

namespace einc {

// The inputs that get the tokens and, unless empty, the tokens that follow them.
struct TokenInputs {
  std::string tokens, next;
};

// rows windows of seq tokens (and one more for the last target) a batch. In random order a window begins anywhere; in epochs and in
// order, at the multiples of seq.
struct WindowShape {
  uint64_t rows, seq;
};

// The part [begin, end) of a file, in tokens.
struct TokenRange {
  uint64_t begin, end;
};

class TokenBatches : public Batches {
 public:
  // Throws RuntimeFailure (data) when the range is too short for one window.
  TokenBatches(std::shared_ptr<const TokenFile> file, TokenRange range, TokenInputs inputs, WindowShape shape, RowOrder order,
               uint64_t seed);

  void fill(uint64_t batch, std::span<const InputSlot> inputs) const override;
  uint64_t batches_per_epoch() const override { return sequence_.batches_per_epoch(shape_.rows); }
  std::string origin(uint64_t batch, std::string_view input, uint64_t element) const override;
  std::string description() const override;

  // The first token of a batch's window, counted in the file.
  uint64_t window(uint64_t batch, uint64_t row) const;

 private:
  // Into the slot from that element on, tokens first, first + 1, ... of the file.
  void store(const InputSlot& slot, uint64_t element, uint64_t first, std::span<const int32_t> tokens) const;

  std::shared_ptr<const TokenFile> file_;
  TokenRange range_;
  TokenInputs inputs_;
  WindowShape shape_;
  RowOrder order_;
  uint64_t seed_;
  RowSequence sequence_;
};

}  // namespace einc
