// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/widen_lanes.h"

#include <algorithm>

#include "compiler/lower/flatten.h"

namespace einc {
namespace {

bool is_elementwise(const Kernel& kernel) {
  const bool plain =
      !kernel.attention && !kernel.contraction && !kernel.scan && !kernel.sequence && !kernel.part && kernel.reductions.empty();
  return plain && kernel.outer.size() >= 2 &&
         std::ranges::all_of(kernel.stages, [](const Stage& stage) { return stage.axes.empty() && !stage.ordered; });
}

bool walks_both(const Kernel& kernel, const Subscript& index, AxisId around, AxisId inner) {
  return index.dynamic.empty() && index.affine.coefficient(inner) == 1 && index.affine.coefficient(around) == kernel.extent(inner);
}

}  // namespace

void widen_lanes(Kernel& kernel, int64_t lanes) {
  if (!is_elementwise(kernel)) return;
  const AxisId inner = kernel.outer.back(), around = kernel.outer[kernel.outer.size() - 2];
  if (kernel.extent(inner) >= lanes || kernel.extent(inner) * kernel.extent(around) < lanes) return;
  for (const Stage& stage : kernel.stages)
    for (const Store& s : stage.stores)
      if (s.mode != StoreMode::set || !walks_both(kernel, s.index, around, inner)) return;
  // Vectors that gather half of what they read are no better than short ones (convnext.ein of tests/zoo: 2 % slower).
  int together = 0, apart = 0;
  for (const Scalar& v : kernel.values)
    if (v.kind == ScalarKind::load) {
      const bool same_in_all = v.index.dynamic.empty() && v.index.affine.coefficient(inner) == 0 && v.index.affine.coefficient(around) == 0;
      if (!same_in_all) ++(walks_both(kernel, v.index, around, inner) ? together : apart);
    }
  if (together <= apart) return;
  const AxisId both = flatten(kernel, {around, inner});
  kernel.outer.pop_back();
  kernel.outer.back() = both;
}

}  // namespace einc
