// SPDX-License-Identifier: Apache-2.0
// What elementwise ops, axis ops, indexing and initialisers refuse: the code, the exact text it points at, and a part of the
// hint, for every message of theirs. Programs that are right but close to wrong stand at the end.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "compiler/elaborate/elaborate.h"

namespace einc {
namespace {

constexpr std::string_view kPrelude =
    "dim a = 2, b = 3, d = 4, n\n"
    "input x: f32[a b]\ninput y: f32[b]\ninput i: i32[a]\ninput m: bool[a]\ninput w: f32[d d]\ninput z: f32[p=2 q=3]\ninput v: "
    "i32[p=2]\ninput h: f8e4m3[a]\ninput u: u8[a]\n"
    "state s: f32[a d] ~ zeros\nstate k: i32[a] ~ zeros\n";

struct ErrorRow {
  std::string_view text;  // after the prelude; `output r = ` stands before it unless it is a statement
  Code code;
  std::string_view place;  // what the span covers
  std::string_view hint;   // a part of it
};

const ErrorRow kRows[] = {
    // alignment
    {"x + x[b = 0:2]", Code::axis_sizes_differ, "x[b = 0:2]", "rename one: `y: [a b_2] = ...`"},
    {"x + x[b = 0:1]", Code::axis_sizes_differ, "x[b = 0:1]", "drop it with `[b = 0]`"},
    {"w * iota(d)", Code::axis_repeated, "w", "`y: [d d_2] = ...`"},
    {"rearrange(x, \"a b -> (a b)\") + y", Code::axis_nameless, "rearrange(x, \"a b -> (a b)\")", "`y: [a_b] = ...`"},
    {"rearrange(y, \"b -> b 1\") + y", Code::axis_nameless, "rearrange(y, \"b -> b 1\")", "drop it, as in rearrange(x, \"a 1 -> a\")"},
    {"iota(a0=2)*iota(a1=2)*iota(a2=2)*iota(a3=2)*iota(a4=2)*iota(a5=2)*iota(a6=2)*iota(a7=2)*iota(a8=2)*iota(a9=2)*iota(b0=2)*iota(b1=2)*"
     "iota(b2=2)*"
     "iota(b3=2)*iota(b4=2)*iota(b5=2)*iota(b6=2)*iota(b7=2)*iota(b8=2)*iota(b9=2)*iota(c0=2)*iota(c1=2)*iota(c2=2)*iota(c3=2)*iota(c4=2)*"
     "iota(c5=2)*"
     "iota(c6=2)*iota(c7=2)*iota(c8=2)*iota(c9=2)*iota(d0=2)*iota(d1=2)*iota(d2=2)",
     Code::too_many_axes, "", ""},
    // dtypes
    {"not x", Code::bool_expected, "x", "x != 0"},
    {"m and i", Code::bool_expected, "i", "x != 0"},
    {"where(x, 1, 0)", Code::bool_expected, "x", "x != 0"},
    {"h + inf", Code::number_not_in_dtype, "inf", "448"},
    {"max(h, 1000)", Code::number_not_in_dtype, "1000", "448"},
    {"u + 300", Code::number_not_in_dtype, "300", "cast the tensor"},
    {"9223372036854775807 + 1", Code::number_not_in_dtype, "9223372036854775807 + 1", ""},
    {"cast(-1, u8)", Code::number_not_in_dtype, "-1", ""},
    {"cast(x, f31)", Code::dtype_expected, "f31", "f64 f32"},
    {"dropout(i, 0.1)", Code::floating_expected, "i", "cast(x, f32)"},
    {"1 / 0", Code::division_by_zero, "1 / 0", ""},
    {"0 ^ -1", Code::division_by_zero, "0 ^ -1", ""},
    // arguments of built-ins
    {"exp()", Code::builtin_arguments, "exp", "`exp(x)`"},
    {"exp(x, y)", Code::builtin_arguments, "exp(x, y", ""},
    {"pow(x)", Code::builtin_arguments, "pow(x", "`pow(a, b)`"},
    {"max()", Code::builtin_arguments, "max", ""},
    {"iota()", Code::builtin_arguments, "iota", "`iota(axis)`"},
    {"sum(x, axis = b)", Code::builtin_keyword, "axis", "`sum(x, axis)`"},
    {"sum(iota(batch = 3), bach)", Code::no_such_axis, "bach", "did you mean `batch`?"},
    {"mean(x, sequence)", Code::no_such_axis, "sequence", "its axes are a, b"},
    {"sum(w, d)", Code::axis_repeated, "d", "`y: [d d_2] = ...`"},
    {"sum(x, 1)", Code::axis_name_expected, "1", "bare name"},
    {"sum(x, b, b)", Code::axis_twice, "b", ""},
    {"softmax(x)", Code::builtin_arguments, "softmax(x", "`softmax(x, axis)`"},
    {"iota(key)", Code::axis_without_size, "key", "`key = size`"},
    {"iota(a = 5)", Code::axis_has_declared_size, "a = 5", "name of its own"},
    {"one_hot(i, a)", Code::axis_exists, "a", ""},
    {"stack(x, x, a)", Code::axis_exists, "a", "another name"},
    {"stack(x, x, b)", Code::axis_exists, "b", "another name"},
    {"stack(y, y, d)", Code::axis_has_declared_size, "d", "name of its own"},
    {"concat(x, y, b)", Code::parts_differ, "y", ""},
    {"concat(x, x[b = 0:2], a)", Code::axis_sizes_differ, "x[b = 0:2]", ""},
    {"stack(x, y, pair)", Code::parts_differ, "y", ""},
    {"concat(x, x, pair)", Code::no_such_axis, "pair", "its axes are a, b"},
    {"pad(x, b = 1)", Code::pad_amounts, "1", "`b = (1, 1)`"},
    {"pad(x, b = (-1, 0))", Code::pad_amounts, "-1", ""},
    {"pad(x, c = (1, 0))", Code::no_such_axis, "c", ""},
    {"pad(x, b = (1, 0), value = y)", Code::number_expected, "y", ""},
    {"top_k(z, q, 5)", Code::top_k_too_large, "5", "at most"},
    {"dropout(x, 1)", Code::probability, "1", ""},
    {"dropout(x, y)", Code::number_expected, "y", ""},
    {"cross_entropy(x, x, b)", Code::one_hot_targets, "x", "argmax(x, b)"},
    {"cross_entropy(x, sum(x, b), b)", Code::index_not_integer, "sum(x, b)", "cast"},
    // indexing
    {"z[p = 2]", Code::index_outside, "2", "0 to 1, or -2 to -1"},
    {"z[p = -3]", Code::index_outside, "-3", ""},
    {"z[p = 0.5]", Code::index_not_integer, "0.5", ""},
    {"z[p = m]", Code::index_not_integer, "m", "where(mask, x, 0)"},
    {"z[q = 1:5]", Code::slice_outside, "q = 1:5", ""},
    {"z[q = 2:2]", Code::slice_empty, "q = 2:2", ""},
    {"z[q = 0:sum(i)]", Code::slice_bound, "sum(i)", "iota(n)"},
    {"z[c = 0]", Code::no_such_axis, "c", "its axes are p, q"},
    {"w[d = 0]", Code::axis_repeated, "d", ""},
    {"z[q = v[p = 0:1]]", Code::axis_sizes_differ, "v[p = 0:1]", "rename"},
    {"s[d = 0] <- x", Code::update_axis, "x", ""},
    {"s[d = -5 - d] <- 1", Code::index_outside, "-5 - d", ""},
    {"s[a = i, d = iota(a)] <- 1", Code::several_index_tensors, "iota(a)", ""},
    {"k[a = 0] <- 0.5", Code::update_dtype, "0.5", "cast(x, i32)"},
    // initialisers
    {"param p: [a] ~ norml(0, 1)", Code::unknown_initializer, "norml", "did you mean `normal`?"},
    {"param p: [a] ~ zeros(1)", Code::initializer_arguments, "zeros(1)", "`zeros`"},
    {"param p: [a] ~ constant", Code::initializer_arguments, "constant", "constant(0.5)"},
    {"param p: [a] ~ normal(sd = 1)", Code::builtin_keyword, "sd", "std = 0.02"},
    {"param p: [a] ~ normal(std = -1)", Code::initializer_argument, "std = -1", ""},
    {"param p: [a] ~ normal(std = exp(n))", Code::initializer_argument, "std = exp(n)", ""},
    {"param p: [a] ~ uniform(1, 0)", Code::initializer_argument, "0", ""},
    {"param p: [a] ~ uniform(0, inf)", Code::initializer_argument, "inf", ""},
    {"param p: [a] ~ xavier(fan_in = 0)", Code::initializer_argument, "fan_in = 0", ""},
    {"param p: [a] ~ xavier()", Code::initializer_arguments, "xavier()", "fan_in"},
    {"state t: i32[a] ~ normal", Code::floating_expected, "normal", "constant(3)"},
    {"state t: u8[a] ~ constant(256)", Code::number_not_in_dtype, "constant(256)", ""},
};

bool is_statement(std::string_view text) {
  return text.starts_with("param") || text.starts_with("state") || text.find("<-") != std::string_view::npos;
}

std::string program(std::string_view text) {
  return fmt::format("{}{}{}\n{}", kPrelude, is_statement(text) ? "" : "output r = ", text,
                     is_statement(text) ? "output r = sum(x)\n" : "");
}

TEST_CASE("every mistake is pointed at") {
  for (const ErrorRow& row : kRows) {
    CAPTURE(row.text);
    SourceMap sources;
    Diagnostics diagnostics;
    const auto file = sources.add("row.ein", program(row.text), diagnostics);
    REQUIRE(file);
    CHECK_FALSE(elaborate(sources, *file, {}, diagnostics));
    REQUIRE_FALSE(diagnostics.list().empty());
    const Diagnostic& first = diagnostics.list().front();
    CHECK(info(first.code).identifier == info(row.code).identifier);
    if (!row.place.empty()) CHECK(sources.text(first.span) == row.place);
    CHECK(first.hint.find(row.hint) != std::string::npos);
    CHECK(diagnostics.error_count() == 1);
  }
}

TEST_CASE("independent mistakes come together") {
  SourceMap sources;
  Diagnostics diagnostics;
  const auto file =
      sources.add("many.ein", std::string(kPrelude) + "p = sum(x, c) + mean(x, e)\nq = p + z[p = 9]\noutput r = q * 2\n", diagnostics);
  CHECK_FALSE(elaborate(sources, *file, {}, diagnostics));
  CHECK(diagnostics.error_count() == 3);
}

TEST_CASE("close to wrong, but right") {
  for (const std::string& text : std::vector<std::string>{
           "z + z[q = 0:3]",
           "w * w",
           "1 / (a - 2)",
           "w + 1",
           "sum(w)",
           "h + 448",
           "u + 255",
           "max(x, b)",
           "x[a = -2]",
           "x[b = n - n]",
           "pad(x, b = (0, 0))",
           "top_k(x, b, 3)",
           "1 / a",
           "x / 0",
           "softmax(x[b = 0:1], b)",
           "concat(x, b)",
           "stack(y, pair)",
           "s[d = n - n] <- i",
           "s[d = 1:3, a = 0] <- 2",
           "s[a = i] <- s",
           "k[a = i] <- i + 1",
           "param p: [a] ~ normal(std = 0.02 / sqrt(2 * n))",
           "param p: [a] ~ xavier(fan_in = n, fan_out = a)",
           "param p: [a] ~ trunc_normal(0.02)",
           "param p: [a] ~ uniform(-1 / sqrt(n), n^-0.5)",
           "state t: i32[a] ~ constant(-3)",
           "normal(a, z = 3)",
           "normal()",
       }) {
    CAPTURE(text);
    SourceMap sources;
    Diagnostics diagnostics;
    const auto file = sources.add("row.ein", program(text), diagnostics);
    REQUIRE(file);
    const bool elaborated = elaborate(sources, *file, {}, diagnostics).has_value();
    CHECK(elaborated);
    for (const Diagnostic& d : diagnostics.list()) FAIL_CHECK(d.message);
  }
}

}  // namespace
}  // namespace einc
