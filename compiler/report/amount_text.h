// SPDX-License-Identifier: Apache-2.0
// Numbers of a report as its text says them: exact digits, human units, formulas with the names of the program.
#pragma once
#include <string>
#include <vector>

#include "compiler/report/report.h"

namespace einc {

// "?" while a dim has no value.
std::string digits(const Amount& amount);
std::string count_text(const Amount& amount);
std::string bytes_text(const Amount& amount);
inline bool is_zero(const Amount& amount) { return amount.formula.is_zero(); }

// "  under the memory limit the backward makes again: h.0.mlp map, h.1.mlp map, ... (12 values in all)"
std::string made_again(const std::vector<std::string>& names);

class AmountText {
 public:
  explicit AmountText(const Report& report) : report_(report) {}

  // One that holds for the dims in use alone is marked with a star, which the end of the text explains.
  std::string formula(const Amount& amount);
  bool has_marked() const { return has_marked_; }

 private:
  const Report& report_;
  bool has_marked_ = false;
};

}  // namespace einc
