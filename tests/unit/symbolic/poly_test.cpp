// SPDX-License-Identifier: Apache-2.0
// Tables for symbolic sizes: canonical text, ring arithmetic, division, floor and max, values.
#include "compiler/symbolic/poly.h"

#include <doctest/doctest.h>

#include <thread>

#include "runtime/base/check.h"
#include "tests/unit/symbolic/parsed.h"

using namespace einc;

TEST_CASE("canonical text") {
  struct Row {
    std::string written, printed;
  };
  const Row rows[] = {
      {"0", "0"},
      {"-0", "0"},
      {"7", "7"},
      {"-7", "-7"},
      {"4/6", "2/3"},
      {"a", "a"},
      {"-a", "-a"},
      {"a*1", "a"},
      {"a*0", "0"},
      {"a - a", "0"},
      {"2*batch*embed*vocab + 2*batch*embed^2", "2*batch*embed^2 + 2*batch*embed*vocab"},
      {"vocab*embed + embed*seq + 12*embed^2 + 1", "12*embed^2 + embed*seq + embed*vocab + 1"},
      {"b - 3*a", "-3*a + b"},
      {"b*b - 3*a", "b^2 - 3*a"},
      {"a^2/2", "1/2*a^2"},
      {"-a^2/2 - b", "-1/2*a^2 - b"},
      {"1/a", "a^-1"},
      {"2/(b*k)", "2*b^-1*k^-1"},
      {"b/a", "a^-1*b"},
      {"a/a", "1"},
      {"(a + b)*(a - b)", "a^2 - b^2"},
      {"(a + 1)^3", "a^3 + 3*a^2 + 3*a + 1"},
      {"a^0", "1"},
      {"a^-2*a^3", "a"},
      {"a + a^-1 + 1", "a + 1 + a^-1"},
      {"z + y + x", "x + y + z"},
      {"zeta_9*Alpha", "Alpha*zeta_9"},
      {"9223372036854775807 + 1", "9223372036854775808"},
      {"-9223372036854775807 - 1", "-9223372036854775808"},
      {"-9223372036854775807 - 1 + 1", "-9223372036854775807"},
      {"18446744073709551616*a*18446744073709551616", "340282366920938463463374607431768211456*a"},
      {"floor", "floor"},
      {"max + floor", "floor + max"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.written);
    CHECK(p(row.written).str() == row.printed);
    CHECK(p(row.printed) == p(row.written));
    CHECK(p(row.printed).hash() == p(row.written).hash());
  }
}

TEST_CASE("text does not depend on the order names were first seen") {
  const Poly late = Poly::dim("order_z") * Poly::dim("order_m") + Poly::dim("order_a") * Poly::dim("order_m");
  CHECK(late.str() == "order_a*order_m + order_m*order_z");
  CHECK((late * Poly::dim("order_b")).str() == "order_a*order_b*order_m + order_b*order_m*order_z");
}

TEST_CASE("division") {
  struct Row {
    std::string above, below, quotient;
  };
  const Row rows[] = {
      {"heads*head", "heads", "head"},
      {"heads*head", "head*heads", "1"},
      {"embed", "heads", "embed*heads^-1"},
      {"6*a^2 + 3*a*b", "3*a", "2*a + b"},
      {"a^2 - b^2", "a + b", "a - b"},
      {"a^3 - 1", "a - 1", "a^2 + a + 1"},
      {"(a + b)*(c - 2*d)*(a + 3)", "(c - 2*d)*(a + b)", "a + 3"},
      {"a^2 + b", "a + b", "a^2*(a + b)^-1 + b*(a + b)^-1"},
      {"1", "a + b", "(a + b)^-1"},
      {"1", "2*a*c - 4*b*c", "1/2*c^-1*(a - 2*b)^-1"},
      {"1", "b - a", "-(a - b)^-1"},
      {"a^-1 + b^-1", "a + b", "a^-1*b^-1"},
      {"c", "1/(a + b)", "a*c + b*c"},
      {"1 + c", "1/(a + b) + 1", "a*c*(a + b + 1)^-1 + b*c*(a + b + 1)^-1 + a*(a + b + 1)^-1 + b*(a + b + 1)^-1"},
      {"0", "a + b", "0"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.above);
    CAPTURE(row.below);
    CHECK(divide(p(row.above), p(row.below)).str() == row.quotient);
    CHECK(p(row.quotient).str() == row.quotient);
  }
  CHECK_THROWS_AS(divide(Poly(1), Poly(0)), InternalError);
}

TEST_CASE("quotients of sums cancel") {
  const Poly a = Poly::dim("a"), b = Poly::dim("b"), s = a + b;
  CHECK(divide(a, s) + divide(b, s) == Poly(1));
  CHECK(divide(Poly(1), s) * s == Poly(1));
  CHECK(divide(a, s) * s == a);
  CHECK(divide(a, s) - divide(a, s) == Poly(0));
  CHECK(pow(s, -2) * s * s == Poly(1));
  CHECK(pow(s, -2).str() == "(a + b)^-2");
  CHECK(divide(Poly(1), pow(s, -3)) == pow(s, 3));
  CHECK(divide(a, s).substitute({{Name("b"), a}}) == Poly(Rational(1, 2)));
}

