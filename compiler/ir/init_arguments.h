// SPDX-License-Identifier: Apache-2.0
// The numbers an initialiser works with, once its dims have values: what fill_init (runtime/base/init.h) takes.
#pragma once
#include <optional>
#include <vector>

#include "compiler/ir/graph.h"

namespace einc {

// nullopt when a dim that an argument depends on has no value.
std::optional<std::vector<double>> init_arguments(const Init& init, const Bindings& values);

}  // namespace einc
