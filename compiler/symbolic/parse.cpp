// SPDX-License-Identifier: Apache-2.0
// Recursive descent over the text of a polynomial. The text may be hostile: nesting, exponents, the number
// of terms of a result and the work in all are bounded. A sum of terms is put together before anything cancels in it, so that
// what was printed is read back term by term.
#include <cstdlib>

#include "compiler/symbolic/poly_rep.h"
#include "runtime/base/ascii.h"

namespace einc {
namespace {

constexpr int kNestingLimit = 256;
constexpr size_t kTermLimit = 1 << 16;    // of a sum, product, power or quotient before it is computed
constexpr size_t kWorkLimit = 1 << 20;    // terms of all products together
constexpr int kPowerLimit = 64;           // for positive powers of sums and of numbers
constexpr int kAtomExponentLimit = 4096;  // of one atom

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::optional<Poly> whole() {
    auto p = sum();
    skip_space();
    return at_ == text_.size() ? p : std::nullopt;
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  template <class Match>
  std::string_view run(Match match) {
    const size_t start = at_;
    while (at_ < text_.size() && match(text_[at_])) ++at_;
    return text_.substr(start, at_ - start);
  }

  std::optional<Poly> sum() {
    if (++depth_ > kNestingLimit) return std::nullopt;
    Terms terms;
    bool negative = take('-');
    while (true) {
      const auto p = product();
      if (!p) return std::nullopt;
      append(terms, TermList(negative ? -*p : *p));
      if (terms.size() > kTermLimit) return std::nullopt;
      if (take('+'))
        negative = false;
      else if (take('-'))
        negative = true;
      else
        break;
    }
    --depth_;
    return finish(std::move(terms));
  }

  std::optional<Poly> product() {
    auto left = power();
    while (left) {
      const bool times = take('*');
      if (!times && !take('/')) break;
      const auto right = power();
      if (!right || (!times && right->is_zero())) return std::nullopt;
      const size_t terms = TermList(*left).size() * TermList(*right).size();
      if (terms > kTermLimit || (work_ += terms) > kWorkLimit) return std::nullopt;
      left = times ? *left * *right : divide(*left, *right);
      if (!exponents_bounded(*left)) return std::nullopt;
    }
    return left;
  }

  std::optional<Poly> power() {
    const auto base = atom();
    if (!base || !take('^')) return base;
    const bool negative = take('-');
    const std::string_view digits = run(is_digit);
    if (digits.empty() || digits.size() > 9) return std::nullopt;
    int exponent = 0;
    for (const char c : digits) exponent = exponent * 10 + (c - '0');
    if (base->is_zero() && negative) return std::nullopt;
    if (exponent > kAtomExponentLimit || !bounded_power(*base, exponent, negative)) return std::nullopt;
    return pow(*base, negative ? -exponent : exponent);
  }

  static bool exponents_bounded(const Poly& p) {
    for (const Term& t : TermList(p))
      for (const Factor& f : t.monomial)
        if (std::abs(f.exponent) > kAtomExponentLimit) return false;
    return true;
  }

  // One atom, to any power; the inverse of a sum, which is one atom, likewise; anything else to a small one.
  static bool bounded_power(const Poly& base, int exponent, bool negative) {
    const TermList terms(base);
    if (terms.size() == 1 && terms.front().coefficient.is_one() && terms.front().monomial.size() == 1)
      return terms.front().monomial[0].exponent == 1 || exponent <= kPowerLimit;
    if (terms.size() > 1 && negative) return true;
    size_t size = 1;
    for (int e = 0; e < exponent && terms.size() > 1 && size <= kTermLimit; ++e) size *= terms.size();
    return exponent <= kPowerLimit && size <= kTermLimit;
  }

  std::optional<Poly> atom() {
    skip_space();
    if (take('(')) {
      auto p = sum();
      return p && take(')') ? p : std::nullopt;
    }
    if (at_ < text_.size() && is_digit(text_[at_])) {
      const auto value = Rational::from_digits(run(is_digit));
      return value ? std::optional(Poly(*value)) : std::nullopt;
    }
    if (at_ == text_.size() || !is_name_start(text_[at_])) return std::nullopt;
    const std::string_view name = run([](char c) { return is_name_char(c) || c == '.'; });
    if ((name == "floor" || name == "max") && take('(')) return call(name);
    return Poly::dim(Name(name));
  }

  std::optional<Poly> call(std::string_view function) {
    std::vector<Poly> arguments;
    do {
      auto p = sum();
      if (!p) return std::nullopt;
      arguments.push_back(std::move(*p));
    } while (take(','));
    if (!take(')')) return std::nullopt;
    if (function == "max") return max_of(arguments);
    return arguments.size() == 1 ? std::optional(floor(arguments.front())) : std::nullopt;
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
  size_t work_ = 0;
};

}  // namespace

std::optional<Poly> parse_poly(std::string_view text) { return Reader(text).whole(); }

}  // namespace einc