TEST_CASE("floor and max") {
  struct Row {
    std::string written, printed;
  };
  const Row rows[] = {
      {"floor(7/2)", "3"},
      {"floor(-7/2)", "-4"},
      {"floor(6/2)", "3"},
      {"floor(a)", "a"},
      {"floor(6*a/3)", "2*a"},
      {"floor((a^2 - 1)/(a - 1))", "a + 1"},
      {"floor((1 + seq)/2)", "floor((seq + 1)/2)"},
      {"floor(seq/2)", "floor(seq/2)"},
      {"floor((seq - 2)/2) + 1", "floor(seq/2)"},
      {"floor((seq + 3)/2)", "floor((seq + 1)/2) + 1"},
      {"floor((2*a + 1)/2)", "a"},
      {"floor(a/b)", "floor(a/b)"},
      {"floor((a + 1)/(2*b))", "floor((a + 1)/(2*b))"},
      {"floor(a/(b + c))", "floor(a/(b + c))"},
      {"floor(a*b/(2*b^2 + 2*b*c))", "floor(a/(2*(b + c)))"},
      {"floor(a/(a + 1))", "0"},
      {"floor(3*a/2)", "floor(3*a/2)"},
      {"floor(-a/2)", "floor(-a/2)"},
      {"floor((floor((s - 2)/2) + 1 - 2)/2) + 1", "floor(s/4)"},
      {"floor((floor(a/2) + floor(b/2))/2)", "floor((floor(a/2) + floor(b/2))/2)"},
      {"2*batch*floor((seq + 1)/2)", "2*batch*floor((seq + 1)/2)"},
      {"floor((seq + 1)/2)^2", "floor((seq + 1)/2)^2"},
      {"max(3, 5, 4)", "5"},
      {"max(a)", "a"},
      {"max(b, a, b)", "max(a, b)"},
      {"max(1, a)", "a"},
      {"max(a, 2)", "max(2, a)"},
      {"max(a, a + b, 2*a)", "max(2*a, a + b)"},
      {"max(max(a, b), c)", "max(a, b, c)"},
      {"max(a*b, a)", "a*b"},
      {"-max(-a, -b)", "-max(-a, -b)"},
      {"max(floor(a/2), a)", "a"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.written);
    CHECK(p(row.written).str() == row.printed);
    CHECK(p(row.printed) == p(row.written));
  }
  CHECK(floor_divide(p("seq + 1"), Poly(2)) == p("floor((seq + 1)/2)"));
  CHECK(min_of(p("a"), p("a + b")) == p("a"));
  CHECK(min_of(p("a"), p("b")).evaluate({{"a", 3}, {"b", 2}}) == Rational(2));
}

TEST_CASE("values") {
  const Bindings values{{"a", 6}, {"b", 4}, {"big", INT64_MAX}};
  struct Row {
    std::string written, value;
  };
  const Row rows[] = {
      {"a*b", "24"},
      {"a/b", "3/2"},
      {"floor(a/b)", "1"},
      {"a/(a + b)", "3/5"},
      {"max(a, 2*b)", "8"},
      {"a^-2", "1/36"},
      {"big + big", "18446744073709551614"},
      {"big^2", "85070591730234615847396907784232501249"},
      {"floor(-b/a)*1", "-1"},
      {"(a - b)^-1", "1/2"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.written);
    const auto value = p(row.written).evaluate(values);
    REQUIRE(value.has_value());
    CHECK(value->str() == row.value);
  }
  CHECK_FALSE(p("a + missing").evaluate(values).has_value());
  CHECK_FALSE(p("floor(missing/2)").evaluate(values).has_value());
  CHECK_FALSE(p("1/(a - b - 2)").evaluate(values).has_value());
  CHECK(p("a/b").to_double(values) == 1.5);
  CHECK(p("a*b").evaluate_integer(values) == 24);
  CHECK_FALSE(p("a/b").evaluate_integer(values).has_value());
  CHECK_FALSE(p("2*big").evaluate_integer(values).has_value());
  CHECK(fits_63_bits(p("big"), values));
  CHECK_FALSE(fits_63_bits(p("big + 1"), values));
  CHECK(fits_63_bits(p("big*missing"), values));
}

