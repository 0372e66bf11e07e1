// SPDX-License-Identifier: Apache-2.0
// A position outside its table, as kernels record it (struct Fault and index_fault in the prelude). The first launch that has one takes the
// record; of its elements the one of the least place is kept, at one place that of the first site. No lane waits for another: each word
// holds that order in its high bits and a third of the value in the rest, so that the least of each word is of the same element.
#pragma once
#include <cstdint>

#include "runtime/program/kernel_function.h"

namespace einc::cuda {

struct FaultRecord {
  static constexpr int kValueBits = 22, kSiteBits = 8;  // three of the former are a value; places beyond 34 bits count as the last

  int32_t launch = -1;
  uint32_t unused = 0;
  uint64_t words[3] = {UINT64_MAX, UINT64_MAX, UINT64_MAX};

  IndexFault fault() const {
    if (launch < 0) return {};
    constexpr uint64_t kValue = (uint64_t{1} << kValueBits) - 1, kSite = (uint64_t{1} << kSiteBits) - 1;
    const uint64_t order = words[0] >> kValueBits;
    const uint64_t value = (words[0] & kValue) | (words[1] & kValue) << kValueBits | words[2] << 2 * kValueBits;
    return {launch, static_cast<int32_t>(order & kSite), static_cast<int64_t>(order >> kSiteBits), static_cast<int64_t>(value)};
  }
};

}  // namespace einc::cuda
