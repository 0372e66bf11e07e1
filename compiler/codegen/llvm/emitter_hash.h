// SPDX-License-Identifier: Apache-2.0
// What tells objects of other emitters apart in the cache. Defined in a file that the build writes.
#pragma once
#include <string_view>

namespace einc {

// SHA-256 of the sources that plan and emit kernels.
std::string_view emitter_hash();

}  // namespace einc