TEST_CASE("questions about the form") {
  CHECK(Poly().is_zero());
  CHECK(Poly(1).is_one());
  CHECK(Poly(Rational(4, 2)) == Poly(2));
  CHECK(Poly(5).as_integer() == 5);
  CHECK_FALSE(p("a").as_integer().has_value());
  CHECK_FALSE(p("1/2").as_integer().has_value());
  CHECK(p("1/2").is_constant());
  CHECK(p("1/2").as_rational() == Rational(1, 2));
  CHECK(Poly(INT64_MIN) == Poly(INT64_MAX) * Poly(-1) - Poly(1));
  CHECK(Poly(INT64_MIN).is_constant());
  CHECK(p("3*a").is_monomial());
  CHECK_FALSE(p("a + 1").is_monomial());
  CHECK_FALSE(Poly().is_monomial());
  CHECK(p("3*a*b + floor(a/2)").is_integral());
  CHECK(p("max(a, b)").is_integral());
  CHECK_FALSE(p("max(a/2, b)").is_integral());
  CHECK_FALSE(p("a/b").is_integral());
  CHECK_FALSE(p("a/2").is_integral());
  CHECK(p("a*floor(b/(c + d))").contains("d"));
  CHECK_FALSE(p("a*b").contains("c"));
  CHECK(p("zz*b + floor(c/(a + b))").free_names() == std::vector<Name>{"a", "b", "c", "zz"});
  CHECK_THROWS_AS(Poly::dim(Name()), InternalError);
}

TEST_CASE("substitution replaces all names at once") {
  const Substitution swap{{"a", p("b")}, {"b", p("a")}};
  CHECK(p("a^2*b + a").substitute(swap) == p("b^2*a + b"));
  CHECK(p("floor((a + 1)/2)").substitute({{"a", p("2*n + 1")}}) == p("n + 1"));
  CHECK(p("max(a, b)").substitute({{"a", p("b + 1")}}) == p("b + 1"));
  CHECK(p("a/b").substitute({{"a", p("b*c")}}) == p("c"));
  CHECK(p("a/(b + c)").substitute({{"c", p("b")}, {"a", p("4*b")}}) == Poly(2));
  CHECK(p("a").substitute({}) == p("a"));
}

TEST_CASE("the reader refuses what is no polynomial, and hostile text") {
  for (const char* text : {"",
                           " ",
                           "a +",
                           "+ a",
                           "a b",
                           "(a",
                           "a)",
                           "a^",
                           "a^b",
                           "a^-",
                           "1/0",
                           "a/(b - b)",
                           "0^-1",
                           "floor(a, b)",
                           "floor()",
                           "max()",
                           "max(a,",
                           "2a",
                           "a^9999999999",
                           "a^4097",
                           "a^4096*a",
                           "2^65",
                           "(a + b + c + d + e)^64",
                           "#",
                           "a*-",
                           "1e5",
                           "a\n"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_poly(text).has_value());
  }
  CHECK_FALSE(parse_poly(std::string(300, '(') + "a" + std::string(300, ')')).has_value());
  CHECK(parse_poly(std::string(255, '(') + "a" + std::string(255, ')')) == Poly::dim("a"));
  CHECK_FALSE(parse_poly(std::string(5000, '9')).has_value());
  std::string huge = "(a + b + c + d)";
  for (int i = 0; i < 60; ++i) huge += "*(a" + std::to_string(i) + " + b" + std::to_string(i) + ")";
  CHECK_FALSE(parse_poly(huge).has_value());
  std::string long_product = "(a + b)";
  for (int i = 0; i < 20000; ++i) long_product += "*(a + b)";
  CHECK_FALSE(parse_poly(long_product).has_value());
  CHECK(p("  a*b   -  2 ") == p("a*b - 2"));
}

TEST_CASE("values are shared between threads") {
  const Poly base = p("a*b + floor((a + 1)/2) + 1");
  std::vector<Poly> results(8);
  std::vector<std::thread> threads;
  for (Poly& r : results)
    threads.emplace_back([&r, base] {
      for (int64_t i = 0; i < 200; ++i) r = r + base * Poly(i) + floor_divide(Poly::dim("a") + Poly(i), Poly(7));
    });
  for (std::thread& t : threads) t.join();
  for (const Poly& r : results) CHECK(r == results.front());
}

TEST_CASE("a kept value is the same value, once for all threads") {
  const Poly size = Poly::dim("poly_test.a") * Poly::dim("poly_test.b") + Poly(3);
  const Poly kept = size.kept();
  CHECK(kept == size);
  CHECK(kept.hash() == size.hash());
  CHECK(kept.kept() == size);
  CHECK(Poly(7).kept() == Poly(7));
  CHECK(Poly().kept() == Poly());
  std::vector<std::thread> threads;
  std::vector<Poly> sums(4);
  for (Poly& sum : sums)
    threads.emplace_back([&] {
      for (int i = 0; i < 10000; ++i) {
        const Poly copy = kept, again = size.kept();  // comes and goes without a counter
        sum = copy + again + Poly::dim("poly_test.a");
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const Poly& sum : sums) CHECK(sum == size + size + Poly::dim("poly_test.a"));
  CHECK(kept == size);
}
