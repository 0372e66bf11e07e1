// SPDX-License-Identifier: Apache-2.0
// Rational arithmetic: 128-bit intermediates for small operands (products of two int64 and their sums fit), the exact
// fallback otherwise. Every result passes through `make`, which keeps one representation per value.
#include "compiler/symbolic/rational.h"

#include <atomic>
#include <boost/multiprecision/cpp_int.hpp>
#include <numeric>

#include "compiler/symbolic/hash_mix.h"
#include "runtime/base/check.h"

namespace einc {

using boost::multiprecision::cpp_int;
using boost::multiprecision::cpp_rational;
__extension__ using Int128 = __int128;

constexpr int64_t kLargest = INT64_MAX;

struct BigRational {
  explicit BigRational(cpp_rational v) : value(std::move(v)) {}

  mutable std::atomic<uint32_t> references{0};
  cpp_rational value;

  static cpp_rational of(const Rational& r) { return r.big_ ? r.big_->value : cpp_rational(cpp_int(r.num_), cpp_int(r.den_)); }
  static Rational small(int64_t numerator, int64_t denominator) {
    Rational r;
    r.num_ = numerator;
    r.den_ = denominator;
    return r;
  }
  static Rational make(const cpp_rational& v) {
    const cpp_int n = boost::multiprecision::numerator(v), d = boost::multiprecision::denominator(v);
    if (abs(n) <= kLargest && d <= kLargest) return small(static_cast<int64_t>(n), static_cast<int64_t>(d));
    Rational r;
    r.num_ = 0;
    r.den_ = 1;
    r.big_.reset(new BigRational(v));
    return r;
  }
  // numerator / denominator, where denominator > 0 and neither is the least Int128.
  static Rational make(Int128 numerator, Int128 denominator) {
    Int128 a = numerator < 0 ? -numerator : numerator, b = denominator;
    if (b != 1) {
      while (b != 0) {
        const Int128 t = a % b;
        a = b;
        b = t;
      }
      numerator /= a;
      denominator /= a;
    }
    if (numerator <= kLargest && numerator >= -kLargest && denominator <= kLargest)
      return small(static_cast<int64_t>(numerator), static_cast<int64_t>(denominator));
    return make(cpp_rational(cpp_int(numerator), cpp_int(denominator)));
  }
  static bool both_small(const Rational& a, const Rational& b) { return !a.big_ && !b.big_; }
};

void intrusive_ptr_add_ref(const BigRational* p) noexcept { p->references.fetch_add(1, std::memory_order_relaxed); }
void intrusive_ptr_release(const BigRational* p) noexcept {
  if (p->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete p;
}

Rational::Rational(int64_t value) : num_(value) {
  if (value == INT64_MIN) *this = BigRational::make(cpp_rational(cpp_int(value)));
}

Rational::Rational(int64_t numerator, int64_t denominator) {
  EINC_CHECK(denominator != 0, "a rational number with denominator 0");
  const Int128 n = numerator, d = denominator;
  *this = d < 0 ? BigRational::make(-n, -d) : BigRational::make(n, d);
}

std::optional<Rational> Rational::from_digits(std::string_view digits) {
  if (digits.empty() || digits.size() > kMaxDigits) return std::nullopt;
  for (const char c : digits)
    if (c < '0' || c > '9') return std::nullopt;
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size() - 1));  // a leading 0 would mean octal
  return BigRational::make(cpp_rational(cpp_int(std::string(digits))));
}

bool Rational::is_integer() const { return big_ ? boost::multiprecision::denominator(big_->value) == 1 : den_ == 1; }

int Rational::sign() const { return big_ ? big_->value.sign() : (num_ > 0) - (num_ < 0); }

Rational Rational::numerator() const {
  return big_ ? BigRational::make(cpp_rational(boost::multiprecision::numerator(big_->value))) : BigRational::small(num_, 1);
}

Rational Rational::denominator() const {
  return big_ ? BigRational::make(cpp_rational(boost::multiprecision::denominator(big_->value))) : BigRational::small(den_, 1);
}

