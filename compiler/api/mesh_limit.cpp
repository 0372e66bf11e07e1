// SPDX-License-Identifier: Apache-2.0
#include "compiler/api/mesh_limit.h"

#include <algorithm>

namespace einc {
namespace {

// Parts run one after another in the same memory, but have values of their own.
PartBytes beside_one_another(const PartBytes& a, const PartBytes& b) {
  return {a.values + b.values, std::max(a.working, b.working), std::max(a.shared, b.shared)};
}

}  // namespace

void plan_within(const MemoryLimit& limit, PerPart<PartBytes> parts, int64_t bytes, int64_t held, const PlanPart& plan_again) {
  if (bytes == INT64_MAX || bytes + limit.taken <= limit.bytes) return;
  const auto of_devices = [held](const PartBytes& p) { return held * (p.values + p.working) + p.shared; };
  PartBytes all;
  for (const std::optional<PartBytes>& part : parts)
    if (part) all = beside_one_another(all, *part);
  const int64_t others_of_process = bytes - of_devices(all);
  for (const Part part : {Part::accumulation, Part::training}) {
    if (!parts[part]) continue;
    PartBytes others;
    for (size_t p = 0; p < kParts; ++p) {
      const Part other = static_cast<Part>(p);
      if (other == part || !parts[other]) continue;
      PartBytes beside = *parts[other];
      if (part == Part::accumulation && other == Part::training) beside.working = beside.shared = 0;  // is planned again, too
      others = beside_one_another(others, beside);
    }
    MemoryLimit own = limit;
    own.taken += others_of_process;
    parts[part] = plan_again(part, own, [=](const PartBytes& choice) { return of_devices(beside_one_another(others, choice)); });
  }
}

}  // namespace einc
