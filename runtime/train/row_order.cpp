// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/row_order.h"

#include <bit>

#include "runtime/base/check.h"
#include "runtime/base/random.h"

namespace einc {

__extension__ using WideProduct = unsigned __int128;

std::string_view to_string(RowOrder order) {
  switch (order) {
    case RowOrder::random:
      return "random";
    case RowOrder::epochs:
      return "epochs";
    case RowOrder::in_order:
      return "in order";
  }
  return "";
}

RowSequence::RowSequence(RowOrder order, uint64_t count, uint64_t seed)
    : order_(order), count_(count), key_(random_key(seed, "order of the data")) {
  EINC_CHECK(count > 0, "a sequence of no rows");
}

uint64_t RowSequence::row(uint64_t place) const {
  if (order_ == RowOrder::in_order) return place % count_;
  if (order_ == RowOrder::epochs) return permuted(place % count_, count_, key_, place / count_);
  // The high half of (64 random bits times count): no place is likelier than another by more than count / 2^64.
  const PhiloxCounter words = random_words(key_, 0, place);
  const uint64_t bits = uint64_t{words[1]} << 32 | words[0];
  return static_cast<uint64_t>(static_cast<WideProduct>(bits) * count_ >> 64);
}

uint64_t permuted(uint64_t index, uint64_t count, PhiloxKey key, uint64_t tweak) {
  const int bits = std::bit_width(count - 1), narrow = bits / 2;
  uint64_t value = index;
  do {
    // The halves trade places, and widths, in each of an even number of rounds.
    int right_bits = narrow;
    uint64_t right = value & ((uint64_t{1} << right_bits) - 1), left = value >> right_bits;
    for (uint32_t round = 0; round < 10; ++round) {
      const int left_bits = bits - right_bits;
      const PhiloxCounter words =
          philox({static_cast<uint32_t>(right), round + 1, static_cast<uint32_t>(tweak), static_cast<uint32_t>(tweak >> 32)}, key);
      const uint64_t mixed = left ^ (words[0] & ((uint64_t{1} << left_bits) - 1));
      left = right;
      right = mixed;
      right_bits = left_bits;
    }
    value = left << right_bits | right;
  } while (value >= count);
  return value;
}

}  // namespace einc
