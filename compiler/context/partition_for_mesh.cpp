// SPDX-License-Identifier: Apache-2.0
// Whether a mesh axis splits rows and keys is read off a first partition: most programs need no other.
#include "compiler/context/partition_for_mesh.h"

#include "compiler/context/split_attention.h"

namespace einc {

std::variant<Partitioned, NoPartition> partition_for_mesh(const Graph& graph, const Bindings& given) {
  auto first = partition(graph, given);
  const auto* partitioned = std::get_if<Partitioned>(&first);
  if (partitioned == nullptr) return first;
  const std::vector<SplitAttention> found = split_attention(graph, *partitioned, given);
  if (found.empty()) return first;
  return partition(graph, given, rows_in_place(graph, found));
}

}  // namespace einc