Rational Rational::floor() const {
  if (is_integer()) return *this;
  if (!big_) return BigRational::small(num_ / den_ - (num_ < 0 ? 1 : 0), 1);  // not whole: below the truncated value when negative
  cpp_int quotient = boost::multiprecision::numerator(big_->value) / boost::multiprecision::denominator(big_->value);
  if (sign() < 0) --quotient;
  return BigRational::make(cpp_rational(quotient));
}

std::optional<int64_t> Rational::as_integer() const {
  if (big_ || den_ != 1) return std::nullopt;
  return num_;
}

double Rational::to_double() const {
  if (big_) return big_->value.convert_to<double>();
  return den_ == 1 ? static_cast<double>(num_) : static_cast<double>(static_cast<long double>(num_) / static_cast<long double>(den_));
}

std::string Rational::str() const {
  if (big_) return big_->value.str();
  return den_ == 1 ? fmt::format("{}", num_) : fmt::format("{}/{}", num_, den_);
}

size_t Rational::hash() const {
  if (big_) return std::hash<std::string>()(big_->value.str());
  return mix_hash(static_cast<uint64_t>(num_), static_cast<uint64_t>(den_));
}

Rational Rational::operator-() const { return big_ ? BigRational::make(-big_->value) : BigRational::small(-num_, den_); }

Rational operator+(const Rational& a, const Rational& b) {
  if (!BigRational::both_small(a, b)) return BigRational::make(BigRational::of(a) + BigRational::of(b));
  if (a.den_ == 1 && b.den_ == 1) return BigRational::make(Int128{a.num_} + b.num_, Int128{1});
  return BigRational::make(Int128{a.num_} * b.den_ + Int128{b.num_} * a.den_, Int128{a.den_} * b.den_);
}

Rational operator-(const Rational& a, const Rational& b) { return a + (-b); }

Rational operator*(const Rational& a, const Rational& b) {
  if (!BigRational::both_small(a, b)) return BigRational::make(BigRational::of(a) * BigRational::of(b));
  return BigRational::make(Int128{a.num_} * b.num_, Int128{a.den_} * b.den_);
}

Rational operator/(const Rational& a, const Rational& b) {
  EINC_CHECK(!b.is_zero(), "division of a rational number by 0");
  if (!BigRational::both_small(a, b)) return BigRational::make(BigRational::of(a) / BigRational::of(b));
  const Int128 n = Int128{a.num_} * b.den_, d = Int128{a.den_} * b.num_;
  return d < 0 ? BigRational::make(-n, -d) : BigRational::make(n, d);
}

bool operator==(const Rational& a, const Rational& b) {
  if (BigRational::both_small(a, b)) return a.num_ == b.num_ && a.den_ == b.den_;
  return a.big_ && b.big_ && (a.big_ == b.big_ || a.big_->value == b.big_->value);
}

std::strong_ordering operator<=>(const Rational& a, const Rational& b) {
  if (BigRational::both_small(a, b)) return Int128{a.num_} * b.den_ <=> Int128{b.num_} * a.den_;
  return BigRational::of(a).compare(BigRational::of(b)) <=> 0;
}

Rational pow(const Rational& base, int exponent) {
  Rational result(1), square = exponent < 0 ? Rational(1) / base : base;
  for (uint64_t e = exponent < 0 ? -static_cast<int64_t>(exponent) : exponent; e != 0; e >>= 1) {
    if (e & 1) result = result * square;
    if (e > 1) square = square * square;
  }
  return result;
}

Rational gcd(const Rational& a, const Rational& b) {
  EINC_CHECK(a.is_integer() && b.is_integer(), "gcd of numbers that are no integers");
  const auto x = a.as_integer(), y = b.as_integer();
  if (x && y) return std::gcd(*x, *y);
  const cpp_rational ra = BigRational::of(a), rb = BigRational::of(b);
  return BigRational::make(
      cpp_rational(boost::multiprecision::gcd(boost::multiprecision::numerator(ra), boost::multiprecision::numerator(rb))));
}

Rational lcm(const Rational& a, const Rational& b) {
  const Rational product = a * b;
  return (product.sign() < 0 ? -product : product) / gcd(a, b);
}

}  // namespace einc
