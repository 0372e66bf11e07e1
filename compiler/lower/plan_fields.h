// SPDX-License-Identifier: Apache-2.0
// A plan as words with their values, written and read by one list of its fields, so that neither side can leave out what the other has:
//   template <>
//   struct PlanFields<LoopPlan> { static void visit(auto&& field) { field("lanes", &LoopPlan::lanes); ... } };
// A field that is as in a plan of nothing is not written, and a bool that differs from that is its word alone. The third argument says what
// a number counts, as in a kernel's text: 'a' axes, 'v' values, 'r' reductions, 'b' buffers; 's' stages. What has fields of its own stands
// in parentheses, and so does each list in a list.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <concepts>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "compiler/ir/cursor.h"
#include "compiler/lower/kernel.h"

namespace einc {

template <class Plan>
struct PlanFields;

// Words of an enumeration in a plan: name_of(value), and its last value.
template <class E>
struct PlanWords;

class PlanWriter {
 public:
  template <class Plan>
  static std::string fields(const Plan& plan) {
    [[maybe_unused]] static const Plan none{};
    std::string text;
    PlanFields<Plan>::visit([&](std::string_view word, auto member, char counts = 0) {
      const std::string value = text_of(plan.*member, counts);
      if (value == text_of(none.*member, counts)) return;
      constexpr bool flag = std::is_same_v<std::decay_t<decltype(plan.*member)>, bool>;
      text += flag ? fmt::format(" {}", word) : fmt::format(" {} {}", word, value);
    });
    return text;
  }

 private:
  template <class T>
  static std::string text_of(const T& value, char counts) {
    if constexpr (std::is_same_v<T, bool>)
      return value ? "1" : "0";
    else if constexpr (std::is_same_v<T, DType>)
      return std::string(to_string(value));
    else if constexpr (std::is_enum_v<T>)
      return std::string(PlanWords<T>::name_of(value));
    else if constexpr (std::is_same_v<T, ValueId>)
      return value == kNoValue ? "-" : fmt::format("v{}", value);
    else if constexpr (std::integral<T>)
      return counts == 0 ? fmt::format("{}", value) : fmt::format("{}{}", counts, value);
    else
      return fmt::format("({} )", fields(value));
  }
  template <class T>
  static std::string text_of(const std::optional<T>& value, char counts) {
    return value ? text_of(*value, counts) : "";
  }
  template <class T>
  static std::string text_of(const std::vector<T>& list, char counts) {
    std::string text;
    for (const T& value : list) text += (text.empty() ? "" : " ") + text_of(value, counts);
    return text;
  }
  // Loops of stages, of which some have none: nothing where none has one.
  static std::string text_of(const std::vector<std::optional<AxisId>>& list, char counts) {
    std::string text;
    bool any = false;
    for (const std::optional<AxisId>& axis : list)
      text += (text.empty() ? "" : " ") + (axis ? text_of(*axis, counts) : "-"), any = any || axis.has_value();
    return any ? text : "";
  }
  static std::string text_of(const std::vector<std::vector<AxisId>>& lists, char counts) {
    std::string text;
    for (const std::vector<AxisId>& list : lists) text += (text.empty() ? "( " : " ( ") + text_of(list, counts) + " )";
    return text;
  }
  // The places that are marked.
  static std::string text_of(const std::vector<bool>& marks, char counts) {
    std::string text;
    for (size_t i = 0; i < marks.size(); ++i)
      if (marks[i]) text += fmt::format("{}{}{}", text.empty() ? "" : " ", counts, i);
    return text;
  }
  static std::string text_of(const Affine& index, char) {
    std::string text = fmt::format("( {}", index.constant);
    for (const Affine::Term& t : index.terms) text += fmt::format(" {} a{}", t.coefficient, t.axis);
    return text + " )";
  }
};

// Of plans for a kernel: places that it has not are mistakes in the line.
class PlanReader {
 public:
  PlanReader(Cursor& line, const Kernel& kernel) : c_(line), kernel_(kernel) {}

