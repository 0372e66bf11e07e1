// SPDX-License-Identifier: Apache-2.0
// Which params a mesh leaves in parts, as far as a program's lines tell: what is spread (ZeRO) may stay whole where devices do not divide
// it.
#pragma once
#include <algorithm>

#include "compiler/ir/mesh.h"

namespace einc {

// Of the param with this path: a line splits one of its axes, or params, their gradients or states are spread.
inline bool may_be_in_parts(const Mesh& mesh, Name path) {
  const auto splits = [&](const ShardRequest& request) { return request.declared == Op::param && request.path == path; };
  return !mesh.states.empty() || !mesh.gradients.empty() || !mesh.params.empty() || std::ranges::any_of(mesh.requests, splits);
}

}  // namespace einc
