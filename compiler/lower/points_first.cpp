// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/points_first.h"

#include <utility>

namespace einc {

// Stages without loops of their own before those that they do not need.
void store_points_first(Kernel& kernel) {
  const std::vector<uint64_t> needs = reductions_of_values(kernel);
  for (size_t s = 1; s < kernel.stages.size(); ++s) {
    Stage &before = kernel.stages[s - 1], &stage = kernel.stages[s];
    if (!stage.axes.empty() || before.axes.empty() || !stage.reductions.empty() || stage.ordered || before.ordered) continue;
    uint64_t made = 0, needed = 0;
    for (uint16_t r : before.reductions) made |= uint64_t{1} << r;
    for (const Store& store : stage.stores) needed |= needs[store.value];
    if (!(made & needed)) std::swap(before, stage);
  }
}

}  // namespace einc
