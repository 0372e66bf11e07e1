// SPDX-License-Identifier: Apache-2.0
// The data of a training run, batch by batch.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <einc/tensor.h>

namespace einc {

// An input of the program and where its next value goes: info->bytes() bytes, row-major.
struct InputSlot {
  const TensorInfo* info;
  std::byte* memory;
};

// What the inputs hold at batch n: a function of n alone, so that a run which is resumed at n goes on as if it had not stopped.
class Batches {
 public:
  Batches() = default;
  virtual ~Batches() = default;
  Batches(const Batches&) = delete;
  Batches& operator=(const Batches&) = delete;

  // Fills those of the inputs that this data gives; others stay as they are. Any number of threads may call it at once.
  // Throws RuntimeFailure (data): a value that the input's dtype cannot hold.
  virtual void fill(uint64_t batch, std::span<const InputSlot> inputs) const = 0;
  // Rounded up: where rows do not fill the last batch of an epoch, the next epoch's first ones do. 0: there is no epoch.
  virtual uint64_t batches_per_epoch() const = 0;
  // Where an element of an input comes from, "token 5000 of train.bin", for messages; empty: not from a file.
  virtual std::string origin(uint64_t batch, std::string_view input, uint64_t element) const = 0;
  // What a checkpoint remembers: equal texts mean equal batches. Holds no path.
  virtual std::string description() const = 0;
};

}  // namespace einc
