// SPDX-License-Identifier: Apache-2.0
// Which launches of a plan touch a value: what moves to or from other devices is taken as soon as it is made, and waited for where it is
// first read.
#pragma once
#include "compiler/lower/buffer_plan.h"
#include "compiler/lower/kernel_list.h"

namespace einc {

class ValueLaunches {
 public:
  ValueLaunches(const KernelList& list, const BufferPlan& plan);
  // Numbers of kernels in the list, ascending; collectives are not among them. Values that continue one another in place are one.
  const std::vector<uint32_t>& that_touch(NodeId value) const { return touch_[plan_.holder(value).index]; }
  const std::vector<uint32_t>& that_make(NodeId value) const { return make_[plan_.holder(value).index]; }

 private:
  const BufferPlan& plan_;
  std::vector<std::vector<uint32_t>> touch_, make_;  // by node that holds a value
};

}  // namespace einc
