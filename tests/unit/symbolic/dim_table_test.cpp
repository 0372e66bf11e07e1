// SPDX-License-Identifier: Apache-2.0
// Declared dims: binding values, every kind of problem with its message, and run-time conditions.
#include "compiler/symbolic/dim_table.h"
#include "tests/unit/symbolic/parsed.h"

#include <doctest/doctest.h>

#include "runtime/base/check.h"

using namespace einc;

namespace {

DimTable gpt() {
  DimTable t;
  t.declare_free("batch", 1);
  t.declare_default("seq", 1024, 2);
  t.declare_default("heads", 12, 3);
  t.declare_default("embed", 768, 4);
  t.declare_derived("head", p("embed/heads"), 5);
  t.declare_derived("hidden", p("4*embed"), 6);
  return t;
}

}  // namespace

TEST_CASE("binding") {
  const DimTable t = gpt();
  const BindResult r = t.bind({{"batch", 8}, {"seq", 64}});
  CHECK(r.ok());
  CHECK(r.unset.empty());
  CHECK(r.values == Bindings{{"batch", 8}, {"seq", 64}, {"heads", 12}, {"embed", 768}, {"head", 64}, {"hidden", 3072}});
  const BindResult symbolic = t.bind({});
  CHECK(symbolic.ok());
  CHECK(symbolic.unset == std::vector<Name>{"batch"});
  CHECK(symbolic.values.count("batch") == 0);
  CHECK(symbolic.values.at("head") == 64);
}

TEST_CASE("binding says all that is wrong") {
  struct Row {
    Bindings given;
    BindProblemKind kind;
    std::string message;
    int source;
  };
  const Row rows[] = {
      {{{"hidden", 5}}, BindProblemKind::derived_set, "dim hidden is derived (4*embed): set embed instead", 6},
      {{{"head", 5}}, BindProblemKind::derived_set, "dim head is derived (embed/heads): set embed or heads instead", 5},
      {{{"sek", 5}}, BindProblemKind::unknown_dim, "there is no dim sek", -1},
      {{{"seq", 0}}, BindProblemKind::below_one, "dim seq is 0; a dim is at least 1", 2},
      {{{"seq", -3}}, BindProblemKind::below_one, "dim seq is -3; a dim is at least 1", 2},
      {{{"heads", 7}}, BindProblemKind::not_integer, "dim head = embed/heads is 768/7, not an integer, with embed = 768, heads = 7", 5},
      {{{"embed", INT64_MAX}, {"heads", 1}},
       BindProblemKind::too_large,
       "dim hidden = 4*embed is 36893488147419103228, above 2^63 - 1, with embed = 9223372036854775807",
       6},
  };
  for (const Row& row : rows) {
    CAPTURE(row.message);
    const BindResult r = gpt().bind(row.given);
    REQUIRE(r.problems.size() == 1);
    CHECK(r.problems[0].message == row.message);
    CHECK(static_cast<int>(r.problems[0].kind) == static_cast<int>(row.kind));
    CHECK(r.problems[0].source == row.source);
  }
  CHECK(gpt().bind({{"seq", 0}, {"heads", 7}, {"hidden", 1}, {"x", 1}}).problems.size() == 4);
}

TEST_CASE("a derived dim below 1, or by 0") {
  DimTable t;
  t.declare_free("a");
  t.declare_derived("b", p("a - 3"));
  t.declare_derived("c", p("1/(a - 5)"));
  CHECK(t.bind({{"a", 6}}).ok());
  CHECK(t.bind({{"a", 3}}).problems[0].message == "dim b = a - 3 is 0, not at least 1, with a = 3");
  CHECK(t.bind({{"a", 5}}).problems[0].message == "dim c = 1/(a - 5) divides by 0 with a = 5");
}

