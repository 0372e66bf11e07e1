// Divides a graph into kernels. Every computed node starts as a group of its own; going through the graph once, a node joins
// the groups of its operands where the result is still one kernel (it is built to see) and no other group lies between them.
#pragma once
#include <string>
#include <vector>

#include "compiler/fuse/kernel_builder.h"

namespace einc {

enum class Fusion : uint8_t { off, without_attention, on };

// `roots`: nodes whose values must be in memory at the end.
KernelList form_kernels(const BoundGraph& graph, const std::vector<NodeId>& roots, Fusion fusion = Fusion::on);

}  // namespace einc
