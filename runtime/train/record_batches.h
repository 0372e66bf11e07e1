// SPDX-License-Identifier: Apache-2.0
// What a run trains on, as arrays, to train on the same elsewhere.
#pragma once
#include <string>
#include <vector>

#include "runtime/train/batches.h"

namespace einc {

// Writes a .npz file: of each input that the data gives an array, [count, ... the input's own axes], in the order of the batches.
// Throws RuntimeFailure: data, resource.
void record_batches(const std::string& path, const Batches& batches, const std::vector<TensorInfo>& inputs, uint64_t count);

}  // namespace einc
