// SPDX-License-Identifier: Apache-2.0
// At which index of the kernel's loops each stored node of a group is computed: found by walking from the space node to
// operands and users, through views.
#pragma once
#include <unordered_map>

#include "compiler/fuse/evaluate.h"

namespace einc {

// Subscript of every member that is reached. `space` is computed at `at`.
std::unordered_map<uint32_t, Indices> locate_members(const BoundGraph& graph, const Group& group, const std::vector<bool>& member,
                                                     NodeId space, const Indices& at, const Kernel& kernel, KernelEvaluator& evaluator);

}  // namespace einc
