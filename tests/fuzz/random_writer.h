// SPDX-License-Identifier: Apache-2.0
// What random programs are written with: dims and their sizes, the values in scope, lines of text. Shapes follow from the rules of the
// language as they are stated here, and from nothing of the compiler.
#pragma once
#include <fmt/format.h>

#include <map>
#include <random>
#include <span>

#include "tests/fuzz/random_program.h"

namespace einc {

using Axes = std::vector<std::string>;

struct RandomValue {
  std::string name, dtype;
  Axes axes;
  bool is_source = false;  // an input, param or state
  int readers = 0;

  bool found() const { return !name.empty(); }
};

// How the program's numbers are kept: its policy ("" is f32) and what its inputs and params are declared as ("" leaves it to the policy).
struct NumberFormats {
  std::string policy;
  std::vector<std::string> declared;
};

bool has(const Axes& axes, const std::string& axis);
bool covers(const Axes& all, const Axes& some);
Axes without(Axes axes, const std::string& axis);
Axes replaced(Axes axes, const std::string& axis, const std::string& by);
std::string list(const Axes& axes);
// Of an elementwise op: the order of the first operand that has all axes, else the first's with the second's new ones.
Axes aligned(const Axes& x, const Axes& y);
bool is_real(const std::string& dtype);
std::string promoted(const std::string& x, const std::string& y);

class RandomWriter {
 public:
  explicit RandomWriter(uint64_t seed);

  static constexpr int64_t kLargestValue = 1200, kLargestProduct = 10000;  // elements, and points of a contraction

  // Choices.
  size_t below(size_t n) { return random_() % n; }
  bool chance(size_t n) { return below(n) == 0; }
  template <class T, size_t n>
  const T& one_of(const T (&from)[n]) {
    return from[below(n)];
  }
  template <class T>
  const T& one_of(const std::vector<T>& from) {
    return from[below(from.size())];
  }
  Axes shuffled(Axes axes);

  // Dims. Those declared at the top have a value of their own; others follow from them by a formula.
  int64_t size(const std::string& axis) const { return dims_.at(axis).value; }
  int64_t count(const Axes& axes) const;
  bool fits(const Axes& axes) const { return axes.size() <= 4 && count(axes) <= kLargestValue; }
  bool is_declared(const std::string& axis) const { return axis.size() == 1; }
  Axes equal_dims(const std::string& axis) const;  // itself among them
  std::string derived(const std::string& prefix, const std::string& formula, int64_t value);
  std::string new_axis(const Axes& axes);  // a declared dim that is not among them; "" when there is none
  Axes random_axes(size_t most);

  // Lines.
  void line(std::string text, std::string as_input = "");
  std::string fresh(const std::string& prefix) { return fmt::format("{}{}", prefix, names_++); }
  RandomValue let(const std::string& expression, const Axes& axes, const std::string& dtype);
  RandomValue let_as(const std::string& expression, const Axes& axes, const std::string& dtype);  // annotated with its axes
  // A sum, product or choice of two: annotated where neither of them has all axes of the result.
  RandomValue let_aligned(const std::string& expression, const RandomValue& x, const RandomValue& y, const Axes& axes,
                          const std::string& dtype);
  RandomValue input(const Axes& axes);
  RandomValue param(const Axes& axes, const std::string& init = "normal(0, 0.6)");
  RandomValue integers(const Axes& axes);
  RandomValue positions(const std::string& axis, const Axes& axes);  // an input that holds indices of the axis
  RandomValue state(const Axes& axes, const std::string& dtype);

  // Values. What nothing has read yet comes first more often than not.
  RandomValue any();
  RandomValue with_axis();  // not found where no value has one
  RandomValue any_integers();
  RandomValue like(const RandomValue& x);  // another of its axes, else x itself
  RandomValue source();
  const std::vector<RandomValue>& values() const { return values_; }

  // x times a new param: axis `from` gives way to `to`, in its place.
  RandomValue projected(const RandomValue& x, const std::string& from, const std::string& to);
  RandomValue projected(const RandomValue& x, const RandomValue& weights, const std::string& from, const std::string& to);
  RandomValue projection(const std::string& from, const std::string& to);  // the param alone

  bool differentiable = true;  // what stops gradients on the way is left out
  NumberFormats formats;
  RandomProgram program;

 private:
  struct Dim {
    int64_t value;
    std::string formula;  // equal sizes have equal text here
  };
  RandomValue bind(const std::string& annotation, const std::string& expression, const Axes& axes, const std::string& dtype);
  RandomValue declare(const char* kind, const Axes& axes, const std::string& dtype, const std::string& init);
  void count_readers(const std::string& text);
  bool is_usable(const RandomValue& x, bool real) const { return is_real(x.dtype) == real; }

  std::mt19937_64 random_;
  std::map<std::string, Dim> dims_;
  std::vector<RandomValue> values_;
  int names_ = 0;
};

// A kind of statement: writes its lines, or none where it finds nothing to work on.
struct StatementKind {
  const char* name;
  int weight;
  bool (*write)(RandomWriter& w);
};
std::span<const StatementKind> elementwise_statements();
std::span<const StatementKind> axis_statements();
void image(RandomWriter& w);  // a convolution
std::span<const StatementKind> index_statements();
std::span<const StatementKind> state_statements();
std::span<const StatementKind> model_statements();
std::span<const StatementKind> scan_statements();

}  // namespace einc
