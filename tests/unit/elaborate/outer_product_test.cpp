// SPDX-License-Identifier: Apache-2.0
// No accidental outer product: what a user writes, and the axes that it has or the error that it gets.
#include "compiler/elaborate/show.h"
#include "tests/unit/elaborate/support.h"

using namespace einc;

namespace {

const std::string kOperands =
    "import nn\n"
    "dim batch = 2, seq = 4, embed = 6, heads = 3, classes = 7, half = 3\n"
    "dim hidden = 4 * embed\n"
    "input x: [batch seq embed]\ninput t: [batch seq embed]\ninput e: [embed]\ninput s: [seq]\ninput h: [heads]\ninput c: [classes]\n"
    "input logits: [batch classes]\ninput scores: [batch heads seq key=5]\ninput table: [seq embed]\ninput k: [key=5]\n"
    "input a: [n=8 d=2]\ninput b: [m=9 d=2]\ninput p: [n=8]\ninput q: [m=9]\ninput r: [d=2]\ninput one: []\n"
    "input i: i32[seq]\ninput j: i32[key=5]\ninput keep: bool[seq key=5]\ninput keep_n: bool[n=8]\ninput f: f32[n=8]\n";

struct OuterProductRow {
  std::string program;  // the output's statement, or several that end with it
  std::string axes;     // of the output
};

std::string whole(const std::string& program) {
  return kOperands + (program.find("output") != std::string::npos ? program : "output y = " + program) + "\n";
}

void check(const OuterProductRow& row) {
  CAPTURE(row.program);
  const Compiled c(whole(row.program));
  CHECK(c.said == "");
  if (!c.graph) return;
  std::string axes;
  for (const Axis& axis : c.output().type.axes) axes += (axes.empty() ? "" : " ") + axis.name.str();
  CHECK(axes == row.axes);
}

void check_refused(const std::string& program) {
  CAPTURE(program);
  const Compiled c(whole(program));
  CAPTURE(c.said);
  CHECK(c.diagnostics.error_count() == 1);
  CHECK(c.has(Code::outer_product));
}

}  // namespace

TEST_CASE("some leaf has all axes") {
  const OuterProductRow rows[] = {
      {"x + t", "batch seq embed"},
      {"x + e", "batch seq embed"},
      {"e + x", "batch seq embed"},
      {"x + s", "batch seq embed"},
      {"s + e + x", "batch seq embed"},
      {"(s + e) + x", "batch seq embed"},
      {"relu((s - e) * one) + x", "batch seq embed"},
      {"x + table", "batch seq embed"},
      {"2 * x - 1", "batch seq embed"},
      {"x * one + one", "batch seq embed"},
      {"x - mean(x, embed)", "batch seq embed"},
      {"(x - mean(x, embed)) * rsqrt(var(x, embed) + 1e-5) * e + e", "batch seq embed"},
      {"(mean(x, embed) + mean(x, seq)) / 2 + x", "batch seq embed"},
      {"x / sqrt(sum(x^2, embed))", "batch seq embed"},
      {"where(x > 0, x, e)", "batch seq embed"},
      {"where(x > 0, s, e)", "batch seq embed"},
      {"max(x, e)", "batch seq embed"},
      {"max(max(x, embed), s)", "batch seq"},
      {"logits + c", "batch classes"},
      {"logits - log(mean(exp(logits), classes))", "batch classes"},
      {"logits - logsumexp(logits, classes)", "batch classes"},
      {"scores + h * k", "batch heads seq key"},
      {"where(iota(key) <= iota(seq), scores, -inf)", "batch heads seq key"},
      {"where(keep, scores, -1e9)", "batch heads seq key"},
      {"scores + where(keep, 0.0, -inf)", "batch heads seq key"},
      {"scores - h * abs(iota(seq) - iota(key))", "batch heads seq key"},
      {"x + linear(x, embed)", "batch seq embed"},
      {"x + linear_bias(x, embed)", "batch seq embed"},
      {"x + linear(gelu(linear(x, hidden) as up), embed) as down", "batch seq embed"},
      {"x + stop_gradient(linear(x, embed) - x)", "batch seq embed"},
      {"exp(cast(x, f64) + cast(e, f64))", "batch seq embed"},
      {"a[n = 0] + r", "d"},
      {"a - a[n = 0:8]", "n d"},
      {"a - mean(b, m)", "n d"},
      {"mean(a, d) + p", "n"},
      {"a - p", "n d"},
      {"(a + 1) ^ 2", "n d"},
      {"x = x\nfor layer in 3 { x = x + e * s }\noutput y = x", "batch seq embed"},
      {"one + one", ""},
      {"sum(p) + sum(q)", ""},
  };
  for (const OuterProductRow& row : rows) check(row);
}

