// SPDX-License-Identifier: Apache-2.0
// Cycles of a kernel's values in given loops, one core of a processor, from the first caches. Costs are throughputs of cores that start
// two vector instructions, two loads and one store a cycle. Functions were measured one by one; what loops, elements apart and folds take
// was chosen on a Zen 5 so that the 20 programs of `scripts/bench predict` come out right, which are no independent test of it therefore.
#pragma once
#include <optional>
#include <vector>

#include "compiler/lower/kernel.h"
#include "compiler/lower/processor.h"

namespace einc {

// Along which axis the lanes of a vector run; without one, elements are visited one by one.
struct Lanes {
  std::optional<AxisId> axis{};
  int count = 1;
  std::optional<AxisId> turned{};  // its elements are neighbours in memory, and are transposed in squares
  bool aligned = false;            // vectors begin at multiples of their length, so that they lie within parts of that axis
};

class LoopCycles {
 public:
  LoopCycles(const Kernel& kernel, const Processor& processor);

  // The stage at all points of `outer` (outermost first).
  double stage(const Stage& stage, const std::vector<AxisId>& outer, const Lanes& lanes) const;
  // One value at all points of `loops`, stored to a panel.
  double panel(ValueId value, const std::vector<AxisId>& loops, const Lanes& lanes) const;

 private:
  struct Nest;
  void need(std::vector<bool>& used, const Subscript& index) const;
  double values(std::vector<bool> used, const Nest& nest) const;
  double value(const Scalar& v, const Nest& nest, bool along_lanes) const;
  double guards(const Scalar& v, const Nest& nest) const;
  double access(const Subscript& index, double registers, double apart, const Nest& nest) const;
  double registers(DType dtype, const Nest& nest) const;
  std::optional<int64_t> step(const Subscript& index, const Lanes& lanes) const;
  std::optional<int64_t> step(ValueId value, const Lanes& lanes) const;

  const Kernel& kernel_;
  const Processor& processor_;
  std::vector<uint64_t> axes_;  // by value
};

}  // namespace einc
