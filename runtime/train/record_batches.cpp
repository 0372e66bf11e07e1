// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record_batches.h"

#include "runtime/data/npz.h"

namespace einc {

void record_batches(const std::string& path, const Batches& batches, const std::vector<TensorInfo>& inputs, uint64_t count) {
  NamedArrays arrays;
  for (const TensorInfo& input : inputs) {
    HostArray array{input.dtype, input.shape, {}};
    array.shape.insert(array.shape.begin(), static_cast<int64_t>(count));
    array.bytes.resize(static_cast<size_t>(input.bytes()) * count);
    arrays.emplace_back(input.name, std::move(array));
  }
  std::vector<InputSlot> slots(inputs.size());
  for (uint64_t batch = 0; batch < count; ++batch) {
    for (size_t i = 0; i < inputs.size(); ++i)
      slots[i] = {&inputs[i], arrays[i].second.bytes.data() + static_cast<size_t>(inputs[i].bytes()) * batch};
    batches.fill(batch, slots);
  }
  write_npz(path, arrays);
}

}  // namespace einc
