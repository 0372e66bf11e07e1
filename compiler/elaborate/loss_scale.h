// SPDX-License-Identifier: Apache-2.0
// Dynamic loss scaling for f16 (Micikevicius et al. 2018, "Mixed Precision Training"). The loss is differentiated times a
// scale s, so that small gradients do not vanish in f16; each gradient is divided by s. When one is not finite the step
// changes nothing and s is halved; after kGrowthInterval good steps in a row s is doubled. s and the count are states.
#pragma once
#include <cstddef>

#include "compiler/ir/build.h"

namespace einc {

class LossScale {
 public:
  static constexpr double kInitial = 65536;
  static constexpr int kGrowthInterval = 2000;

  // Makes the states; the builder's origin is the optimizer's.
  explicit LossScale(Builder& build);

  NodeId scaled(NodeId loss);
  // gradient / s; remembers whether it is finite.
  NodeId unscaled(NodeId gradient);
  // Updates from `first` on keep the old value unless all gradients are finite; adds those of s and the count.
  void guard(size_t first);

 private:
  NodeId number(double value);
  Builder& build_;
  NodeId scale_, good_steps_;
  NodeId finite_;  // of all gradients so far
};

}  // namespace einc
