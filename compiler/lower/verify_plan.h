// SPDX-License-Identifier: Apache-2.0
// Proves that a plan of buffers loses no value: the launches are carried out on the owners of memory, and every value that is read, by a
// launch or after the last one, must still own all its bytes. Inside a launch `verify_overlap` decides.
#pragma once
#include <string>

#include "compiler/lower/buffer_plan.h"

namespace einc {

// "" or the first value that is lost: what reads it, and what lies in its place. `kept` as plan_buffers had it.
std::string verify_plan(const BoundGraph& graph, const KernelList& list, const BufferPlan& plan, const std::vector<NodeId>& kept);

}  // namespace einc
