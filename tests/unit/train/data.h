// SPDX-License-Identifier: Apache-2.0
// Files and inputs for the tests of batches.
#pragma once
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "../data/test_files.h"
#include "runtime/train/open_batches.h"

namespace einc {

// Token i of the file is i, so that a window tells where it begins.
inline std::string counting_tokens(uint16_t count) {
  std::string bytes;
  for (uint16_t i = 0; i < count; ++i) bytes.append(reinterpret_cast<const char*>(&i), sizeof i);
  return bytes;
}

inline TensorInfo input_of(const std::string& name, std::vector<int64_t> shape, DType dtype = DType::i32) {
  return {name, dtype, std::vector<std::string>(shape.size(), "a"), std::move(shape)};
}

// What a batch gives to inputs, by name.
using Filled = std::map<std::string, std::vector<double>>;
inline Filled fill(const Batches& batches, uint64_t batch, const std::vector<TensorInfo>& inputs) {
  Filled values;
  for (const TensorInfo& input : inputs) {
    std::vector<std::byte> memory(static_cast<size_t>(input.bytes()), std::byte{0x77});
    const InputSlot slot{&input, memory.data()};
    batches.fill(batch, std::span(&slot, 1));
    values[input.name] = TensorView(input.dtype, input.shape, memory.data()).to_doubles();
  }
  return values;
}

inline DataSettings ordered(RowOrder order, uint64_t seed = 0, double validation_fraction = 0) {
  DataSettings settings;
  settings.order = order;
  settings.seed = seed;
  settings.validation_fraction = validation_fraction;
  return settings;
}

}  // namespace einc
