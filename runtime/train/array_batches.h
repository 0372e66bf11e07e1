// SPDX-License-Identifier: Apache-2.0
// Batches of rows along the first axis of arrays in .npy files: supervised data, `--data x=x.npy --data y=y.npy`. Or arrays that are one
// batch as they are, such as a graph's nodes and edges: no row of them is an example by itself, and none changes its place.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/data/npy_file.h"
#include "runtime/train/batches.h"
#include "runtime/train/row_order.h"

namespace einc {

// An input and the array that its values come from.
struct ArrayInput {
  TensorInfo info;
  std::shared_ptr<const NpyFile> array;
};

// Each array has its input's own shape: together they are the only batch there is.
bool are_whole(const std::vector<ArrayInput>& inputs);

// How many rows the arrays have; 1 when they are whole. Throws RuntimeFailure (data): they differ, a row has another shape than the
// input's, floats for an input of integers.
uint64_t count_rows(const std::vector<ArrayInput>& inputs);

// Rows [begin, end) of the arrays.
struct ArrayRange {
  uint64_t begin, end;
};

class ArrayBatches : public Batches {
 public:
  // count_rows(inputs) has been called. Throws RuntimeFailure (data) when the range is empty.
  ArrayBatches(std::vector<ArrayInput> inputs, ArrayRange range, RowOrder order, uint64_t seed);

  // Floats are rounded to the input's format. Throws RuntimeFailure (data): an integer that the input's dtype cannot hold.
  void fill(uint64_t batch, std::span<const InputSlot> inputs) const override;
  uint64_t batches_per_epoch() const override { return sequence_.batches_per_epoch(rows_); }
  std::string origin(uint64_t batch, std::string_view input, uint64_t element) const override;
  std::string description() const override;

 private:
  std::string place(uint64_t element, uint64_t row) const;

  std::vector<ArrayInput> inputs_;
  ArrayRange range_;
  RowOrder order_;
  uint64_t seed_;
  uint64_t rows_;  // of a batch; 1 when the arrays are whole: the row is all of them
  RowSequence sequence_;
};

}  // namespace einc
