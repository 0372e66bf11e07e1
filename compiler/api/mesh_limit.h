// SPDX-License-Identifier: Apache-2.0
// A limit of memory on a mesh is of a process, whose devices it holds. Each part that trains is planned again where all together take more;
// what other parts take is fixed by then. All processes choose alike, by what the one with the most bytes takes: they carry out one plan.
#pragma once
#include <functional>

#include "compiler/fuse/scheduling.h"
#include "runtime/executor/session.h"

namespace einc {

// What a part takes: of each device its values and what launches work in, which parts share, and once what devices share.
struct PartBytes {
  int64_t values = 0, working = 0, shared = 0;
};
using CountPart = std::function<int64_t(const PartBytes&)>;
using PlanPart = std::function<PartBytes(Part part, const MemoryLimit& limit, const CountPart& count)>;

// `parts` as they are, of which a process takes `bytes` in all, with `held` devices. `plan_again` plans a part under the limit, by `count`
// of what a choice would take.
void plan_within(const MemoryLimit& limit, PerPart<PartBytes> parts, int64_t bytes, int64_t held, const PlanPart& plan_again);

}  // namespace einc
