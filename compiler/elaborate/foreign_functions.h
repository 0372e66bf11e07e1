// SPDX-License-Identifier: Apache-2.0
// Functions of NumPy, PyTorch, JAX and einops that einc spells otherwise or lacks: what to write instead.
#pragma once
#include <string>
#include <string_view>

namespace einc {

// A hint for a call of a function that does not exist; empty when the name is not one of those, nor a bundled fn.
std::string foreign_function_hint(std::string_view function);

}  // namespace einc
