// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/update_guard.h"

namespace einc {

std::vector<NodeId> UpdateGuard::roots() const {
  std::vector<NodeId> roots = numbers;
  for (const Check& check : checks) roots.push_back(check.number);
  for (const Bounded& update : bounded) roots.push_back(update.least), roots.push_back(update.most);
  return roots;
}

}  // namespace einc
