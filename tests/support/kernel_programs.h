// SPDX-License-Identifier: Apache-2.0
// Programs that together have every kind of generated CUDA kernel, small: what runs under sanitizers is slow.
#pragma once
#include "tests/support/agree.h"
#include "tests/support/run_cuda.h"

namespace einc {

inline constexpr const char* kKernelPrograms[] = {
    // rows, columns, a contraction whose operands lie every way round, an optimizer's elementwise updates
    R"(import nn
dim batch = 37, width = 70, hidden = 33
input x: [batch width]
param w: [width hidden] ~ normal(std = 0.3)
param b: [hidden] ~ normal(std = 0.3)
h = gelu(einsum(x, w, "batch width, width hidden -> batch hidden") + b)
output p = softmax(h, hidden)
loss = mean(layer_norm(h) * p)
minimize loss using adamw(lr = 0.01, clip_norm = 1.0)
)",
    // blocks that go over rows and add up what they make of them, one reduction to a row
    R"(dim rows = 11, width = 1100
input x: [rows width]
param scale: [width] ~ normal(std = 1)
y = x * rsqrt(mean(x * x, width) + 1e-5) * scale
loss = mean(y * y)
minimize loss using adamw(lr = 0.01, clip_norm = 1.0)
)",
    // rows that start anywhere in a pack of memory
    R"(dim rows = 5, cols = 261
input x: bf16[rows cols]
output y: bf16[rows cols] = cast(softmax(x, cols), bf16)
)",
    // rows of which a warp does four
    R"(dim rows = 20, width = 40
input x: bf16[rows width]
input y: bf16[rows width]
h = cast(x, f32) + cast(y, f32)
output z: bf16[rows width] = cast(h * rsqrt(mean(h * h, width) + 1e-5), bf16)
)",
    // attention with a mask, and its backward
    R"(dim s = 37, t = 37, d = 16
param q: [s d] ~ normal(std = 1)
param k: [t d] ~ normal(std = 1)
param v: [t d] ~ normal(std = 1)
scores = einsum(q, k, "s d, t d -> s t") / 4
masked = where(iota(s) >= iota(t), scores, -inf)
output y = einsum(softmax(masked, t), v, "s t, t d -> s d")
loss = mean(y * y)
minimize loss using sgd(lr = 0.1)
)",
    // attention of bf16 on tensor cores, forward and backward, four warps together: tiles of the other axis of which the last is cut
    R"(dim s = 130, d = 64
input q: bf16[s d]
input k: bf16[t=s d]
input v: bf16[t d]
input dy: bf16[s d]
scores = einsum(q, k, "s d, t d -> s t") * rsqrt(d)
y = einsum(softmax(where(iota(t) <= iota(s), scores, -inf), t), v, "s t, t d -> s d")
total = sum(y * dy)
output dq: bf16[s d] = cast(grad(total, q), bf16)
output dk: bf16[t d] = cast(grad(total, k), bf16)
output dv: bf16[t d] = cast(grad(total, v), bf16)
)",
    // windows on tensor cores, forward and backward: whole packs from memory and elements that are computed
    R"(import nn
dim batch = 2, rows = 7, cols = 6, c = 8
input x: f32[batch rows cols c]
param before: [c] ~ normal(std = 0.5)
h = relu(conv(x * before, 12, padding = 1) as conv)
loss = mean(h^2)
precision bf16
minimize loss using sgd(lr = 0.1)
)",
    // a table's rows, gradients added up where positions repeat, dropout, sums in order
    R"(dim batch = 6, vocab = 11, width = 40
input ids: i32[batch]
input targets: i32[batch]
param table: [vocab width] ~ normal(std = 0.5)
x = dropout(table[vocab = ids], 0.3)
output sums = cumsum(x, width)
logits = einsum(sums, table, "batch width, vocab width -> batch vocab")
loss = mean(cross_entropy(logits, targets, vocab))
minimize loss using sgd(lr = 0.1)
)"};

// "" or how a program's run on the emulated GPU differs from the interpreter's.
inline std::string cuda_disagreement(const std::string& text, uint64_t seed) {
  std::string problem;
  const std::optional<Wanted> wanted = interpret_text(text, seed, problem);
  if (!wanted) return problem;
  return difference(*wanted, run_cuda(wanted->graph, {}, wanted->inputs, wanted->params, wanted->states, wanted->options));
}

}  // namespace einc
