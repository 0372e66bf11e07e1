// SPDX-License-Identifier: Apache-2.0
// Gradients that a `where` has set to 0: g = where(m, g', 0). Such a gradient must stay exactly 0 on its way into the branch
// not taken, also where the slope there is infinite: 0 * inf would be nan. So elementwise rules work on g' and are masked
// afterwards, which moves the mask down the branch instead of multiplying zeros.
#pragma once
#include <vector>

#include "compiler/autodiff/backward.h"

namespace einc {

struct GradientMask {
  Partial condition;
  int side = 1;  // the branch of `where` that passes: 1 or 2
};

struct Masked {
  Partial value;                    // unmasked; its axes in any order
  std::vector<GradientMask> masks;  // the outermost first
};

// Takes the masks off, looking through permutes.
Masked take_off_masks(const Graph& graph, const Partial& gradient);
// where(m, value, 0) for every mask, innermost first.
Partial put_on_masks(Builder& build, Partial value, const std::vector<GradientMask>& masks, const std::vector<Axis>& frame);
// True when both are masked alike.
bool same_masks(const std::vector<GradientMask>& a, const std::vector<GradientMask>& b);

}  // namespace einc
