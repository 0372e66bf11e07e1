// SPDX-License-Identifier: Apache-2.0
// `~ normal(std = 0.02 / sqrt(2 * layers))`: how a param or state starts. Arguments may use dims, and square roots of them.
#pragma once
#include <optional>

#include "compiler/elaborate/context.h"

namespace einc {

// Reports and gives nothing when the name or an argument is wrong, or numbers like these cannot fill a tensor of `dtype`.
std::optional<Init> elaborate_initializer(Context& context, const ast::Initializer& initializer, DType dtype);

}  // namespace einc
