// SPDX-License-Identifier: Apache-2.0
// What people write from the habit of Python, PyTorch or C, with what stands for it here: words that begin statements elsewhere, values
// and operators of other languages. Names of functions are in compiler/elaborate/foreign_functions.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace einc {

enum class HabitKind : uint8_t {
  block,    // begins a statement with a body, which is skipped with it
  line,     // begins a statement
  binding,  // stands before a binding, which means the same without it
  alone,    // is a statement by itself
  value,    // is a value
};

struct WordHabit {
  std::string_view word;
  HabitKind kind;
  std::string_view hint;
  std::string_view replacement = {};  // of the word; empty: none
};

const WordHabit* find_habit(std::string_view word);

// A module of Python's whose functions are written with a dot: `torch.relu`. `self` too.
bool is_foreign_module(std::string_view word);

}  // namespace einc
