// SPDX-License-Identifier: Apache-2.0
// Laws that hold for random polynomials: ring laws, evaluation and substitution commute with the operations, text is read
// back as the same value, and a comparison never contradicts values.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "compiler/symbolic/order.h"

using namespace einc;

namespace {

const std::vector<std::string> kNames{"a", "b", "c", "d"};

int pick(int low, int high) { return *rc::gen::inRange(low, high); }  // high is not included

Poly random_monomial(int lowest_exponent) {
  Poly m(Rational(pick(-6, 7), pick(1, 4)));
  for (const std::string& name : kNames)
    if (pick(0, 2) == 1) m *= pow(Poly::dim(name), pick(lowest_exponent, 3));
  return pick(0, 12) == 0 ? m * Poly(INT64_MAX) * Poly(INT64_MAX - 5) : m;
}

Poly random_laurent() {
  Poly sum;
  for (int i = pick(0, 5); i > 0; --i) sum += random_monomial(-2);
  return sum;
}

// With floor, max and quotients, to the given depth.
Poly random_poly(int depth) {
  if (depth == 0 || pick(0, 3) == 0) return random_laurent();
  const Poly x = random_poly(depth - 1);
  switch (pick(0, 5)) {
    case 0:
      return floor(x);
    case 1:
      return max_of(x, random_laurent());
    case 2:
      return x * random_laurent() + Poly(pick(-3, 4));
    case 3:
      return x + random_poly(depth - 1);
    default:
      break;
  }
  const Poly below = random_laurent();
  return below.is_zero() ? x : divide(x, below);
}

Bindings random_values() {
  Bindings values;
  for (const std::string& name : kNames) values[name] = pick(0, 3) == 0 ? pick(1, 1000000) : pick(1, 9);
  return values;
}

void check(const std::string& what, const std::function<void()>& property) {
  INFO(what);
  CHECK(rc::check(what, property));
}

}  // namespace

TEST_CASE("ring laws") {
  check("addition and multiplication", [] {
    const Poly x = random_laurent(), y = random_laurent(), z = random_laurent();
    RC_ASSERT(x + y == y + x);
    RC_ASSERT((x + y) + z == x + (y + z));
    RC_ASSERT(x * y == y * x);
    RC_ASSERT((x * y) * z == x * (y * z));
    RC_ASSERT(x * (y + z) == x * y + x * z);
    RC_ASSERT(x - x == Poly(0));
    RC_ASSERT(x + (-y) == x - y);
    RC_ASSERT(x * Poly(1) == x);
    RC_ASSERT(pow(x, 3) == x * x * x);
    RC_ASSERT((x + y).hash() == (y + x).hash());
  });
  check("division undoes multiplication", [] {
    const Poly x = random_laurent(), other = random_laurent(), y = other.is_zero() ? Poly(1) : other;
    RC_ASSERT(divide(x * y, y) == x);
    RC_ASSERT(divide(x, y) * y == x);
  });
}

TEST_CASE("evaluation commutes with the operations") {
  check("on values", [] {
    const Poly x = random_poly(2), y = random_poly(1);
    const Bindings at = random_values();
    const auto vx = x.evaluate(at), vy = y.evaluate(at);
    RC_PRE(vx.has_value() && vy.has_value());
    const auto agrees = [&](const Poly& p, const Rational& expected) {
      const auto value = p.evaluate(at);  // an inverse may meet 0 in one form and not in another
      return !value || *value == expected;
    };
    RC_ASSERT(agrees(x + y, *vx + *vy));
    RC_ASSERT(agrees(x - y, *vx - *vy));
    RC_ASSERT(agrees(x * y, *vx * *vy));
    RC_ASSERT(agrees(floor(x), vx->floor()));
    RC_ASSERT(agrees(max_of(x, y), *vx < *vy ? *vy : *vx));
    if (!y.is_zero() && !vy->is_zero()) RC_ASSERT(agrees(divide(x, y), *vx / *vy));
  });
}

TEST_CASE("substitution and evaluation commute") {
  check("at values", [] {
    const Poly x = random_poly(2);
    const Substitution map{{"a", Poly(pick(1, 4)) * Poly::dim("b") + Poly(pick(0, 3))}, {"c", Poly::dim("a") * Poly::dim("d")}};
    const Bindings at = random_values();
    Bindings inner = at;
    for (const auto& [name, poly] : map) inner[name] = *poly.evaluate_integer(at);
    const auto direct = x.evaluate(inner);
    RC_PRE(direct.has_value());
    std::optional<Poly> substituted;
    try {
      substituted = x.substitute(map);
    } catch (const std::logic_error&) {
      RC_DISCARD("a denominator became 0 for all values");
    }
    const auto value = substituted->evaluate(at);
    RC_ASSERT(!value || *value == *direct);
  });
}

TEST_CASE("what is printed is read back") {
  check("the same value", [] {
    const Poly x = random_poly(3);
    const auto back = parse_poly(x.str());
    RC_ASSERT(back.has_value());
    RC_ASSERT(back->str() == x.str());
    RC_ASSERT(*back == x);
    RC_ASSERT(back->hash() == x.hash());
  });
}

TEST_CASE("comparisons agree with values") {
  check("at random dims", [] {
    const Poly x = random_poly(1), y = pick(0, 2) == 0 ? random_poly(1) : x + random_poly(1) * random_monomial(0);
    const Ordering order = compare(x, y);
    const Bindings at = random_values();
    const auto a = x.evaluate(at), b = y.evaluate(at);
    RC_PRE(a.has_value() && b.has_value());
    RC_CLASSIFY(order != Ordering::unknown, "decided");
    switch (order) {
      case Ordering::equal:
        RC_ASSERT(*a == *b);
        break;
      case Ordering::less:
        RC_ASSERT(*a < *b);
        break;
      case Ordering::less_equal:
        RC_ASSERT(*a <= *b);
        break;
      case Ordering::greater:
        RC_ASSERT(*a > *b);
        break;
      case Ordering::greater_equal:
        RC_ASSERT(*a >= *b);
        break;
      case Ordering::unknown:
        break;
    }
  });
}

TEST_CASE("folding names keeps the value") {
  check("at all values", [] {
    const std::vector<Definition> definitions{
        {"ab", Poly::dim("a") * Poly::dim("b")}, {"c_of_d", divide(Poly::dim("c"), Poly::dim("d"))}, {"six_d", Poly(6) * Poly::dim("d")}};
    const Poly x = random_laurent();
    Substitution back;
    for (const Definition& d : definitions) back.emplace(d.name, d.value);
    RC_ASSERT(fold_names(x, definitions).substitute(back) == x);
  });
}
