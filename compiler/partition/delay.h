// SPDX-License-Identifier: Apache-2.0
// Which sums wait: a value in terms on several devices is summed where it is made, unless what its only reader makes of it is smaller, or
// is added to another such sum, so that one sum is taken in place of two.
#pragma once
#include <span>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/partition/decide.h"
#include "compiler/partition/factors.h"

namespace einc {

// By node.
struct WaitingSums {
  std::vector<AxisList> sums;  // mesh axes along which its sum waits
  std::vector<Layout> taken;   // in which parts its readers take it
};

// `declared`: layouts of declarations as their readers see them; all lists are by node. `stages`: of a pipeline, by which nodes lie
// (place_stages.h); else nothing.
WaitingSums delayed_sums(const Graph& graph, std::span<const Layout> declared, std::span<const Factors> factors,
                         std::span<const Layout> wants, const LayoutValues& values, std::span<const int> stages);

// Sums that do not wait, and whose users want them in parts, are taken in parts: the layout behind that. False: there is none.
bool take_in_parts(Layout& layout, const Type& type, const Layout& want, const AxisList& waits, const Mesh& mesh,
                   const LayoutValues& values);

}  // namespace einc