TEST_CASE("conditions") {
  struct Row {
    ConditionKind kind;
    std::string left, right, text;
    Verdict verdict;
    Bindings good, bad;  // values at which it holds and fails
  };
  const Row rows[] = {
      {ConditionKind::divides, "e", "h", "e/h is an integer", Verdict::depends, {{"e", 12}, {"h", 4}}, {{"e", 12}, {"h", 5}}},
      {ConditionKind::divides, "2*e + 2", "2", "(2*e + 2)/2 is an integer", Verdict::always, {{"e", 1}}, {}},
      {ConditionKind::divides, "7", "2", "7/2 is an integer", Verdict::never, {}, {}},
      {ConditionKind::divides, "e", "e + 1", "e/(e + 1) is an integer", Verdict::never, {}, {{"e", 1}}},
      {ConditionKind::divides, "e", "2*h", "e/(2*h) is an integer", Verdict::depends, {{"e", 4}, {"h", 2}}, {{"e", 2}, {"h", 2}}},
      {ConditionKind::at_least, "e", "h", "e is at least h", Verdict::depends, {{"e", 4}, {"h", 4}}, {{"e", 3}, {"h", 4}}},
      {ConditionKind::at_least, "e + 1", "2", "e + 1 is at least 2", Verdict::always, {{"e", 1}}, {}},
      {ConditionKind::at_least, "e", "e + h", "e is at least e + h", Verdict::never, {}, {{"e", 3}, {"h", 4}}},
      {ConditionKind::less, "e", "h", "e is less than h", Verdict::depends, {{"e", 3}, {"h", 4}}, {{"e", 4}, {"h", 4}}},
      {ConditionKind::less, "e", "e", "e is less than e", Verdict::never, {}, {{"e", 4}}},
      {ConditionKind::equal, "e", "h", "e equals h", Verdict::depends, {{"e", 4}, {"h", 4}}, {{"e", 3}, {"h", 4}}},
      {ConditionKind::equal, "e", "e + 1", "e equals e + 1", Verdict::never, {}, {{"e", 3}}},
      {ConditionKind::in_range,
       "e - 2",
       "h",
       "e - 2 is at least 0 and less than h",
       Verdict::depends,
       {{"e", 2}, {"h", 1}},
       {{"e", 1}, {"h", 1}}},
      {ConditionKind::in_range, "e", "e + 1", "e is at least 0 and less than e + 1", Verdict::always, {{"e", 1}}, {}},
      {ConditionKind::fits,
       "e*h",
       "0",
       "e*h is at most 2^63 - 1",
       Verdict::depends,
       {{"e", INT64_MAX}, {"h", 1}},
       {{"e", INT64_MAX}, {"h", 2}}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const Condition c{row.kind, p(row.left), p(row.right), 9, "slice"};
    CHECK(to_string(c) == row.text);
    CHECK(static_cast<int>(decide(c)) == static_cast<int>(row.verdict));
    if (!row.good.empty()) CHECK(holds(c, row.good) == true);
    if (!row.bad.empty()) CHECK(holds(c, row.bad) == false);
    if (!(c.left.is_constant() && c.right.is_constant())) CHECK_FALSE(holds(c, {}).has_value());
  }
}

TEST_CASE("divisions that no integers bring about") {
  struct Row {
    std::string left, right;
    Verdict verdict;
  };
  const Row rows[] = {
      {"6*n + 1", "3", Verdict::never},
      {"6*n + 2", "3", Verdict::never},
      {"6*n + 3", "3", Verdict::always},
      {"6*n + 1", "5", Verdict::depends},
      {"2*n + 1", "4", Verdict::never},
      {"n^2 + 1", "3", Verdict::never},
      {"n^2 + 2", "3", Verdict::depends},
      {"n^2 + m^2 + 1", "4", Verdict::never},
      {"n^2 + m^2 + 2", "4", Verdict::depends},
      {"n^2 + m^2 + 5", "8", Verdict::never},
      {"4*n^2 + 4*m^2 + 3", "4", Verdict::never},
      {"n^2 - n + 1", "2", Verdict::never},
      {"1/2*n^2 + 1/2*n + 1/2", "1", Verdict::never},
      {"1/2*n^2 + 1/2*n", "1", Verdict::depends},
      {"2*n + 4*m + 1", "2*k", Verdict::never},
      {"2*n + 4*m + 1", "6*k + 4*n", Verdict::never},
      {"2*n + 1", "k", Verdict::depends},
      {"a*2 + b*4 + c*6 + d*8 + e*10 + 1", "1000", Verdict::never},
      {"a + b + c + d + e", "1000", Verdict::depends},
      {"1000003*n + 1", "1000003", Verdict::never},
      {"3*floor(n/2) + 1", "3", Verdict::never},
      {"6*n^-1 + 1", "3", Verdict::depends},
  };
  for (const Row& row : rows) {
    CAPTURE(row.left);
    CAPTURE(row.right);
    CHECK(static_cast<int>(decide({ConditionKind::divides, p(row.left), p(row.right), 0, "axis"})) == static_cast<int>(row.verdict));
  }
  // `never` means no values, and is found whenever it is so
  for (int64_t a = 0; a < 7; ++a)
    for (int64_t b = 0; b < 7; ++b)
      for (int64_t c = 0; c < 7; ++c)
        for (int64_t d = 2; d < 9; ++d) {
          const Poly left = Poly(a) * p("n^2") + Poly(b) * p("n*m") + Poly(c);
          if (left.is_zero()) continue;
          const Condition condition{ConditionKind::divides, left, Poly(d), 0, "axis"};
          bool somewhere = false;
          for (int64_t n = 1; n <= 8 && !somewhere; ++n)
            for (int64_t m = 1; m <= 8 && !somewhere; ++m) somewhere = (a * n * n + b * n * m + c) % d == 0;
          CHECK((decide(condition) == Verdict::never) == !somewhere);
        }
}

TEST_CASE("conditions are checked at binding, once, and only when their values are known") {
  DimTable t = gpt();
  const Condition c{ConditionKind::divides, p("embed"), p("batch"), 42, "axis (b k)"};
  t.require(c);
  t.require(c);
  CHECK(t.conditions().size() == 1);
  CHECK(t.bind({}).ok());
  CHECK(t.bind({{"batch", 8}}).ok());
  const BindResult r = t.bind({{"batch", 5}});
  REQUIRE(r.problems.size() == 1);
  CHECK(r.problems[0].message == "axis (b k): embed = 768 is not a multiple of batch = 5");
  CHECK(r.problems[0].source == 42);
}

TEST_CASE("lookup") {
  const DimTable t = gpt();
  CHECK(t.size("seq") == Poly::dim("seq"));
  CHECK(t.size("hidden") == p("4*embed"));
  CHECK(t.find("nothing") == nullptr);
  CHECK(t.find("head")->kind == DimKind::derived);
  CHECK(t.definitions().size() == 2);
  const Bindings v = t.values_or({{"heads", 7}}, 1024);
  CHECK(v.at("batch") == 1024);
  CHECK(v.at("seq") == 1024);
  CHECK(v.at("head") == 109);
  CHECK(t == gpt());
  DimTable twice;
  twice.declare_free("a");
  CHECK_THROWS_AS(twice.declare_free("a"), InternalError);
  CHECK_THROWS_AS(twice.declare_derived("b", p("unknown")), InternalError);
}
