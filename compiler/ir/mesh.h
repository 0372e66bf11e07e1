// SPDX-License-Identifier: Apache-2.0
// The devices that a program is written for, a grid with named axes, and what is split over them. Sizes are dims. A graph only carries
// this: nothing is split before compiler/partition does it. Requests name declarations by path, so that passes may renumber nodes.
#pragma once
#include <string_view>
#include <vector>

#include "compiler/ir/axis_list.h"
#include "compiler/ir/op.h"
#include "compiler/symbolic/poly.h"

namespace einc {

struct MeshAxis {
  Name name;
  Poly size;
  friend bool operator==(const MeshAxis&, const MeshAxis&) = default;
};

// An axis of an input, param, state or draw lies in equal parts on the devices along mesh axes `over`, outer to inner.
struct ShardRequest {
  Op declared = Op::input;  // input, param, state or random
  Name path;                // of a draw its stream
  int axis = 0;
  AxisList over;  // into Mesh::axes
  friend bool operator==(const ShardRequest&, const ShardRequest&) = default;
};

// Iterations of a loop lie on the devices along a mesh axis, in order, and a step's examples pass through them in parts.
struct PipelineStages {
  int over = -1;  // into Mesh::axes; -1: there are none
  Name loop;      // the dim that counts it
  Poly microbatches{1};
  bool any() const { return over >= 0; }
  friend bool operator==(const PipelineStages&, const PipelineStages&) = default;
};

struct Mesh {
  std::vector<MeshAxis> axes;  // outer to inner: devices that differ in the last alone are the nearest. Empty: one device
  std::vector<ShardRequest> requests;
  // Mesh axes along which the optimizer's states, with them the gradients, and the params themselves are spread besides (ZeRO 1 to 3).
  AxisList states, gradients, params;
  // Along which attention leaves keys and values in parts, which go round (context/ring_attention.h).
  AxisList keys;
  PipelineStages stages;
  bool of_device = false;  // the graph is that of one device, as it is scheduled (partition/device_program.h)

  bool empty() const { return axes.empty(); }
  Poly devices() const {
    Poly count(1);
    for (const MeshAxis& axis : axes) count *= axis.size;
    return count;
  }
  friend bool operator==(const Mesh&, const Mesh&) = default;
};

// What is spread besides what requests name, and its word in programs: `shard states over data`.
struct MeshSpread {
  std::string_view word;
  AxisList Mesh::*over;
};
inline constexpr MeshSpread kMeshSpreads[] = {
    {"states", &Mesh::states}, {"gradients", &Mesh::gradients}, {"params", &Mesh::params}, {"keys", &Mesh::keys}};

}  // namespace einc
