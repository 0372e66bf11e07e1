// SPDX-License-Identifier: Apache-2.0
#include "compiler/report/factor.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <vector>

#include "runtime/base/ascii.h"

namespace einc {
namespace {

struct Factor {
  std::string base;
  int exponent = 1;
};

// coefficient (digits, or digits/digits) times factors, in printing order.
struct Term {
  bool negative = false;
  std::string coefficient;  // empty: 1
  std::vector<Factor> factors;
};
using Terms = std::vector<Term>;

// The parts of `text` between separators outside parentheses; each part keeps the separator before it.
std::vector<std::string> split_outside(const std::string& text, std::string_view separators) {
  std::vector<std::string> parts{""};
  int depth = 0;
  for (char c : text) {
    if (c == '(') ++depth;
    if (c == ')') --depth;
    if (depth == 0 && separators.find(c) != std::string_view::npos) parts.emplace_back();
    parts.back() += c;
  }
  return parts;
}

// Nothing for what cannot be taken apart: negative exponents.
std::optional<Term> read_term(std::string text, bool negative) {
  Term term{negative, "", {}};
  for (std::string part : split_outside(text, "*")) {
    if (!part.empty() && part[0] == '*') part.erase(0, 1);
    if (!part.empty() && is_digit(part[0])) {
      term.coefficient = part;
      continue;
    }
    Factor factor{part, 1};
    const size_t hat = part.rfind('^');
    if (hat != std::string::npos && part.find(')', hat) == std::string::npos) {
      const char* end = part.data() + part.size();
      if (std::from_chars(part.data() + hat + 1, end, factor.exponent).ptr != end || factor.exponent < 0) return std::nullopt;
      factor.base = part.substr(0, hat);
    }
    term.factors.push_back(std::move(factor));
  }
  return term;
}

// Terms of canonical text, "a + b - c".
std::optional<Terms> read_terms(const std::string& text) {
  Terms terms;
  int depth = 0;
  size_t begin = 0;
  bool negative = false;
  if (!text.empty() && text[0] == '-') {
    negative = true;
    begin = 1;
  }
  auto take = [&](size_t end) {
    auto term = read_term(text.substr(begin, end - begin), negative);
    if (term) terms.push_back(std::move(*term));
    return term.has_value();
  };
  for (size_t i = begin; i + 2 < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')') --depth;
    if (depth != 0 || text[i] != ' ' || (text[i + 1] != '+' && text[i + 1] != '-') || text[i + 2] != ' ') continue;
    if (!take(i)) return std::nullopt;
    negative = text[i + 1] == '-';
    begin = i + 3;
  }
  if (!take(text.size())) return std::nullopt;
  return terms;
}

int exponent_of(const Term& term, const std::string& base) {
  for (const Factor& f : term.factors)
    if (f.base == base) return f.exponent;
  return 0;
}

void divide_by(Term& term, const Factor& by) {
  for (auto f = term.factors.begin(); f != term.factors.end(); ++f) {
    if (f->base != by.base) continue;
    f->exponent -= by.exponent;
    if (f->exponent == 0) term.factors.erase(f);
    return;
  }
}

std::string write(const Factor& factor) { return factor.exponent == 1 ? factor.base : factor.base + "^" + std::to_string(factor.exponent); }

std::string write(const Terms& terms) {
  std::string text;
  for (const Term& term : terms) {
    text += text.empty() ? (term.negative ? "-" : "") : (term.negative ? " - " : " + ");
    std::string product = term.coefficient;
    for (const Factor& f : term.factors) product += (product.empty() ? "" : "*") + write(f);
    text += product.empty() ? "1" : product;
  }
  return text;
}

std::string sum_of(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    if (text.empty())
      text = part;
    else
      text += part[0] == '-' ? " - " + part.substr(1) : " + " + part;
  }
  return text;
}

// Greatest common divisor of the terms' coefficients; 1 when one of them is no small integer.
int64_t common_coefficient(const Terms& terms) {
  int64_t common = 0;
  for (const Term& t : terms) {
    int64_t value = 1;
    const char* end = t.coefficient.data() + t.coefficient.size();
    if (!t.coefficient.empty() && (std::from_chars(t.coefficient.data(), end, value).ptr != end || value <= 0)) return 1;
    common = std::gcd(common, value);
  }
  return common;
}

void divide_by(Term& term, int64_t number) {
  if (number == 1) return;
  int64_t value = 1;
  std::from_chars(term.coefficient.data(), term.coefficient.data() + term.coefficient.size(), value);
  term.coefficient = value == number ? "" : std::to_string(value / number);
}

// What all terms but plain numbers have in common goes before them.
std::string with_common_factor(const Terms& terms) {
  Terms rest, numbers;
  for (const Term& t : terms) (t.factors.empty() ? numbers : rest).push_back(t);
  if (rest.size() < 2) return write(terms);
  const int64_t number = common_coefficient(rest);
  for (Term& t : rest) divide_by(t, number);
  std::string common = number == 1 ? "" : std::to_string(number) + "*";
  const std::vector<Factor> candidates = rest[0].factors;
  for (const Factor& f : candidates) {
    int shared = f.exponent;
    for (const Term& t : rest) shared = std::min(shared, exponent_of(t, f.base));
    if (shared == 0) continue;
    for (Term& t : rest) divide_by(t, {f.base, shared});
    common += write(Factor{f.base, shared}) + "*";
  }
  if (common.empty()) return write(terms);
  return sum_of({common + "(" + write(rest) + ")", write(numbers)});
}

std::string factored_terms(const Terms& terms, std::span<const Name> loops) {
  if (loops.empty()) return with_common_factor(terms);
  const std::string& loop = loops[0].str();
  Terms inside, outside;
  for (const Term& term : terms) {
    if (exponent_of(term, loop) == 0) {
      outside.push_back(term);
      continue;
    }
    inside.push_back(term);
    divide_by(inside.back(), {loop, 1});
  }
  if (inside.size() < 2) return factored_terms(terms, loops.subspan(1));
  const int64_t number = common_coefficient(inside);
  for (Term& t : inside) divide_by(t, number);
  const std::string body = factored_terms(inside, loops.subspan(1));
  const bool product = split_outside(body, " ").size() == 1;  // batch*seq*(...): needs no parentheses of its own
  const std::string head = (number == 1 ? "" : std::to_string(number) + "*") + loop + (product ? "*" + body : "*(" + body + ")");
  return sum_of({head, outside.empty() ? "" : factored_terms(outside, loops.subspan(1))});
}

}  // namespace

std::string factored(const Poly& formula, std::span<const Name> loops) {
  const std::string text = formula.str();
  const auto terms = read_terms(text);
  return terms ? factored_terms(*terms, loops) : text;
}

}  // namespace einc
