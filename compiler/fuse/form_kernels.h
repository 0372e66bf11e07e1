// Divides a graph into kernels. Every computed node starts as a group of its own; going through the graph once, a node joins
// the groups of its operands where the result is still one kernel (it is built to see) and no other group lies between them.
#pragma once
#include <string>
#include <vector>

#include "compiler/fuse/kernel_builder.h"
#include "compiler/fuse/recompute.h"
#include "compiler/lower/kernel_target.h"

namespace einc {

// What forming kernels may do. None of it changes a result by more than rounding.
struct Fusion {
  bool joins = true;       // several nodes become one kernel
  bool attention = true;   // scores of rows against keys are never stored
  bool recomputes = true;  // elementwise values of the forward are made again in the backward
  bool in_place = true;    // results are written where operands of their kernels lie
  bool guards = true;      // updates are looked at before they are stored (guard_updates); off only to measure what that takes
  RecomputeLimits limits{};
  KernelTarget target{};
  static const Fusion on, off, without_attention;
  bool operator==(const Fusion&) const = default;
};
inline constexpr Fusion Fusion::on{};
inline constexpr Fusion Fusion::off{false, false, false, true, true, {}, {}};
inline constexpr Fusion Fusion::without_attention{true, false, true, true, true, {}, {}};

// `roots`: nodes whose values must be in memory at the end.
KernelList form_kernels(const BoundGraph& graph, const std::vector<NodeId>& roots, Fusion fusion = Fusion::on);

}  // namespace einc
