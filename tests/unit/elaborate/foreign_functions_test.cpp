// SPDX-License-Identifier: Apache-2.0
// What the hints about functions of other libraries tell people to write compiles.
#include <doctest/doctest.h>

#include "compiler/pipeline/pipeline.h"
#include "dsl/foreign_functions.h"
#include "dsl/render.h"

using namespace einc;

TEST_CASE("what hints say instead of functions of other libraries is a program") {
  // Each output is the code of a hint, with names of its own where two would meet.
  const Compilation c = compile_text("hints.ein", R"ein(
dim batch = 4, d = 6, k = 3, seq = 5
input x: f32[batch d]
input u: f32[batch d]
input w: f32[d k]
input b3: f32[b=2 n=3 d]
input c3: f32[b=2 d k]
input v: f32[p=4]
input v2: f32[p=4]
input q: f32[r=7]
input img: f32[rows=2 h=3 ww=4]
input wide: f32[batch hd=16]
input one: f32[batch 1 d]
input ids: i32[i=5]
input rows5: f32[i=5 d]
input table: f32[vocab=9 d]
output a1 = floor(x / u)
output a2 = einsum(b3, c3, "b n d, b d k -> b n k")
output a3 = concat(x, u, batch)
output a4 = x[d = 0:2]
output a5 = clamp(x, 0, 1)
output a6 = stop_gradient(x)
output a7 = einsum(v, v2, "n, n -> ")
output a8 = where(x > 0, x, expm1(x))
output a9 = repeat(v, "d2 -> bb d2", bb=8)
output b1 = rearrange(img, "bt h w2 -> bt (h w2)")
output b2 = cast(x, i32)
output b4 = segment_sum(rows5, ids, vocab)
output b5 = table[vocab = ids]
output b6 = where(x > 0, x, 0.01*x)
output b7 = x / seq
output b8 = log(x) / log(10)
output b9 = sort(x, d)
output c1 = mean((x - u)^2)
output c2 = iota(d) // 2
output c4 = einsum(v, q, "n, m -> n m")
output c5 = rearrange(img, "h w2 c -> c h w2")
output c6 = clamp(x, 0, 6)
output c7 = rearrange(wide, "bt (hh e) -> bt hh e", hh=8)
output c8 = concat(x[d = 2:], x[d = :2], d)
s1, s2 = unpack(q, 3, 4, "*")
output c9 = s1
output d1 = rearrange(one, "bt 1 e -> bt e")
output d2 = 1 + (3 - 1) * iota(d) / (d - 1)
output d3 = zeros(d) + ones(d)
output d4 = repeat(v, "e -> (copies e)", copies=2)
output d5 = where(iota(batch) <= iota(d), x, 0)
output d6 = rearrange(x, "bt e -> bt 1 e")
output d7 = x^2 + pow(x, u)
)ein",
                                     {});
  CHECK_MESSAGE(c.graph.has_value(), render_text(c.sources, c.diagnostics));
}

TEST_CASE("what hints say instead of layers, losses and initialisers of other libraries is a program") {
  const Compilation c = compile_text("hints.ein", R"ein(
import nn
dim b = 2, t = 6, d = 4, k = 3, rows = 4, cols = 4, c = 4, n = 3, m = 5, half = d / 2, heads = 2, head = 2, kv_heads = 1, nodes = 7, axis = 4
input x: f32[b d]
input y: f32[b d]
input im: f32[b rows cols c]
input seqx: f32[b t d]
input tgt: f32[b d]
input w: f32[d k]
input a: f32[n d]
input bb: f32[m d]
input ids: i32[t]
input vec: f32[i=4]
input vec2: f32[j=4]
param slope: [] ~ constant(0.25)
param p1: [d k] ~ trunc_normal(std = 0.02)
param p2: [d k] ~ uniform(-sqrt(6/(d + k)), sqrt(6/(d + k)))
param p3: [d k] ~ normal(std = sqrt(2/d))
param p4: [d k] ~ uniform(-sqrt(6/d), sqrt(6/d))
output o1 = mean(im, rows, cols)
output o2 = reduce(seqx, "b (2*tt + kk) d -> b tt d", "mean", kk=2)
output o3 = binary_cross_entropy(x, tgt)
output o4 = batch_norm(im) as bn
output o5 = conv_transpose(im, 4, kernel = 3, stride = 2) as ct
output o6 = linear(x, 5) as l1
output o7 = linear_bias(x, 5) as l2
output o8 = layer_norm(x) as l3
o9, balance = mixture_of_experts(seqx, 8, 4) as moe
output o9
output o10 = attention(layer_norm(seqx) as l4, heads, head) as at
output o11 = grouped_attention(seqx, heads, kv_heads, head) as ga
output o12 = segment_sum(1, ids, nodes)
output o13 = sqrt(sum(((a - bb): [n m d])^2, d))
output o14 = where(x > 0, x, expm1(x))
output o15 = min(x, 1)
output o16 = sum(x * y, d) / (norm(x, d) * norm(y, d))
output o17 = sum(cast(x != 0, i32), d)
output o18 = einsum(a, rename(a, d = e), "n d, n e -> d e") / n
output o19 = x[d = 1] * y[d = 2] - x[d = 2] * y[d = 1]
output o20 = x[d = 1:] - x[d = :-1]
output o21 = 2^x
output o22 = x[d = :half] * sigmoid(x[d = half:])
output o23 = clamp(x / 6 + 0.5, 0, 1)
output o24 = (im - mean(im, rows, cols)) * rsqrt(var(im, rows, cols) + 1e-5)
output o25 = kl_divergence(log_softmax(x, d), softmax(y, d))
output o26 = mean_absolute_error(x, y)
output o27 = huber_loss(x, y)
output o28 = max(x, y) + log1p(exp(-abs(x - y)))
output o29 = -softplus(-x)
output o30 = iota(rows) + 10 * iota(cols)
output o31 = where(x > 0, x, slope * x)
output o32 = rotary(seqx)
output o33 = x / norm(x, d)
output o34 = einsum(x, w, "bq dd, dd kk -> (bq kk) 1")
output o35 = 1.0507 * where(x > 0, x, 1.67326 * expm1(x))
output o36 = einsum(seqx, w, "b tt dd, dd kk -> b tt kk")
output o37 = where(isnan(x), 0, x)
output o38 = x + (y - x) * 0.3
output o39 = abs(x - y) < 1e-6
output o40 = categorical(x, d)
output o41 = full(n, d, 3)
output o42 = where(iota(rows) == iota(cols), 1, 0)
output o43 = where(iota(i) == iota(j), vec, 0)
output o44 = einsum(x, rename(y, b = b2), "b d, b2 e -> (b b2) (d e)")
output o45 = repeat(x, "b d -> b (d copies)", copies=2)
output o46 = sum(cast(vec < 3, i32), i)
)ein",
                                     {});
  CHECK_MESSAGE(c.graph.has_value(), render_text(c.sources, c.diagnostics));
}

TEST_CASE("functions of other libraries, and of none") {
  CHECK(foreign_function_hint("clip") == "clamp(x, lo, hi)");
  CHECK(foreign_function_hint("arange") == "iota(axis) counts along an axis");                      // the first of the table
  CHECK(foreign_function_hint("zeros_like") == "zeros(axes), or just 0: a number fits any shape");  // and the last
  for (const char* own : {"", "softmax", "reluu", "zzz"}) CHECK(foreign_function_hint(own).empty());
}
