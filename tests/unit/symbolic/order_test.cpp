// SPDX-License-Identifier: Apache-2.0
// Orderings that hold for all dims >= 1, and only those.
#include "compiler/symbolic/order.h"

#include <doctest/doctest.h>

using namespace einc;

TEST_CASE("comparison for all dims of at least 1") {
  struct Row {
    std::string left, right;
    Ordering expected;
  };
  const Row rows[] = {
      {"2", "3", Ordering::less},
      {"a", "a", Ordering::equal},
      {"a", "1", Ordering::greater_equal},
      {"a", "0", Ordering::greater},
      {"a + 1", "a", Ordering::greater},
      {"a", "b", Ordering::unknown},
      {"a*b", "a", Ordering::greater_equal},
      {"a*b + 1", "a", Ordering::greater},
      {"a*b", "a + b - 1", Ordering::greater_equal},
      {"a^2 - 2*a + 2", "1", Ordering::greater_equal},
      {"a^2 - 4*a + 5", "0", Ordering::unknown},
      {"a^-1", "1", Ordering::less_equal},
      {"a/b", "a", Ordering::less_equal},
      {"a/(a + b)", "1", Ordering::less},
      {"a/(a + b) + b/(a + b)", "1", Ordering::equal},
      {"a/(a + 1) + 1/(a + 1) + c", "c + 1", Ordering::equal},
      {"1/(a + b + 1)", "1/(a + b)", Ordering::less},
      {"1/(a - b)", "0", Ordering::unknown},
      {"floor(a/2)", "a", Ordering::less},
      {"floor(a/2)", "0", Ordering::greater_equal},
      {"2*floor(a/2)", "a", Ordering::less_equal},
      {"2*floor((a + 1)/2)", "a", Ordering::greater_equal},
      {"floor((a + 2)/2)", "1", Ordering::greater_equal},
      {"max(a, b)", "a", Ordering::greater_equal},
      {"max(a, b) + 1", "b", Ordering::greater},
      {"max(a, b)", "a + b", Ordering::less},
      {"max(a, b)*c", "a*c", Ordering::greater_equal},
      {"max(a, b)", "c", Ordering::unknown},
      {"-max(-a, -b)", "a", Ordering::less_equal},
      {"floor((seq - kernel)/stride) + 1", "seq", Ordering::less_equal},
  };
  for (const Row& row : rows) {
    CAPTURE(row.left);
    CAPTURE(row.right);
    const auto left = parse_poly(row.left), right = parse_poly(row.right);
    REQUIRE(left.has_value());
    REQUIRE(right.has_value());
    CHECK(static_cast<int>(compare(*left, *right)) == static_cast<int>(row.expected));
  }
}

TEST_CASE("proofs") {
  const Poly a = Poly::dim("a"), b = Poly::dim("b");
  CHECK(provably_positive(a));
  CHECK_FALSE(provably_positive(a - Poly(1)));
  CHECK(provably_at_least(a - Poly(1), Poly(0)));
  CHECK(provably_at_least(a * b, Poly(1)));
  CHECK_FALSE(provably_at_least(a, b));
  CHECK(provably_equal(divide(a, a + b) + Poly(1), divide(Poly(2) * a + b, a + b)));
}

TEST_CASE("a comparison too large to expand says unknown, and ends") {
  Poly product(1);
  for (int i = 0; i < 24; ++i) product *= Poly::dim("wide" + std::to_string(i));
  CHECK(compare(product, Poly(0)) == Ordering::greater);
  CHECK(compare(product, Poly(1)) == Ordering::unknown);
}
