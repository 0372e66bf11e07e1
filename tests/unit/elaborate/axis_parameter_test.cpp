// SPDX-License-Identifier: Apache-2.0
// A fn's untyped parameter as an axis of the fn: named by the caller when the argument is the bare name of a dim.
#include "tests/unit/elaborate/support.h"

using namespace einc;

namespace {

const std::string kHead =
    "import nn\ndim batch = 2, embed = 6, vocab = 11, classes = 4\ninput x: [batch embed]\ninput ids: i32[batch]\n"
    "fn dense(x: [... c], width) {\n  param w: [c width] ~ normal(std = 0.1)\n"
    "  return einsum(x, w, \"... c, c width -> ... width\")\n}\n";

struct Row {
  std::string program;
  std::string axes;  // of the output
};

std::string axes_of(const Compiled& c) {
  std::string text;
  for (const Axis& axis : c.output().type.axes) text += (text.empty() ? "" : " ") + axis.name.str();
  return text;
}

}  // namespace

TEST_CASE("axes as arguments") {
  const Row rows[] = {
      {"output y = dense(x, embed)", "batch embed"},
      {"output y = dense(x, width = classes)", "batch classes"},
      {"output y = dense(x, 4)", "batch width"},
      {"output y = dense(x, 2 * embed)", "batch width"},
      {"output y = x + dense(x, embed)", "batch embed"},
      {"output y = x + dense(dense(x, 2 * embed) as up, embed) as down", "batch embed"},
      {"for i in 2 { x = x + dense(x, embed) }\noutput y = x", "batch embed"},
      {"n = 2 * embed\noutput y = dense(x, n)", "batch width"},  // a value, no dim
      {"for i in 3 { y = dense(x, i + 1) }\noutput y = x", "batch embed"},
      {"y: [batch hidden] = dense(x, 8)\noutput y", "batch hidden"},
      {"y: [batch hidden=8] = dense(x, 8)\nz = dense(y, hidden) as two\noutput z", "batch hidden"},
      // inside other fns: a parameter, a signature's axis, a default
      {"fn twice(x, width) { return dense(dense(x, width) as a, width) as b }\noutput y = twice(x, classes)", "batch classes"},
      {"fn twice(x, width) { return dense(dense(x, width) as a, width) as b }\noutput y = twice(x, 9)", "batch width"},
      {"fn same(x: [... c]) { return x + dense(x, c) }\noutput y = same(x)", "batch embed"},
      {"fn same(x: [... c], d = c) { return x + (dense(x, d)): [... c] }\noutput y = same(x)", "batch embed"},
      {"fn to(x: [... c], d = classes) { return dense(x, d) }\noutput y = to(x)", "batch classes"},
      {"fn to(x: [... c], d = c) { return dense(x, d) }\noutput y = to(x)", "batch embed"},
      {"fn head(x: [... c], n, bias: [n]) { return dense(x, n) + bias }\ninput b: [classes]\noutput y = head(x, classes, b)",
       "batch classes"},
      {"fn counts(k) { return iota(k) }\noutput y = counts(classes)", "classes"},
      {"fn counts(k) { return iota(k) }\noutput y = counts(3)", "k"},
      {"fn grid(k, l) { return iota(k) * iota(l) }\noutput y = grid(classes, embed)", "classes embed"},
      {"fn grid(k, l) { return iota(k) * iota(l) }\noutput y = grid(embed, embed)", "embed embed"},  // two axes of the fn
      {"fn least(k) { k = k + 1\nparam w: [k] ~ zeros\nreturn w }\noutput y = least(3)", "k"},       // a value of its own by then
      {"output y = linear(x, embed)", "batch embed"},
      {"output y = x + linear_bias(x, embed)", "batch embed"},
      {"output y = linear(x, 10)", "batch features"},
      {"output y = embedding(ids, vocab, embed)", "batch embed"},
      {"output y = x + embedding(ids, vocab, embed)", "batch embed"},
      {"output y = embedding(ids, 100, 8)", "batch width"},
      {"output y = linear(x, classes)\nloss = mean(cross_entropy(y, ids, classes))\nminimize loss using sgd(lr = 0.1)", "batch classes"},
      {"output y = x + mlp(layer_norm(x), 4 * embed)", "batch embed"},
      {"input words: i32[embed]\noutput y = embedding(words, vocab, embed)", "embed embed"},  // distinct from the axis of the ids
  };
  for (const Row& row : rows) {
    CAPTURE(row.program);
    const Compiled c(kHead + row.program + "\n");
    CHECK(c.said == "");
    if (c.graph) CHECK(axes_of(c) == row.axes);
  }
}

TEST_CASE("axes as arguments: what is wrong") {
  CHECK(Compiled(kHead + "output y = dense(x, embed - embed)").has(Code::size_below_one));
  CHECK(Compiled(kHead + "output y = dense(x, 0)").has(Code::size_below_one));
  CHECK(Compiled(kHead + "fn f(x: [... c], n) { param w: [c n] ~ zeros\nreturn einsum(x, w, \"... c, c n -> ... n\") + iota(n = 3) }\n" +
                 "output y = f(x, 4)")
            .has(Code::axis_has_declared_size));
  CHECK(Compiled(kHead + "fn f(x: [... c], n) { return rearrange(x, \"... (n k) -> ... n k\", n=2) }\noutput y = f(x, 3)")
            .has(Code::pattern_given_size));
  CHECK(Compiled(kHead + "fn head(x: [... c], n, bias: [n]) { return dense(x, n) + bias }\ninput b: [k=3]\noutput y = head(x, classes, b)")
            .has(Code::argument_size));
}
