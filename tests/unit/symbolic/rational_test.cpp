// SPDX-License-Identifier: Apache-2.0
// Exact rational numbers, on both sides of the border between 64 bits and arbitrary precision.
#include "compiler/symbolic/rational.h"

#include <doctest/doctest.h>

#include <cmath>

#include "runtime/base/check.h"

using namespace einc;

TEST_CASE("lowest terms and text") {
  CHECK(Rational(6, 4).str() == "3/2");
  CHECK(Rational(-6, 4).str() == "-3/2");
  CHECK(Rational(6, -4).str() == "-3/2");
  CHECK(Rational(0, 5) == Rational());
  CHECK(Rational(INT64_MIN).str() == "-9223372036854775808");
  CHECK(Rational(INT64_MIN, INT64_MIN).is_one());
  CHECK(Rational(1, INT64_MIN).str() == "-1/9223372036854775808");
  CHECK_THROWS_AS(Rational(1, 0), InternalError);
}

TEST_CASE("leaving 64 bits and coming back") {
  const Rational large(INT64_MAX), up = large + Rational(1), square = large * large;
  CHECK(up.str() == "9223372036854775808");
  CHECK_FALSE(up.as_integer().has_value());
  CHECK(up - Rational(1) == large);
  CHECK((up - Rational(1)).as_integer() == INT64_MAX);
  CHECK((up - Rational(1)).hash() == large.hash());
  CHECK(square / large == large);
  CHECK(-(-up) == up);
  CHECK((-up).str() == "-9223372036854775808");
  CHECK(Rational(INT64_MIN) == -up);
  CHECK(pow(Rational(2), 200).str() == "1606938044258990275541962092341162602522202993782792835301376");
  CHECK(pow(Rational(2), 200) * pow(Rational(2), -200) == Rational(1));
  CHECK(pow(Rational(2, 3), -3) == Rational(27, 8));
  CHECK(Rational(1, INT64_MAX) * Rational(1, 2) == Rational(1) / (Rational(INT64_MAX) * Rational(2)));
  CHECK(Rational(1, INT64_MAX) + Rational(1, INT64_MAX - 1) > Rational(1, INT64_MAX));
}

TEST_CASE("floor, parts, order") {
  CHECK(Rational(7, 2).floor() == Rational(3));
  CHECK(Rational(-7, 2).floor() == Rational(-4));
  CHECK(Rational(-4).floor() == Rational(-4));
  const Rational big = pow(Rational(10), 30);
  CHECK((big + Rational(1, 3)).floor() == big);
  CHECK((-big - Rational(1, 3)).floor() == -big - Rational(1));
  CHECK((big / Rational(7)).denominator() == Rational(7));
  CHECK((big / Rational(7)).numerator() == big);
  CHECK(big.is_integer());
  CHECK_FALSE((big / Rational(7)).is_integer());
  CHECK(Rational(1, 3) < Rational(1, 2));
  CHECK(-big < Rational(0));
  CHECK(big.sign() == 1);
  CHECK(Rational(-1, 2).sign() == -1);
  CHECK(gcd(Rational(12), Rational(-18)) == Rational(6));
  CHECK(gcd(big, Rational(1024)) == Rational(1024));
  CHECK(gcd(Rational(0), Rational(5)) == Rational(5));
  CHECK(lcm(Rational(4), Rational(-6)) == Rational(12));
  CHECK_THROWS_AS(Rational(1) / Rational(0), InternalError);
}

TEST_CASE("as doubles") {
  CHECK(Rational(1, 4).to_double() == 0.25);
  CHECK(pow(Rational(2), 100).to_double() == std::ldexp(1.0, 100));
  CHECK(std::isinf(pow(Rational(10), 400).to_double()));
}

TEST_CASE("digits") {
  CHECK(Rational::from_digits("0012") == Rational(12));
  CHECK(Rational::from_digits("0") == Rational(0));
  CHECK(Rational::from_digits("9223372036854775808") == Rational(INT64_MAX) + Rational(1));
  CHECK_FALSE(Rational::from_digits("").has_value());
  CHECK_FALSE(Rational::from_digits("-1").has_value());
  CHECK_FALSE(Rational::from_digits("0x10").has_value());
  CHECK(Rational::from_digits(std::string(Rational::kMaxDigits, '1')).has_value());
  CHECK_FALSE(Rational::from_digits(std::string(Rational::kMaxDigits + 1, '1')).has_value());
}
