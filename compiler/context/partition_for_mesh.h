// SPDX-License-Identifier: Apache-2.0
// A final graph over its mesh, as it is reported, planned and run: the pass `partition`, which goes node by node, told what attention of a
// split sequence needs as a whole. Attention whose rows and keys lie in parts along one mesh axis keeps its rows where they are.
#pragma once
#include <variant>

#include "compiler/partition/partition.h"

namespace einc {

// Arguments and results as of partition().
std::variant<Partitioned, NoPartition> partition_for_mesh(const Graph& graph, const Bindings& given);

}  // namespace einc
