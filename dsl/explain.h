// SPDX-License-Identifier: Apache-2.0
// What a diagnostic's code means, at length: `einc explain E0322`. The texts are dsl/explanations.txt, embedded when einc is built; there
// is one for every code.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace einc {

struct Explanation {
  std::string code, identifier;  // E0322, pattern_size
  std::string what, why;
  std::string wrong, right;  // programs; empty where there is no example
  std::string no_example;    // why not
};

// All of them, in the order of diagnostic_codes.def. A defect of the text is an internal error.
const std::vector<Explanation>& explanations();
// By its code or identifier, in capitals or not; null for none.
const Explanation* explain(std::string_view code);
std::string render(const Explanation& explanation);

std::string_view explanations_text();  // the embedded file

}  // namespace einc
