// Attention kernels that a library's attention does as well: softmax over the keys of scaled products, of all keys or of those up to the
// query's position, times values; and its gradients, which two kernels make (divide_attention).
#pragma once
#include <optional>

#include "compiler/lower/kernel.h"
#include "runtime/cuda/attention_plugin.h"

namespace einc {

// An element of a kernel's buffer.
struct AttentionPlace {
  uint16_t buffer = 0;
  Affine index;
  int64_t offset() const { return index.constant; }
};

bool same(const einc_attention_steps& a, const einc_attention_steps& b);

// Of 16-bit floats whose rows lie whole, at multiples of 16 bytes.
struct AttentionForward {
  einc_attention_problem problem{};
  AttentionPlace q, k, v, o;
  std::optional<AttentionPlace> max, sum;  // of the rows, where a backward reads them
};
std::optional<AttentionForward> match_attention_forward(const Kernel& kernel);

// `rows` stores the gradient of the queries and what `keys` reads of each row, which stores those of keys and values. The problem's `o` is
// the forward's to tell.
struct AttentionBackward {
  einc_attention_problem problem{};
  AttentionPlace q, k, v, d_o, max, sum, d_k, d_v;  // in the buffers of `keys`
  AttentionPlace d_q;                               // of `rows`
  AttentionPlace log_sum;                           // where `rows` leaves a number for each row: place for log_sum instead
};
std::optional<AttentionBackward> match_attention_backward(const Kernel& rows, const Kernel& keys);

// Writes max + log(sum) of each row.
Kernel log_sum_kernel(const Kernel& keys, const AttentionBackward& match);

}  // namespace einc
