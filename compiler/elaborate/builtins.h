// SPDX-License-Identifier: Apache-2.0
// The built-in functions of all tables, by name.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "compiler/elaborate/context.h"

namespace einc {

std::vector<std::string> builtin_names();
// All rows, table by table: what dsl/README.md lists.
std::vector<std::span<const Builtin>> builtin_tables();

}  // namespace einc
