// SPDX-License-Identifier: Apache-2.0
// Where the values of a kernel list lie, all in one mapping: inputs, params, states and gradients each have a place of
// their own; other values share an arena by their lifetimes in launches (best fit). What the forward keeps for later lies
// below, temporaries above, so that neither leaves holes in the other; once all is kept, temporaries also use what has
// been freed below. The new value of a param or state is written into its place, and a result into its operand's, when the
// kernel that makes it reads the old one only at the element it writes.
#pragma once
#include <vector>

#include "compiler/ir/interpret.h"
#include "compiler/lower/bound_graph.h"
#include "compiler/lower/kernel_list.h"

namespace einc {

// `shared`: at the offset of another arena value that ends where this one is made. `bound`: a device's value, which lies where the caller
// says (ir/device_values.h).
enum class BufferPlace : uint8_t { none, source, gradient, in_target, arena, shared, bound };

struct BufferPlan {
  struct Buffer {
    BufferPlace place = BufferPlace::none;
    NodeId target;                  // when in_target
    int64_t offset = 0, bytes = 0;  // offset in the mapping
  };
  // A param or state that a run both returns (or hands to another) and updates: copied here before the first launch.
  struct Snapshot {
    NodeId source;
    int64_t offset = 0;
  };
  std::vector<Buffer> buffers;  // per node
  std::vector<Snapshot> snapshots;
  int64_t arena_bytes = 0;   // at the start of the mapping
  int64_t parts_offset = 0;  // of the place that parts of sums share, behind it
  int64_t own_bytes = 0;     // the arena, parts, gradients and snapshots; inputs, params, states and what is bound follow
  int64_t total_bytes = 0;
  // By node: in the arena, made by a kernel of the forward and read by a later one of the backward, and no cast of a param.
  std::vector<bool> saved;
  int64_t saved_bytes = 0;  // of all of them

  // The launch at which most of the arena is in use; one past the last: after all of them. Each byte has one owner: where a result takes
  // its operand's place, the result.
  struct Fullest {
    uint32_t launch = 0;
    int64_t saved = 0;   // in use by such values
    int64_t others = 0;  // by all other values
  };
  Fullest fullest;
  std::vector<int64_t> in_use;  // bytes of the arena, by launch and after the last

  // The node whose buffer holds a value: its own, or the end of the chain of values that continue one another in place.
  NodeId holder(NodeId id) const;
};

inline constexpr int64_t kBufferAlignment = 64;

// `kept`: values read after the last launch. What the list's alternatives need is held.
BufferPlan plan_buffers(const BoundGraph& graph, const KernelList& list, const std::vector<NodeId>& kept, RunMode mode);

}  // namespace einc
