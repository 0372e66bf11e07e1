// SPDX-License-Identifier: Apache-2.0
// Which of an attention kernel's axes are a library's batches and which its heads.
#pragma once
#include <optional>
#include <vector>

#include "compiler/library/attention_problem.h"

namespace einc {

// A tensor of a problem: where it lies, the axis of its rows and that of its head's elements (none: of one number for each row), and where
// its steps go.
struct AttentionTensor {
  AttentionPlace place;
  AxisId row;
  std::optional<AxisId> inner;
  bool of_keys;
  einc_attention_steps* steps;
};

// Fills a problem's batch and heads, and every tensor's steps; queries first, then keys. As few axes as do are heads, but one at least.
// False: the axes, or rows of 16-bit elements, lie otherwise than a library takes them.
bool set_heads(const Kernel& kernel, const std::vector<AttentionTensor>& tensors, einc_attention_problem& problem);

}  // namespace einc
