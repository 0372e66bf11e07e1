// SPDX-License-Identifier: Apache-2.0
// Reads what print_graph writes. The text is treated as hostile: ids refer to earlier nodes, ranks, lists and indices stay
// within their limits, and the first line that is not as it should be is reported. Whether the types fit together is
// verify's business (compiler/ir/verify.h): run it before using a graph that came from outside.
#pragma once
#include <string>
#include <string_view>
#include <variant>

#include "compiler/ir/cursor.h"
#include "compiler/ir/graph.h"

namespace einc {

using GraphReadError = LineError;

std::variant<Graph, GraphReadError> read_graph(std::string_view text);

}  // namespace einc
