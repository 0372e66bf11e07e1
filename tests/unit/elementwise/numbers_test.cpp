// SPDX-License-Identifier: Apache-2.0
// Arithmetic on numbers while compiling: what stays exact, what becomes a double, what is left to the graph.
#include <doctest/doctest.h>

#include <limits>

#include "compiler/elaborate/numbers.h"

namespace einc {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
Number integer(const char* text) { return Number{*parse_poly(text), true}; }
Number real(double value) { return Number{value, false}; }

std::string fold(MapFn fn, std::vector<Number> operands) {
  const auto result = fold_numbers(fn, operands);
  if (const auto* fault = std::get_if<NumberFault>(&result)) return *fault == NumberFault::needs_nodes ? "nodes" : "division by zero";
  const Number& number = std::get<Number>(result);
  return (number.integer ? "integer " : "real ") + describe(number);
}

TEST_CASE("integers and dims stay exact") {
  CHECK(fold(MapFn::add, {integer("1"), integer("2")}) == "integer 3");
  CHECK(fold(MapFn::sub, {integer("seq"), integer("1")}) == "integer seq - 1");
  CHECK(fold(MapFn::mul, {integer("9223372036854775807"), integer("2")}) == "integer 18446744073709551614");
  CHECK(fold(MapFn::div, {integer("1"), integer("2")}) == "real 1/2");
  CHECK(fold(MapFn::div, {integer("4"), integer("2")}) == "real 2");
  CHECK(fold(MapFn::div, {integer("1"), integer("heads")}) == "real heads^-1");
  CHECK(fold(MapFn::pow, {integer("2"), integer("10")}) == "integer 1024");
  CHECK(fold(MapFn::pow, {integer("2"), integer("-1")}) == "real 1/2");
  CHECK(fold(MapFn::pow, {integer("d"), integer("3")}) == "integer d^3");
  CHECK(fold(MapFn::neg, {integer("d")}) == "integer -d");
  CHECK(fold(MapFn::abs, {integer("-3")}) == "integer 3");
  CHECK(fold(MapFn::abs, {integer("d")}) == "integer d");
  CHECK(fold(MapFn::maximum, {integer("3"), integer("5")}) == "integer 5");
  CHECK(fold(MapFn::minimum, {integer("3"), integer("5")}) == "integer 3");
  CHECK(fold(MapFn::maximum, {integer("d"), integer("0")}) == "integer d");
}

TEST_CASE("reals are doubles, and exact decimals beside dims") {
  CHECK(fold(MapFn::add, {real(0.5), integer("1")}) == "real 1.5");
  CHECK(fold(MapFn::mul, {real(0.02), integer("d")}) == "real 1/50*d");
  CHECK(fold(MapFn::mul, {real(1e-5), integer("d")}) == "real 1/100000*d");
  CHECK(fold(MapFn::sqrt, {integer("16")}) == "real 4");
  CHECK(fold(MapFn::pow, {integer("4"), real(0.5)}) == "real 2");
  CHECK(fold(MapFn::neg, {real(kInfinity)}) == "real -inf");
  CHECK(fold(MapFn::maximum, {real(std::numeric_limits<double>::quiet_NaN()), integer("1")}) == "real nan");
}

TEST_CASE("what depends on dims and is no polynomial is left to the graph") {
  CHECK(fold(MapFn::rsqrt, {integer("head")}) == "nodes");
  CHECK(fold(MapFn::exp, {integer("head")}) == "nodes");
  CHECK(fold(MapFn::mul, {real(kInfinity), integer("head")}) == "nodes");
  CHECK(fold(MapFn::div, {integer("1"), integer("head - 2")}) == "nodes");  // infinite where head is 2
  CHECK(fold(MapFn::pow, {integer("head - 2"), integer("-1")}) == "nodes");
  CHECK(fold(MapFn::less, {integer("1"), integer("2")}) == "nodes");
}

TEST_CASE("division by zero is found") {
  CHECK(fold(MapFn::div, {integer("1"), integer("0")}) == "division by zero");
  CHECK(fold(MapFn::div, {real(1), real(0)}) == "division by zero");
  CHECK(fold(MapFn::div, {integer("d"), real(0)}) == "division by zero");
  CHECK(fold(MapFn::pow, {integer("0"), integer("-1")}) == "division by zero");
}

TEST_CASE("which numbers a dtype can hold") {
  CHECK(representable(real(kInfinity), DType::f16));
  CHECK_FALSE(representable(real(kInfinity), DType::f8e4m3));
  CHECK(representable(real(kInfinity), DType::f8e5m2));
  CHECK(representable(real(448), DType::f8e4m3));
  CHECK_FALSE(representable(real(1000), DType::f8e4m3));
  CHECK(representable(integer("65504"), DType::f16));
  CHECK_FALSE(representable(integer("70000"), DType::f16));
  CHECK(representable(integer("255"), DType::u8));
  CHECK_FALSE(representable(integer("256"), DType::u8));
  CHECK_FALSE(representable(integer("-1"), DType::u8));
  CHECK(representable(integer("-2147483648"), DType::i32));
  CHECK_FALSE(representable(integer("2147483648"), DType::i32));
  CHECK_FALSE(representable(real(0.5), DType::i32));
  CHECK_FALSE(representable(integer("9223372036854775808"), DType::i64));
  CHECK(representable(integer("seq"), DType::u8));  // known when dims are bound
}

}  // namespace
}  // namespace einc
