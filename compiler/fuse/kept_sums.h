// SPDX-License-Identifier: Apache-2.0
// Whether a list of kernels still holds every sum of another, over the same loops. The order of a floating-point sum follows from its
// loops, its dtype and the instruction set; a step that makes values again must keep it, so that it keeps its bits. What else a kernel
// makes of a sum may change: each value is rounded to its own dtype, whichever kernel makes it. Where the order follows from the whole
// kernel (a GPU's threads), only kernels that are equal keep it, and what is made again is made by kernels that the other list has, too;
// kernels that only take extremes may change, as those of fp8's scales do where another value is stored beside them.
#pragma once
#include <map>
#include <string>

#include "compiler/lower/kernel_list.h"
#include "compiler/lower/kernel_target.h"

namespace einc {

class KeptSums {
 public:
  KeptSums(const KernelList& list, SumOrder order);
  bool are_in(const KernelList& list) const;

 private:
  const SumOrder order_;
  std::map<std::string, int64_t> times_;  // by the sum's loops, or all of its kernel's text
};

}  // namespace einc
