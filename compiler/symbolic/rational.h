// SPDX-License-Identifier: Apache-2.0
// Exact rational numbers. Nearly all are small, so a value is an int64 pair in lowest terms; when an operation would
// overflow it goes on in arbitrary precision (boost, hidden in rational.cpp) and comes back as soon as it fits again.
// Invariant: one representation per value, so equality and hashing need no normalising. INT64_MIN is big.
#pragma once
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace einc {

struct BigRational;  // shared, immutable, counted atomically
void intrusive_ptr_add_ref(const BigRational* p) noexcept;
void intrusive_ptr_release(const BigRational* p) noexcept;

class Rational {
 public:
  Rational() = default;
  Rational(int64_t value);                           // NOLINT: an integer is a rational
  Rational(int64_t numerator, int64_t denominator);  // denominator is not 0
  // 1 to kMaxDigits decimal digits; nullopt for anything else.
  static constexpr size_t kMaxDigits = 4096;
  static std::optional<Rational> from_digits(std::string_view digits);

  bool is_zero() const { return num_ == 0 && !big_; }
  bool is_one() const { return num_ == 1 && den_ == 1 && !big_; }
  bool is_integer() const;
  int sign() const;  // -1, 0, 1

  Rational numerator() const;    // carries the sign
  Rational denominator() const;  // at least 1
  Rational floor() const;
  std::optional<int64_t> as_integer() const;  // when it is an integer in [-(2^63-1), 2^63-1]
  double to_double() const;                   // within an ulp; infinite when beyond
  std::string str() const;                    // "3", "-1/2": all digits
  size_t hash() const;

  Rational operator-() const;
  friend Rational operator+(const Rational& a, const Rational& b);
  friend Rational operator-(const Rational& a, const Rational& b);
  friend Rational operator*(const Rational& a, const Rational& b);
  friend Rational operator/(const Rational& a, const Rational& b);  // b is not 0
  friend bool operator==(const Rational& a, const Rational& b);
  friend std::strong_ordering operator<=>(const Rational& a, const Rational& b);

 private:
  friend struct BigRational;
  int64_t num_ = 0, den_ = 1;  // lowest terms, den_ > 0; 0 and 1 when big_ is set
  boost::intrusive_ptr<const BigRational> big_;
};

Rational pow(const Rational& base, int exponent);    // base is not 0 when the exponent is negative
Rational gcd(const Rational& a, const Rational& b);  // of integers, never negative
Rational lcm(const Rational& a, const Rational& b);  // of integers other than 0, positive

}  // namespace einc
