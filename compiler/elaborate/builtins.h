// The built-in functions of all tables, by name.
#pragma once
#include <string>
#include <vector>

#include "compiler/elaborate/context.h"

namespace einc {

std::vector<std::string> builtin_names();

}  // namespace einc
