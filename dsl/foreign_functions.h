// SPDX-License-Identifier: Apache-2.0
// Names of functions, methods and layers from NumPy, PyTorch and einops that einc does not have, with what stands for them here. Names
// that begin statements or are values: dsl/habits.
#pragma once
#include <string>
#include <string_view>

namespace einc {

// What to write instead of the function; empty for a name that is not known here.
std::string foreign_function_hint(std::string_view function);

// What to write instead of a method or an attribute of a tensor, `.view(...)`, `.T`; empty for one not known.
std::string foreign_method_hint(std::string_view method);

}  // namespace einc
