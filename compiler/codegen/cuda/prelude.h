// SPDX-License-Identifier: Apache-2.0
// CUDA C++ in front of all generated kernels: the text of prelude.cu, embedded.
#pragma once
#include <string_view>

namespace einc {

std::string_view cuda_prelude();

}  // namespace einc
