// SPDX-License-Identifier: Apache-2.0
// Polynomials of the tests, written as text.
#pragma once
#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "compiler/symbolic/poly.h"

namespace einc {

inline Poly p(std::string_view text) {
  const auto value = parse_poly(text);
  REQUIRE_MESSAGE(value.has_value(), std::string(text));
  return *value;
}

}  // namespace einc
