// SPDX-License-Identifier: Apache-2.0
// Alignment by name, as a table: operands in the notation of types without a dtype, `a b=2 (h d)`; `-` is a scalar.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sstream>

#include "compiler/elaborate/align.h"

namespace einc {
namespace {

// Axes separated by spaces; `name`, `name=3`, `1` (nameless), `<h_d>` (composed).
std::vector<Axis> axes_of(const std::string& text) {
  std::vector<Axis> axes;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (word == "-") continue;
    if (word == "1") {
      axes.push_back(Axis{Name(), Poly(1)});
    } else if (word[0] == '<') {
      axes.push_back(Axis{Name("(h d)"), Poly(6)});
    } else if (const size_t equals = word.find('='); equals != std::string::npos) {
      axes.push_back(Axis{Name(word.substr(0, equals)), *parse_poly(word.substr(equals + 1))});
    } else {
      axes.push_back(Axis{Name(word), Poly::dim(Name(word))});
    }
  }
  return axes;
}

std::string describe(const std::variant<Alignment, AlignProblem>& result) {
  if (const auto* problem = std::get_if<AlignProblem>(&result)) {
    constexpr const char* kFaults[] = {"sizes differ", "repeated", "nameless", "too many axes"};
    return fmt::format("{}: operand {} axis {}", kFaults[static_cast<size_t>(problem->fault)], problem->operand, problem->axis);
  }
  const Alignment& alignment = std::get<Alignment>(result);
  std::string text;
  for (const Axis& axis : alignment.axes) text += (text.empty() ? "" : " ") + (axis.name.empty() ? "1" : axis.name.str());
  for (const AxisList& map : alignment.maps) {
    text += " |";
    for (int position : map) text += fmt::format(" {}", position);
  }
  return text;
}

struct Row {
  std::vector<std::string> operands;
  const char* result;
};

TEST_CASE("operands align by axis name") {
  const Row rows[] = {
      {{"a b", "a b"}, "a b | 0 1 | 0 1"},
      {{"a b", "b"}, "a b | 0 1 | 1"},
      {{"b", "a b"}, "a b | 1 | 0 1"},      // the operand that holds all axes gives the order
      {{"b a", "a b"}, "b a | 0 1 | 1 0"},  // the first such
      {{"a", "b"}, "a b | 0 | 1"},          // else the first operand's, then new ones
      {{"b", "a", "c"}, "b a c | 0 | 1 | 2"},
      {{"-", "a b"}, "a b | | 0 1"},  // scalars never matter
      {{"a b", "-"}, "a b | 0 1 |"},
      {{"-", "-"}, " | |"},
      {{"-", "b", "b a"}, "b a | | 0 | 0 1"},
      {{"b", "a b", "b a"}, "a b | 1 | 0 1 | 1 0"},
      {{"a b", "b c", "c a"}, "a b c | 0 1 | 1 2 | 2 0"},
      {{"d d", "d d"}, "d d | 0 1 | 0 1"},  // identical lists align in order
      {{"d d", "-"}, "d d | 0 1 |"},
      {{"1 a", "1 a"}, "1 a | 0 1 | 0 1"},
      {{"<> a", "<> a"}, "(h d) a | 0 1 | 0 1"},
      {{"d d", "d"}, "repeated: operand 0 axis 1"},
      {{"d", "d d"}, "repeated: operand 1 axis 1"},
      {{"1 a", "a"}, "nameless: operand 0 axis 0"},
      {{"a", "a <>"}, "nameless: operand 1 axis 1"},
      {{"a=3 b", "a=4 b"}, "sizes differ: operand 1 axis 0"},
      {{"a=1 b", "a b"}, "sizes differ: operand 1 axis 0"},  // size 1 does not broadcast
      {{"a=h*d", "a=d*h"}, "a | 0 | 0"},
  };
  for (const Row& row : rows) {
    std::vector<std::vector<Axis>> operands;
    for (const std::string& text : row.operands) operands.push_back(axes_of(text));
    CAPTURE(row.result);
    CHECK(describe(align(operands)) == row.result);
  }
}

TEST_CASE("at most 32 axes") {
  std::vector<Axis> many, more;
  for (int i = 0; i < kMaxRank; ++i) many.push_back(Axis{Name(fmt::format("a{}", i)), Poly(2)});
  more.push_back(Axis{Name("b"), Poly(2)});
  const std::vector<Axis> fits[] = {many, many};
  CHECK(std::holds_alternative<Alignment>(align(fits)));
  const std::vector<Axis> too_many[] = {many, more};
  CHECK(describe(align(too_many)) == "too many axes: operand 1 axis 33");
}

TEST_CASE("annotations to write") {
  CHECK(suggest_annotation(axes_of("d d")) == "[d d_2]");
  CHECK(suggest_annotation(axes_of("d d d_2")) == "[d d_3 d_2]");
  CHECK(suggest_annotation(axes_of("1 a <>")) == "[one a h_d]");
  CHECK(suggest_annotation(axes_of("a b"), 1) == "[a b_2]");
  CHECK(suggest_annotation(axes_of("a b"), 0) == "[a_2 b]");
}

}  // namespace
}  // namespace einc