TEST_CASE("products are outer products on purpose") {
  const OuterProductRow rows[] = {
      {"p * q", "n m"},
      {"p / q", "n m"},
      {"p * q + p", "n m"},
      {"cos(p * q + 1)", "n m"},
      {"1 - p * q", "n m"},
      {"iota(seq) * 10000.0^(-2 * iota(half) / 6)", "seq half"},
      {"cos(cast(iota(seq), f32) * exp(-iota(half)))", "seq half"},
      {"cast(iota(seq), f32) / 10000.0^(iota(half) / 3)", "seq half"},
      {"p * q * s", "n m seq"},
      {"p * (q * s) + q * s", "n m seq"},
      {"exp(-((p - q) / q)^2)", "n m"},                // the quotient holds both
      {"sum(r * tanh((a - b) * r + 1.0), d)", "n m"},  // additive attention's form
      {"-(p * q)", "n m"},
      {"cast(p * q, f32) + p", "n m"},
      {"(p + 1) * (q + 1)", "n m"},
  };
  for (const OuterProductRow& row : rows) check(row);
}

TEST_CASE("integers and bools are free") {
  const OuterProductRow rows[] = {
      {"iota(key = 5) <= iota(seq)", "key seq"},
      {"i - j", "seq key"},
      {"i == j", "seq key"},
      {"p < q", "n m"},
      {"(p - q) < 0.5", "n m"},
      {"keep_n and q > 0", "n m"},
      {"cast(i - j, f32)", "seq key"},
      {"cast(i == j, f32) * 2.0", "seq key"},
      {"where(i >= j, 0.0, -inf)", "seq key"},
      {"where(p > q, p, q)", "n m"},
      {"max(i, j)", "seq key"},
      {"exp(-abs(cast(i - j, f32)))", "seq key"},
  };
  for (const OuterProductRow& row : rows) check(row);
}

TEST_CASE("refused") {
  const char* const programs[] = {
      "p + q",
      "p - q",
      "(p - q)^2",
      "0.5 * (p - q)",
      "(p - q) / 2",
      "(p + q) * one",
      "-(p - q)",
      "exp(p - q)",
      "a - b",
      "sum((a - b)^2, d)",
      "sqrt(sum((a - b)^2, d))",
      "max(p, q)",
      "min(p, q, 0)",
      "max(a - b)",
      "max(a - b, d)",
      "pow(p, q)",
      "p ^ q",
      "where(keep_n, q, 0)",
      "where(p > 0, q, 0)",
      "where(keep_n, p, q)",
      "where(keep, p, 0.0)",
      "cast(p + q, f32)",
      "cast(p + q, bf16) * 2",
      "stop_gradient(p - q)",
      "p * q + s",
      "p * q + i",
      "logits + h",
      "logits + e",
      "x + c",
      "x + logits",
      "x + linear(x, hidden)",
      "x + linear(x, 4 * embed)",
      "(x + linear(x, hidden)) / sqrt(2.0)",
      "x + 0.5 * linear(x, hidden)",
      "x - mean(scores, batch, seq, key)",
      "(x - mean(x, embed)) / 2 + c",
      "scores + c",
      "softmax(p - q, n)",
      "einsum(p - q, r, \"n m, d -> n d\")",
      "mean_squared_error(p, q)",
      "mean_squared_error(logits, linear(logits, hidden))",
      "table[seq = i] + h",
      "concat(p + q, p * q, n)",
      "fn add(u, v) { return u + v }\noutput y = add(p, q)",
      "fn add(u: [... k], v: [l]) { return u + v }\noutput y = add(p, q)",
      "z = x\nfor layer in 3 { z = z + linear(z, hidden) }\noutput y = z",
      "state last: [seq] ~ zeros\nlast <- last + h\noutput y = x",
      "output y = grad(sum(p + q), p)",
  };
  for (const char* program : programs) check_refused(program);
}

