// SPDX-License-Identifier: Apache-2.0
// What crosses the mesh's axes in a partitioned graph: read off the graph alone, node by node, so that a partition cannot move what the
// list does not show. Of any node that is no collective it is checked that each mesh axis of an operand is the same axis of the result.
//   a reduce over a mesh axis:    all_reduce; where its one reader is a split by that axis, reduce_scatter
//   a merge of a mesh axis:       all_gather; where its one reader is a split by that axis, all_to_all
//   a shift along a mesh axis:    shift
// Bytes are those that one device sends (and receives) by the ring's count, of a tensor of V bytes on n devices: all_reduce 2(n-1)/n V,
// reduce_scatter and all_gather (n-1)/n V, V whole on each device, all_to_all (n-1)/n V, V on each device, shift V.
#pragma once
#include <string>
#include <vector>

#include "compiler/partition/partition.h"
#include "runtime/base/collective.h"

namespace einc {

struct Collective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  int mesh_axis = 0;
  ReduceFn fn = ReduceFn::sum;  // of the first two
  NodeId node;                  // of the partitioned graph: the reduce or merge; its origin says which value moves, and where it is made
  Poly bytes;
  NodeId split{};  // of reduce_scatter and all_to_all: the reader that keeps a part
};

// In the graph's order. An internal error where a mesh axis is lost or changes its place without a collective.
std::vector<Collective> collectives_of(const Partitioned& partitioned);

}  // namespace einc
