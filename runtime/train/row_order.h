// SPDX-License-Identifier: Apache-2.0
// Which of `count` rows (windows, examples) comes at which place of the endless sequence that batches are cut from. Every place is
// computed by itself, from Philox or a keyed permutation: there is no state, and no table that grows with the data.
#pragma once
#include <cstdint>
#include <string_view>

#include "runtime/base/philox.h"

namespace einc {

// random: each place draws among all rows. epochs: each row once, in an order of its own for every epoch. in_order: as they lie.
enum class RowOrder : uint8_t { random, epochs, in_order };

std::string_view to_string(RowOrder order);

class RowSequence {
 public:
  // `count` is at least 1.
  RowSequence(RowOrder order, uint64_t count, uint64_t seed);

  uint64_t count() const { return count_; }
  uint64_t row(uint64_t place) const;  // below count()
  // Of `rows` places each, rounded up; 0: there are no epochs.
  uint64_t batches_per_epoch(uint64_t rows) const { return order_ == RowOrder::random ? 0 : (count_ - 1) / rows + 1; }

 private:
  RowOrder order_;
  uint64_t count_;
  PhiloxKey key_;
};

// A permutation of 0 ... count - 1, another one for each key and tweak: a Feistel network of ten rounds over the next power of two,
// walked until it comes back below count (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002).
uint64_t permuted(uint64_t index, uint64_t count, PhiloxKey key, uint64_t tweak);

}  // namespace einc
