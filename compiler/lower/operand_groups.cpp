// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/operand_groups.h"

#include <vector>

namespace einc {
namespace {

struct EvenLoop {
  int64_t extent, step;
};

// The loops of more than one turn, outermost first, those that step evenly over one another as one.
std::vector<EvenLoop> even_loops(const Kernel& kernel, const std::vector<AxisId>& axes, const Affine& index) {
  std::vector<EvenLoop> loops;
  for (AxisId a : axes) {
    const EvenLoop loop{kernel.extent(a), index.coefficient(a)};
    if (loop.extent == 1) continue;
    if (!loops.empty() && loops.back().step == loop.step * loop.extent)
      loops.back() = {loops.back().extent * loop.extent, loop.step};
    else
      loops.push_back(loop);
  }
  return loops;
}

}  // namespace

std::optional<OperandGroups> find_groups(const Kernel& kernel, ValueId operand) {
  const Scalar& load = kernel.values[operand];
  if (load.kind != ScalarKind::load || !load.guards.empty() || !load.index.dynamic.empty()) return std::nullopt;
  const std::vector<EvenLoop> rows = even_loops(kernel, kernel.contraction->rows, load.index.affine),
                              depths = even_loops(kernel, kernel.contraction->depth, load.index.affine);
  if (rows.empty() || depths.empty()) return std::nullopt;
  OperandGroups groups{rows.back().extent, rows.back().step, depths.back().extent, depths.back().step};
  if (depths.size() > 1) groups.groups = depths[depths.size() - 2].extent, groups.apart = depths[depths.size() - 2].step;
  return groups;
}

}  // namespace einc
