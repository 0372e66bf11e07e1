// SPDX-License-Identifier: Apache-2.0
// Sizes and types as messages write them: sizes in the program's own dims (embed, not heads*head), axis names without the
// marks that keep a caller's axes apart.
#pragma once
#include <string>
#include <string_view>

#include "compiler/ir/graph.h"

namespace einc {

std::string counted(size_t n, std::string_view noun);  // "1 argument", "3 axes"

std::string show(const Graph& graph, const Poly& size);
std::string show(const Graph& graph, const Axis& axis);  // "seq" or "h=3"
std::string show(const Graph& graph, const Type& type);  // "f32[batch seq]", "[batch seq]" when real

}  // namespace einc
