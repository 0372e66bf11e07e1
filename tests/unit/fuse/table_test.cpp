// SPDX-License-Identifier: Apache-2.0
// Functions of positions, such as the sines of rotary embeddings, are made once and not for every element that they meet.
#include <doctest/doctest.h>

#include <algorithm>

#include "compiler/fuse/form_graph.h"
#include "compiler/simplify/expand.h"
#include "compiler/simplify/simplify.h"
#include "tests/support/run_graph.h"

using namespace einc;

namespace {

const Bindings kSizes = {{"b", 4}, {"s", 48}, {"h", 4}, {"d", 32}};
constexpr const char* kQueries = "import nn\ndim b, s, h, d\ninput q: f32[b h s d]\ninput k: f32[b h t=s d]\ninput v: f32[b h t=s d]\n";

FormedGraph form(const std::string& body) {
  const Graph graph = simplify(expand(compile_text(kQueries + body, kSizes), Roots::training), Roots::training);
  return form_graph(graph, kSizes, RunMode::inference, Scheduling::all);
}

// Kernels that compute `fn`.
int64_t makers(const FormedGraph& formed, MapFn fn) {
  return std::count_if(formed.list.kernels.begin(), formed.list.kernels.end(), [&](const GraphKernel& k) {
    return std::any_of(k.kernel->values.begin(), k.kernel->values.end(),
                       [&](const Scalar& v) { return v.kind == ScalarKind::map && v.fn == fn; });
  });
}

}  // namespace

TEST_CASE("tables: the angles of positions are made once") {
  const FormedGraph formed = form("output x = rotary(q) as first\noutput y = rotary(k) as second\n");
  CHECK(makers(formed, MapFn::cos) == 1);
  CHECK(makers(formed, MapFn::sin) == 1);
}

TEST_CASE("tables: made once for a single reader too") {
  const FormedGraph formed = form("output x = q * cos(iota(s) * iota(d))\n");
  REQUIRE(formed.list.kernels.size() == 2);
  CHECK(makers(formed, MapFn::cos) == 1);
}

TEST_CASE("tables: what meets as many elements as it has is made where it is read") {
  const FormedGraph formed = form("output x = mean(q, b, h) * cos(iota(s) * iota(d))\n");
  CHECK(formed.list.kernels.size() == 1);
}

TEST_CASE("tables: slopes of positions' distances leave attention one kernel") {
  const FormedGraph formed = form(
      "scores = einsum(q, k, \"b h s d, b h t d -> b h s t\") + 2^(-8 * (iota(h) + 1) / h) * (iota(t) - iota(s))\n"
      "output y = einsum(softmax(scores, t), v, \"b h s t, b h t d -> b h s d\")\n");
  const auto& kernels = formed.list.kernels;
  CHECK(std::count_if(kernels.begin(), kernels.end(), [](const GraphKernel& k) { return k.kernel->attention.has_value(); }) == 1);
  CHECK(makers(formed, MapFn::pow) == 1);
}

// Batch norm's backward: a sum over the axes of an image beside the same elements as rows, whose loops are not the sum's.
TEST_CASE("a sum is not run again for every element that reads it") {
  const std::string head = "input i: f32[b h s d]\ninput g: f32[b h s d]\n",
                    rows = "flat: [n d] = rearrange(i, \"b h s d -> (b h s) d\")\n";
  const Bindings sizes = {{"b", 4}, {"h", 4}, {"s", 8}, {"d", 16}};
  const Graph graph = compile_text("dim b, h, s, d\n" + head + rows + "output r = flat * sum(i * g, b, h, s)\n", sizes);
  const FormedGraph formed =
      form_graph(simplify(expand(graph, Roots::inference), Roots::inference), sizes, RunMode::inference, Scheduling::all);
  CHECK(formed.list.kernels.size() == 2);
  for (const GraphKernel& k : formed.list.kernels)
    if (!k.kernel->reductions.empty()) CHECK(k.kernel->outer.size() == 1);
}
