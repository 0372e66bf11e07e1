// SPDX-License-Identifier: Apache-2.0
// The body of attention on tensor cores (gpu_plan/attention_tiles.h).
#pragma once
#include <string>

#include "compiler/gpu_plan/attention_tiles.h"

namespace einc {

std::string attention_tiles_text(const Kernel& kernel, const AttentionTiles& tiles);

}  // namespace einc
