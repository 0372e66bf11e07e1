// SPDX-License-Identifier: Apache-2.0
// Where in a kernel a mutation can be planted, and how it comes into a program.
#pragma once
#include <algorithm>
#include <memory>

#include "tests/fuzz/mutations.h"

namespace einc {

inline bool each_value(Kernel& kernel, const auto& plant) { return std::any_of(kernel.values.begin(), kernel.values.end(), plant); }

inline bool each_store(Kernel& kernel, const auto& plant) {
  return std::any_of(kernel.stages.begin(), kernel.stages.end(),
                     [&](Stage& stage) { return std::any_of(stage.stores.begin(), stage.stores.end(), plant); });
}

inline bool one_further(Affine& index, Chooser& choose) {
  if (!choose.here()) return false;
  index.constant += 1;
  return true;
}

inline bool shorten(Kernel& kernel, AxisId axis, Chooser& choose) {
  if (kernel.extent(axis) < 2 || !choose.here()) return false;
  kernel.axes[axis].extent -= 1;
  return true;
}

// All kernels that are the changed one change.
inline bool plant_in_kernels(FormedGraph& formed, KernelMutation mutate, Chooser& choose) {
  std::vector<GraphKernel>& kernels = formed.list.kernels;
  for (size_t k = 0; k < kernels.size(); ++k) {
    const std::shared_ptr<const Kernel> before = kernels[k].kernel;
    if (kernels[k].when == LaunchWhen::unbounded) continue;  // its results are not compared
    if (std::any_of(kernels.begin(), kernels.begin() + static_cast<int64_t>(k), [&](const auto& x) { return x.kernel == before; }))
      continue;
    const auto after = std::make_shared<Kernel>(*before);
    if (!mutate(*after, choose)) continue;
    for (GraphKernel& x : kernels)
      if (x.kernel == before) x.kernel = after;
    return true;
  }
  return false;
}

}  // namespace einc