  template <class Plan>
  void fields(Plan& plan) {
    [[maybe_unused]] static const Plan none{};
    PlanFields<Plan>::visit([&](std::string_view word, auto member, char counts = 0) {
      const bool written = c_.accept_word(word);
      auto& value = plan.*member;
      using T = std::decay_t<decltype(value)>;
      if constexpr (std::is_same_v<T, bool>)
        value = written != none.*member;
      else if (written)
        read(value, counts);
      // Marks are as many as what they mark, also where none is set.
      if constexpr (std::is_same_v<T, std::vector<bool>> || std::is_same_v<T, std::vector<std::optional<AxisId>>>)
        value.resize(count(counts == 'a' ? 's' : counts));
    });
  }

 private:
  size_t count(char counts) const {
    return counts == 'a'   ? kernel_.axes.size()
           : counts == 'v' ? kernel_.values.size()
           : counts == 'r' ? kernel_.reductions.size()
           : counts == 'b' ? kernel_.buffers.size()
                           : kernel_.stages.size();
  }
  size_t place(char counts) {
    c_.expect(std::string_view(&counts, 1));
    return static_cast<size_t>(c_.integer(0, static_cast<int64_t>(count(counts)) - 1));
  }
  template <class T>
  static int64_t most() {
    return static_cast<int64_t>(std::min<uint64_t>(std::numeric_limits<T>::max(), INT64_MAX));
  }
  // Whether one more of a list follows: what begins as a word of its fields would ends it.
  bool goes_on(char counts) {
    const std::string word = c_.peek_word();
    const size_t digits = counts == 0 ? 0 : 1;
    return word.size() > digits && (counts == 0 || word[0] == counts) && std::isdigit(static_cast<unsigned char>(word[digits])) != 0;
  }

  template <class T>
  void read(T& value, char counts) {
    if constexpr (std::is_same_v<T, DType>)
      value = c_.word_of(parse_dtype, "dtype");
    else if constexpr (std::is_enum_v<T>)
      value = c_.word_of(
          [](std::string_view word) -> std::optional<T> {
            for (int i = 0; i <= static_cast<int>(PlanWords<T>::last); ++i)
              if (PlanWords<T>::name_of(static_cast<T>(i)) == word) return static_cast<T>(i);
            return std::nullopt;
          },
          "word of a plan");
    else if constexpr (std::is_same_v<T, ValueId>)
      value = c_.accept("-") ? kNoValue : static_cast<ValueId>(place('v'));
    else if constexpr (std::integral<T>)
      value = counts == 0 ? static_cast<T>(c_.integer(std::is_signed_v<T> ? -1 : 0, most<T>())) : static_cast<T>(place(counts));
    else
      c_.expect("("), fields(value), c_.expect(")");
  }
  template <class T>
  void read(std::optional<T>& value, char counts) {
    read(*(value = T{}), counts);  // clang 19 takes no emplace() of structs whose members have initial values
  }
  template <class T>
  void read(std::vector<T>& list, char counts) {
    const char begins = std::is_same_v<T, ValueId> ? 'v' : counts;
    while (!c_.failed() && (std::is_class_v<T> ? begins_group() : goes_on(begins) || (begins == 'v' && begins_none())))
      read(list.emplace_back(), counts);
  }
  void read(std::vector<std::optional<AxisId>>& list, char counts) {
    while (!c_.failed() && (goes_on(counts) || begins_none())) {
      std::optional<AxisId>& axis = list.emplace_back();
      if (!c_.accept("-")) read(axis, counts);
    }
    if (list.size() != kernel_.stages.size()) c_.fail(fmt::format("{} loops of {} stages", list.size(), kernel_.stages.size()));
  }
  void read(std::vector<std::vector<AxisId>>& lists, char counts) {
    while (c_.accept("(")) read(lists.emplace_back(), counts), c_.expect(")");
  }
  void read(std::vector<bool>& marks, char counts) {
    marks.resize(count(counts));
    while (!c_.failed() && goes_on(counts)) {
      const size_t at = place(counts);
      if (!c_.failed()) marks[at] = true;
    }
  }
  void read(Affine& index, char) {
    c_.expect("(");
    index.constant = c_.integer();
    while (!c_.failed() && !c_.accept(")")) {
      const int64_t factor = c_.integer();
      index = index + Affine::of_axis(static_cast<AxisId>(place('a')), factor);
    }
  }

  bool begins_group() { return c_.next_is('('); }
  bool begins_none() { return c_.next_is('-'); }

  Cursor& c_;
  const Kernel& kernel_;
};

}  // namespace einc
