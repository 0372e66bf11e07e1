// SPDX-License-Identifier: Apache-2.0
// Whether a list of kernels still holds every sum of another, over the same loops. The order of a floating-point sum follows from its
// loops, its dtype and the instruction set; a step that makes values again must keep it, so that it keeps its bits. What else a kernel
// makes of a sum may change: each value is rounded to its own dtype, whichever kernel makes it.
#pragma once
#include <map>
#include <string>

#include "compiler/lower/kernel_list.h"

namespace einc {

class KeptSums {
 public:
  explicit KeptSums(const KernelList& list);
  bool are_in(const KernelList& list) const;

 private:
  std::map<std::string, int64_t> times_;  // by the sum's loops, or all of its kernel's text
};

}  // namespace einc
