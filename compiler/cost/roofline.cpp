// SPDX-License-Identifier: Apache-2.0
#include "compiler/cost/roofline.h"

#include <algorithm>

namespace einc {

std::optional<Roofline> roofline(const Device& device, FlopClass kind, DType dtype, double flops, double bytes) {
  double compute = 0;
  if (flops > 0) {
    const auto peak = kind == FlopClass::contraction ? device.contraction_peak(dtype) : device.vector_peak(dtype);
    if (!peak) return std::nullopt;
    compute = flops / *peak;
  }
  const double memory = bytes / device.bandwidth;
  const double time = std::max(compute, memory);
  return Roofline{time, time == 0 ? Bound::none : compute >= memory ? Bound::compute : Bound::memory};
}

DType working_dtype(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  if (node.op != Op::contract) return node.type.dtype;
  const DType left = graph.type(node.operands[0]).dtype, right = graph.type(node.operands[1]).dtype;
  const bool both_fp8 = is_floating(left) && is_floating(right) && bytes_of(left) == 1 && bytes_of(right) == 1;
  return both_fp8 ? left : promote(left, right);
}

}  // namespace einc
