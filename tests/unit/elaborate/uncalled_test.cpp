// SPDX-License-Identifier: Apache-2.0
// The bodies of fns that nobody calls.
#include "tests/unit/elaborate/support.h"

using namespace einc;

namespace {
const std::string kRest = "\ndim d = 4\ninput x: f32[d]\noutput x\n";
}

TEST_CASE("what is wrong whatever the arguments are") {
  struct Row {
    const char* fn;
    Code code;
    const char* at;
  };
  const Row rows[] = {
      {"fn f(x) { return nope }", Code::unknown_name, "nope"},
      {"fn f(x) { return x + nope(x) }", Code::unknown_function, "nope"},
      {"fn g(x) { return x }\nfn f(x) { return g(x, 1) }", Code::too_many_arguments, "1"},
      {"fn g(x, y) { return x }\nfn f(x) { return g(x) }", Code::missing_argument, "g"},
      {"fn f(x: [d]) { return sum(x, e) }", Code::no_such_axis, "e"},
      {"fn f(x: [d]) { y: [a b] = x; return y }", Code::annotation_rank, "x"},
      {"fn f(x: [d], y: [k=5]) { z: [d] = y; return z + x }", Code::annotation_size, "d"},
      {"fn f(x: [... c]) { return x[c = 0] + y }", Code::unknown_name, "y"},
      {"fn f(x: [c]) { return f(x) }", Code::recursion, "f(x)"},
      {"fn f(x: bool[c], y: [c]) { return x and y }", Code::bool_expected, "y"},
      {"fn f(n) { y = 0; for i in n { y = y + z }; return y }", Code::unknown_name, "z"},
      {"fn f(x: [c]) { y = x; for i in c { y = y + x[c = i] + z }; return y }", Code::unknown_name, "z"},
      {"fn g(x: [a]) { return x + q }\nfn f(x: [a b]) { return g(x[a = 0]) }", Code::unknown_name, "q"},
      {"fn f(x: [c], k = 2) { return x[c = k, e = 0] }", Code::no_such_axis, "e"},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.fn));
    const Compiled c(row.fn + kRest);
    CAPTURE(c.said);
    CHECK(c.only(row.code, row.at));
  }
}

TEST_CASE("what some call would be right with is no error") {
  for (const char* fn : {
           "fn f(x: [m], y: [n]) { return einsum(x, y, \"k, k ->\") }",
           "fn f(x: [... c]) { return rearrange(x, \"a b c -> c b a\") }",
           "fn f(x: [... c]) { y: [c] = x; return y }",
           "fn f(x, axis_size) { return reshape_like(x) }\nfn reshape_like(x) { return x + 1 }",
           "fn f(x: [n]) { return x[n = 5] + sum(x[n = 2:4]) }",
           "fn f(x: [n]) { return rearrange(x, \"(a b) -> a b\", a=2) }",
           "fn f(x: [n], w: [h, m=h * 2]) { return sum(x) * sum(w) }",
           "fn f(x, n) { for i in n { x = x + i }; return x }",
           "fn f(x: [n]) { param w: [n] ~ zeros; state s: [n] ~ zeros; s <- x * w; return x + s }",
           "fn f(p: [...], g: [...], t, lr = 0.1) { state m: [...] ~ zeros; m <- m + g; return p - lr * m }",
           "fn f(x: [... c], y: [... c]) { return x + y }",
           "fn f(x: [a b], y: [b c], z: [c a]) { return einsum(x, y, z, \"i j, j k, k i ->\") }",
       }) {
    CAPTURE(fn);
    const Compiled c(fn + kRest);
    CHECK(c.said == "");
  }
}

TEST_CASE("fns that would take long are left alone") {
  std::string text = "fn g0(x: [n]) { return x }\n";
  for (int i = 1; i < 40; ++i) {
    const std::string before = "g" + std::to_string(i - 1);
    text += "fn g" + std::to_string(i) + "(x: [n]) { return " + before + "(x) as a + " + before + "(x) as b }\n";
  }
  CHECK(Compiled(text + kRest).said == "");
}
