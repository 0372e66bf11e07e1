// SPDX-License-Identifier: Apache-2.0
// Tensors of other libraries, as the DLPack standard describes them (version 0.x and 1.x's unversioned struct).
#pragma once
#include <einc/tensor.h>

struct DLManagedTensor;

namespace einc {

// Where its elements lie. Throws RuntimeFailure (data) unless it is in the processor's memory, row-major without gaps, of the
// dtype and shape of `info`.
void* elements_of(DLManagedTensor* tensor, const TensorInfo& info);

// Calls its deleter; nothing for null.
void release(DLManagedTensor* tensor);

}  // namespace einc
