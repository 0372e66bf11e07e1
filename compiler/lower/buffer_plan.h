// Where the values of a kernel list lie: lifetimes in launches become offsets in one arena; the new value of a param or state
// is written into its place when the kernel that makes it reads the old one only at the element it writes.
#pragma once
#include <vector>

#include "compiler/lower/bound_graph.h"
#include "compiler/lower/kernel_list.h"

namespace einc {

enum class BufferPlace : uint8_t { none, source, gradient, in_target, arena };

struct BufferPlan {
  struct Buffer {
    BufferPlace place = BufferPlace::none;
    NodeId target;  // when in_target
    int64_t offset = 0, bytes = 0;
  };
  std::vector<Buffer> buffers;  // per node
  int64_t arena_bytes = 0;
};

inline constexpr int64_t kBufferAlignment = 64;

BufferPlan plan_buffers(const BoundGraph& graph, const KernelList& list, const std::vector<NodeId>& kept);

}  // namespace einc
