// SPDX-License-Identifier: Apache-2.0
// No silent transposition: names that an annotation or a signature binds to other places than the value's.
#include "tests/unit/elaborate/support.h"

using namespace einc;

namespace {

const std::string kTransposed =
    "dim batch = 2, seq = 4, key = 4, embed = 6\n"
    "input x: [seq key]\ninput u: [batch seq embed]\ninput v: [a=2 b=3]\ninput w: [a=2 b=2]\ninput z: [c=2 d=3 e=4]\ninput r: [d=3 d=3]\n";

struct TranspositionRow {
  std::string program;
  std::string at;    // where the error points; empty: none
  std::string hint;  // a part of it
};

void check(const TranspositionRow& row, Code code = Code::axes_transposed) {
  CAPTURE(row.program);
  const Compiled c(kTransposed + row.program + "\n");
  CAPTURE(c.said);
  if (row.at.empty()) {
    CHECK(c.said == "");
    return;
  }
  CHECK(c.only(code, row.at));
  CHECK(c.said.find(row.hint) != std::string::npos);
}

}  // namespace

TEST_CASE("annotations") {
  const TranspositionRow rows[] = {
      {"y: [key seq] = x\noutput y", "key", "rearrange(x, \"seq key -> key seq\")"},
      {"y: [seq_2 seq] = x\noutput y", "seq", "rearrange(x, \"seq key -> key seq\")"},
      {"y: [key other] = x\noutput y", "key", "rearrange(x, \"seq key -> key seq\")"},
      {"y: [b a] = v\noutput y", "b", "rearrange(v, \"a b -> b a\")"},
      {"y: [b a] = w\noutput y", "b", "\"a b -> b a\""},
      {"y: [... b c] = z\noutput y", "c", "rearrange(z, \"c d e -> d e c\")"},
      {"y: [... d] = z\noutput y", "d", "rearrange(z, \"c d e -> c e d\")"},
      {"y: [d ...] = z\noutput y", "d", "rearrange(z, \"c d e -> d c e\")"},
      {"y: [e d c] = z\noutput y", "e", "rearrange(z, \"c d e -> e d c\")"},
      {"output y: [key seq] = x", "key", ""},
      {"output y = (x): [key seq]", "key", ""},
      {"output y = exp((x + 1): [key seq])", "key", "rearrange(x + 1, "},
      {"y: [key=4 q=4] = x\noutput y", "key=4", ""},
      {"fn f(p: [rows columns]) { return p: [columns rows] }\noutput y = f(v)", "columns", ""},
      {"y: f32[b a] = v\noutput y", "b", ""},
      {"y: [a b] = v\noutput y", "", ""},
      {"y: [p q] = v\noutput y", "", ""},
      {"y: [a q] = v\noutput y", "", ""},
      {"y: [... b] = v\noutput y", "", ""},
      {"y: [... e] = z\noutput y", "", ""},
      {"y: [c d ...] = z\noutput y", "", ""},
      {"y: [... ] = z\noutput y", "", ""},
      {"y: [d d_2] = r\noutput y", "", ""},
      {"y: [d_2 d] = r\noutput y", "", ""},
      {"y: [d d] = r\noutput y", "", ""},
      {"y: [seq key] = rearrange(rearrange(x, \"seq key -> key seq\"), \"key seq -> seq key\")\noutput y", "", ""},
      {"y: [rows columns] = v\ny: [b a] = y\noutput y", "", ""},
  };
  for (const TranspositionRow& row : rows) check(row);
}

TEST_CASE("one name twice in a list") {
  check({"y: [n n] = v\noutput y", "n", "`n_2`"}, Code::axis_two_sizes);
  check({"y: [n ... n] = z\noutput y", "n", ""}, Code::axis_two_sizes);
  check({"input bad: [n=2 n=3]\noutput y = bad", "n=3", ""}, Code::axis_two_sizes);
  check({"param bad: [n=2 n=3] ~ zeros\noutput y = bad", "n=3", ""}, Code::axis_two_sizes);
  check({"y: [n n] = w\noutput y", "", ""});
  check({"y: [n n] = x\noutput y", "n", ""}, Code::axis_two_sizes);  // seq and key are different sizes though both are 4
  check({"y: [seq seq] = x\noutput y", "seq", "`key` has size key = 4"}, Code::annotation_size);
}

