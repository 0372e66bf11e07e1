// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/init_arguments.h"

#include <cmath>

namespace einc {

std::optional<std::vector<double>> init_arguments(const Init& init, const Bindings& values) {
  std::vector<double> arguments;
  for (const ScalarValue& argument : init.args) {
    const Poly* poly = std::get_if<Poly>(&argument);
    const auto value = poly == nullptr ? std::optional(std::get<double>(argument)) : poly->to_double(values);
    if (!value) return std::nullopt;
    arguments.push_back(init.form == InitForm::plain ? *value : std::copysign(std::sqrt(std::fabs(*value)), *value));
  }
  return arguments;
}

}  // namespace einc
