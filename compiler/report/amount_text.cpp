// SPDX-License-Identifier: Apache-2.0
#include "compiler/report/amount_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/report/document.h"
#include "compiler/report/factor.h"

namespace einc {

std::string digits(const Amount& amount) {
  if (!amount.value) return "?";
  return amount.value->is_integer() ? grouped_digits(amount.value->str())
                                    : "~" + grouped_digits(fmt::format("{:.0f}", amount.value->to_double()));
}
std::string count_text(const Amount& amount) { return amount.value ? human_count(amount.value->to_double()) : "?"; }
std::string bytes_text(const Amount& amount) { return amount.value ? human_bytes(amount.value->to_double()) : "?"; }

std::string made_again(const std::vector<std::string>& names) {
  constexpr size_t kShown = 3;
  std::string text = "  under the memory limit the backward makes again: ";
  for (size_t i = 0; i < std::min(kShown, names.size()); ++i) text += (i == 0 ? "" : ", ") + names[i];
  return names.size() > kShown ? fmt::format("{}, ... ({} values in all)", text, names.size()) : text;
}

std::string AmountText::formula(const Amount& amount) {
  if (amount.for_dims_only) return "for these dims";
  std::string text = factored(fold_names(amount.formula, report_.definitions), report_.loop_dims);
  if (!amount.holds_here) return text;
  has_marked_ = true;
  return text + " *";
}

}  // namespace einc
