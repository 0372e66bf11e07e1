// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/row_order.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

using namespace einc;

namespace {

// How many standard deviations chi-square of these counts lies above what equal chances give.
double excess(const std::vector<uint64_t>& counts) {
  const double draws = static_cast<double>(std::accumulate(counts.begin(), counts.end(), uint64_t{0}));
  const double expected = draws / static_cast<double>(counts.size()), freedom = static_cast<double>(counts.size() - 1);
  double sum = 0;
  for (const uint64_t count : counts) sum += std::pow(static_cast<double>(count) - expected, 2) / expected;
  return (sum - freedom) / std::sqrt(2 * freedom);
}

std::vector<uint64_t> rows_of(const RowSequence& sequence, uint64_t first, uint64_t places) {
  std::vector<uint64_t> rows;
  for (uint64_t i = 0; i < places; ++i) rows.push_back(sequence.row(first + i));
  return rows;
}

}  // namespace

TEST_CASE("random order: every row equally likely, pairs of neighbours too") {
  const RowSequence sequence(RowOrder::random, 100, 7);
  std::vector<uint64_t> counts(100), pairs(100);
  uint64_t before = 0;
  for (uint64_t i = 0; i < 200000; ++i) {
    const uint64_t row = sequence.row(i);
    REQUIRE(row < 100);
    ++counts[row];
    ++pairs[before / 10 * 10 + row / 10];
    before = row;
  }
  CHECK(std::abs(excess(counts)) < 4);
  CHECK(std::abs(excess(pairs)) < 4);
}

TEST_CASE("random order reaches rows above 2^32") {
  const uint64_t many = uint64_t{1} << 40;
  const RowSequence sequence(RowOrder::random, many, 7);
  std::vector<uint64_t> counts(64);
  for (uint64_t i = 0; i < 64000; ++i) ++counts[sequence.row(i) >> 34];
  CHECK(std::abs(excess(counts)) < 4);
}

TEST_CASE("epochs: every row exactly once in each, in another order") {
  for (const uint64_t count : {1, 2, 3, 5, 8, 64, 65, 1000, 4097}) {
    const RowSequence sequence(RowOrder::epochs, count, 3);
    std::vector<uint64_t> first = rows_of(sequence, 0, count), second = rows_of(sequence, count, count);
    if (count > 8) CHECK(first != second);
    for (std::vector<uint64_t>* epoch : {&first, &second}) {
      std::sort(epoch->begin(), epoch->end());
      for (uint64_t i = 0; i < count; ++i) REQUIRE((*epoch)[i] == i);
    }
  }
}

TEST_CASE("epochs: each place of an epoch holds each row equally often") {
  for (const uint64_t count : {5, 37, 256}) {
    const RowSequence sequence(RowOrder::epochs, count, 11);
    std::vector<uint64_t> counts(count), followers(count);
    for (uint64_t epoch = 0; epoch < 500 * count; ++epoch) {
      const uint64_t first = sequence.row(epoch * count), second = sequence.row(epoch * count + 1);
      ++counts[first];
      ++followers[(second + count - first) % count];
    }
    followers.erase(followers.begin());  // no row follows itself
    CHECK(std::abs(excess(counts)) < 4);
    CHECK(std::abs(excess(followers)) < 4);
  }
}

TEST_CASE("epochs need no memory: the last of 2^63 rows is permuted as fast as the first") {
  const uint64_t count = (uint64_t{1} << 63) + 1;
  const RowSequence sequence(RowOrder::epochs, count, 0);
  CHECK(sequence.row(0) < count);
  CHECK(sequence.row(count - 1) < count);
  CHECK(sequence.row(0) != sequence.row(count - 1));
}

TEST_CASE("a place's row depends on the seed, and on nothing asked before") {
  for (const RowOrder order : {RowOrder::random, RowOrder::epochs}) {
    const RowSequence one(order, 1000, 1), same(order, 1000, 1), other(order, 1000, 2);
    CHECK(rows_of(one, 0, 50) != rows_of(other, 0, 50));
    for (const uint64_t place : {999, 17, 123456, 0}) CHECK(one.row(place) == same.row(place));
    CHECK(rows_of(one, 17, 3) == rows_of(same, 17, 3));
  }
  CHECK(rows_of(RowSequence(RowOrder::in_order, 3, 9), 0, 7) == std::vector<uint64_t>{0, 1, 2, 0, 1, 2, 0});
}

TEST_CASE("batches of an epoch are rounded up") {
  CHECK(RowSequence(RowOrder::random, 10, 0).batches_per_epoch(3) == 0);
  CHECK(RowSequence(RowOrder::epochs, 10, 0).batches_per_epoch(3) == 4);
  CHECK(RowSequence(RowOrder::in_order, 9, 0).batches_per_epoch(3) == 3);
}
