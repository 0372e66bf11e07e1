// SPDX-License-Identifier: Apache-2.0
// A param or state filled as its initialiser says, by all threads; the same bits for any number of them.
#pragma once
#include <span>
#include <string_view>

#include "runtime/base/dtype.h"
#include "runtime/base/init.h"
#include "runtime/cpu/thread_pool.h"

namespace einc {

// `count` elements of the dtype at `memory`.
void initialize(ThreadPool& pool, InitKind init, std::span<const double> arguments, uint64_t seed, std::string_view path, DType dtype,
                int64_t count, std::byte* memory);

}  // namespace einc
