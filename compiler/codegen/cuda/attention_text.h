// SPDX-License-Identifier: Apache-2.0
// The body of an attention kernel as blocks of rows (gpu_plan/attention_blocks.h). Keys that the mask proves to add nothing are skipped.
#pragma once
#include <string>

#include "compiler/gpu_plan/attention_blocks.h"

namespace einc {

std::string attention_text(const Kernel& kernel, const AttentionBlocks& plan);

}  // namespace einc