TEST_CASE("an annotation states the intent, and the order") {
  const OuterProductRow rows[] = {
      {"y: [n m] = p - q\noutput y", "n m"},
      {"y: [m n] = p - q\noutput y", "m n"},
      {"y: [m n d] = (a - b)^2\noutput y", "m n d"},
      {"y: f32[m n] = p - q\noutput y", "m n"},
      {"y: [m=9 n=8] = p - q\noutput y", "m n"},
      {"output y: [n m] = p - q", "n m"},
      {"output y: [m n] = max(p, q)", "m n"},
      {"output y: [m n] = where(keep_n, q, 0)", "m n"},
      {"(p - q): [n m]", "n m"},
      {"((p - q): [m n]) + p", "m n"},
      {"sum(((a - b): [m n d])^2, d)", "m n"},
      {"sum((a - b): [n d m], d)", "n m"},
      {"exp(-0.5 * (p - q): [n m])", "n m"},
      {"(p - q): [m n] ^ 2", "m n"},
      {"((p - q): [m n])[n = 0]", "m"},
      {"fn far(u: [u_n], v: [v_n]) { return u - v: [v_n u_n] }\noutput y = far(p, q)", "m n"},
      {"fn far(u: [u_n], v: [v_n]) { return (u - v): [u_n v_n] }\noutput y = far(p, q)", "n m"},
      {"fn far(u: [... w], v: [l w]) { return sum((u - v): [... l w], w) }\noutput y = far(a, b)", "n m"},
      {"fn far(u: [... w], v: [l w]) { d: [l ... w] = u - v\nreturn sum(d^2, w) }\noutput y = far(a, b)", "m n"},
      {"fn both(u: [u_n], v: [v_n]) { return (u - v): [v_n u_n], u }\ny, z = both(p, q)\noutput y", "m n"},
      // outer products that need none take its order too, or are renamed as before
      {"y: [m n] = p * q\noutput y", "m n"},
      {"y: [a_n b_m] = p * q\noutput y", "a_n b_m"},
      {"y: [key seq] = i >= j\noutput y", "key seq"},
      {"y: [rows columns] = i >= j\noutput y", "rows columns"},
      {"y: [half seq] = iota(seq) * exp(-iota(half))\noutput y", "half seq"},
      {"state last: [seq heads] ~ zeros\nlast <- (h + s): [heads seq]\noutput y = updated(last)", "seq heads"},
      // what is none is renamed by place
      {"y: [rows d] = a + 1\noutput y", "rows d"},
      {"(linear(x, 6)): [batch seq out]", "batch seq out"},
  };
  for (const OuterProductRow& row : rows) check(row);
  const char* const refused[] = {
      "y: [n k] = p - q\noutput y",
      "y: [rows columns] = p - q\noutput y",
      "output y: [n_2 m] = p - q",
      "(p - q): [n m_2]",
      "((p - q): [n m]) + s",
      "y: [seq] = sum(p - q) + s\noutput y",
      "fn far(u: [... w], v: [l w]) { return sum((u - v): [l w], w) }\noutput y = far(a, b)",
  };
  for (const char* program : refused) check_refused(program);
  // too few axes, and sizes
  CHECK(Compiled(kOperands + "y: [n] = p - q\noutput y").has(Code::outer_product));
  CHECK(Compiled(kOperands + "y: [n m=8] = p - q\noutput y").has(Code::annotation_size));
  CHECK(Compiled(kOperands + "y: i32[n m] = p - q\noutput y").has(Code::dtype_mismatch));
}

TEST_CASE("what the error says") {
  const auto said = [](const std::string& statement) { return Compiled(kOperands + statement + "\n").said; };
  const auto has = [&](const std::string& statement, const std::string& part) {
    const std::string text = said(statement);
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  const std::string residual = "output y = x + linear(x, 6)";
  has(residual, "[batch seq embed features=6]");
  has(residual, "this is [batch seq embed]");
  has(residual, "this is [batch seq features=6]");
  has(residual, "`(x + linear(x, 6)): [batch seq embed features]`");
  has("output y = logits + e", "`e` has the axis `embed`, which `logits` lacks");
  has("output y = logits + e", "`(logits + e): [batch classes embed]`");
  has("out: [batch seq out] = linear(x, embed)\noutput y = x + out", "axes `embed` and `out` have the same size");
  has("out: [batch seq out] = linear(x, embed)\noutput y = x + out", "rename it, `(out): [batch seq embed]`");
  has("out: [batch seq out] = linear(x, embed)\noutput y = out + x", "rename it, `(out): [batch seq embed]`");
  has("y: [n k] = p - q\noutput y", "the annotation names all of [n m], in any order");
  has("fn add(u, v) { return u + v }\noutput y = add(p, q)", "name the axes in the fn's signature");
  has("output y = mean_squared_error(p, q)", "`q` has the axis `m`, which `p` lacks");
  has("out: [batch seq out] = linear(x, embed)\noutput y = mean_squared_error(out, t)", "axes `out` and `embed` have the same size");
  // one error for a mistake, and none for what follows from it
  CHECK(Compiled(kOperands + "z = p + q\nw = z * z\noutput y = mean(w)\n").diagnostics.error_count() == 1);
}
