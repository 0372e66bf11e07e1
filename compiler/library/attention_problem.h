// SPDX-License-Identifier: Apache-2.0
// Kernels of softmax's attention (lower/kernel.h, SoftmaxAttention) as the problems of a library: forwards, and backwards, which two
// kernels make (divide_attention). Of 16-bit floats whose rows lie whole, at multiples of 16 bytes.
#pragma once
#include <optional>

#include "compiler/lower/kernel.h"
#include "runtime/program/attention_plugin.h"

namespace einc {

// An element of a kernel's buffer.
struct AttentionPlace {
  uint16_t buffer = 0;
  Affine index;
  int64_t offset() const { return index.constant; }
};

bool same(const einc_attention_steps& a, const einc_attention_steps& b);

struct AttentionForward {
  einc_attention_problem problem{};
  AttentionPlace q, k, v, o;
  std::optional<AttentionPlace> log_sum;  // of the rows, where a backward reads it
};
std::optional<AttentionForward> attention_forward(const Kernel& kernel);

// `rows` stores the gradient of the queries, `keys` those of keys and values. The problem's `o` is the forward's to tell.
struct AttentionBackward {
  einc_attention_problem problem{};
  AttentionPlace q, k, v, d_o, log_sum, d_k, d_v;  // in the buffers of `keys`
  AttentionPlace d_q;                              // of `rows`
};
std::optional<AttentionBackward> attention_backward(const Kernel& rows, const Kernel& keys);

}  // namespace einc