TEST_CASE("signatures: names that are dims of the fn's file") {
  const std::string f = "fn f(p: [seq key]) { return p }\n", g = "fn g(p: [... embed]) { return p }\n",
                    h = "fn h(p: [batch ... key]) { return p }\n";
  const std::string transposed = "t = rearrange(x, \"seq key -> key seq\")\n";
  const TranspositionRow rows[] = {
      {f + transposed + "output y = f(t)", "t", "rearrange(t, \"key seq -> seq key\")"},
      {f + transposed + "output y = f(p = t)", "t", ""},
      {f + transposed + "output y = f(t + 1)", "t + 1", "rearrange(t + 1, \"key seq -> seq key\")"},
      {f + "input o: [rows=seq seq]\noutput y = f(o)", "o", "no order of its axes fits"},
      {f + "input o: [rows=key seq]\noutput y = f(o)", "o", "rearrange(o, \"rows seq -> seq rows\")"},
      {g + "input o: [embed seq]\noutput y = g(o)", "o", "rearrange(o, \"embed seq -> seq embed\")"},
      {h + "input o: [key batch seq]\noutput y = h(o)", "o", "rearrange(o, \"key batch seq -> batch seq key\")"},
      {"fn k(q, p: [seq key]) { return p }\n" + transposed + "output y = k(1, t)", "t", ""},
      {f + "output y = f(x)", "", ""},
      {f + "input o: [rows=seq columns=key]\noutput y = f(o)", "", ""},
      {f + "input o: [seq columns=key]\noutput y = f(o)", "", ""},
      {g + "output y = g(u)", "", ""},
      {g + "input o: [seq q=embed]\noutput y = g(o)", "", ""},
      {"fn q(p: [seq seq]) { return sum(p) }\ninput o: [seq seq]\noutput y = q(o)", "", ""},
  };
  for (const TranspositionRow& row : rows) check(row);
  check({"fn q(p: [seq seq]) { return sum(p) }\noutput y = q(x)", "x", ""}, Code::argument_size);
}

TEST_CASE("signatures: generic names") {
  const std::string f = "fn f(p: [a b]) { return p }\n", g = "fn g(p: [... d c]) { return p }\n",
                    m = "fn m(p: [n k], q: [k m]) { return einsum(p, q, \"n k, k m -> n m\") }\n";
  const TranspositionRow rows[] = {
      {f + "output y = f(rearrange(v, \"a b -> b a\"))", "rearrange(v, \"a b -> b a\")", "\"b a -> a b\""},
      {g + "output y = g(z[e = 0])", "z[e = 0]", "rearrange(z[e = 0], \"c d -> d c\")"},
      {g + "input o: [n=2 c=3 d=4]\noutput y = g(o)", "o", "rearrange(o, \"n c d -> n d c\")"},
      {f + "output y = f(v)", "", ""},
      {f + "output y = f(x)", "", ""},
      {f + "input o: [b=2 other=3]\noutput y = f(o)", "", ""},  // one of them alone
      {f + "input o: [other=2 a=3]\noutput y = f(o)", "", ""},
      {g + "input o: [c=3 d=4 n=2]\noutput y = g(o)", "o", ""},
      {m + "input o: [m=3 n=2]\noutput y = m(v, o)", "", ""},
      {"fn s(p: [k], q: [k l]) { return q }\ninput o: [l=2]\ninput o2: [k=2 l=3]\noutput y = s(o, o2)", "", ""},
  };
  for (const TranspositionRow& row : rows) check(row);
}
