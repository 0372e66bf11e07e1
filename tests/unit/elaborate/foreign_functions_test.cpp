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

TEST_CASE("functions of other libraries, and of none") {
  CHECK(foreign_function_hint("clip") == "clamp(x, lo, hi)");
  CHECK(foreign_function_hint("arange") == "iota(axis) counts along an axis");                      // the first of the table
  CHECK(foreign_function_hint("zeros_like") == "zeros(axes), or just 0: a number fits any shape");  // and the last
  for (const char* own : {"", "softmax", "reluu", "zzz"}) CHECK(foreign_function_hint(own).empty());
}
