// SPDX-License-Identifier: Apache-2.0
// What several devices hold, combined element by element in an order that depends on their number alone: a balanced binary tree. Blocks of
// 2^k neighbours are aligned, a block without a right neighbour passes through: of 7, ((0+1)+(2+3)) + ((4+5)+6).
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/dtype.h"
#include "runtime/cpu/thread_pool.h"

namespace einc {

enum class ReduceKind : uint8_t { sum, max, min, prod, any, all };

// `count` elements at each of `terms` to `result`. Sums are made in f32 (f64, and integers in their own dtype) and rounded at the end.
// The same bits for any number of threads.
void tree_reduce(ThreadPool& pool, ReduceKind reduce, DType dtype, std::span<const std::byte* const> terms, int64_t count,
                 std::byte* result);

// Each of `count` elements times `by`, in place, in the dtype that sums are made in.
void scale_all(ThreadPool& pool, DType dtype, int64_t count, double by, std::byte* values);

}  // namespace einc
