// SPDX-License-Identifier: Apache-2.0
// Whether a tensor holds numbers only: what a step looks at before it stores.
#pragma once
#include <cstddef>
#include <cstdint>

#include "runtime/base/dtype.h"
#include "runtime/cpu/thread_pool.h"

namespace einc {

// True for dtypes without infinities and NaNs.
bool holds_numbers(ThreadPool& pool, DType dtype, int64_t count, const std::byte* memory);

}  // namespace einc
