// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/each_kernel.h"

#include <unordered_map>
#include <unordered_set>

namespace einc {

void for_each_kernel(KernelList& list, const std::function<void(Kernel&)>& change, KernelSort sort) {
  std::unordered_map<const Kernel*, std::shared_ptr<const Kernel>> changed;
  std::vector<std::shared_ptr<const Kernel>> before;
  for (GraphKernel& k : list.kernels) {
    if (k.kernel->attention.has_value() != (sort == KernelSort::attention) || k.kernel->scan || k.kernel->collective) continue;
    if (k.kernel.use_count() == 1) {  // of many different kernels, copies were a third of a report's time
      change(const_cast<Kernel&>(*k.kernel));
      continue;
    }
    const auto [known, fresh] = changed.try_emplace(k.kernel.get());
    if (fresh) {
      auto kernel = std::make_shared<Kernel>(*k.kernel);
      change(*kernel);
      known->second = std::move(kernel);
      before.push_back(k.kernel);  // so that no other kernel gets its address
    }
    k.kernel = known->second;
  }
}

std::string verify(const KernelList& list) {
  std::unordered_set<const Kernel*> seen;
  for (const GraphKernel& k : list.kernels)
    if (seen.insert(k.kernel.get()).second)
      if (std::string problem = verify(*k.kernel); !problem.empty()) return problem + "\n" + to_string(*k.kernel);
  return {};
}

}  // namespace einc
