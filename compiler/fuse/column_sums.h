// SPDX-License-Identifier: Apache-2.0
// Sums over all rows in a kernel that goes over rows: each part of the rows leaves a row of sums, and a second kernel adds these up. How
// many parts there are is a function of shape.
#pragma once
#include <vector>

#include "compiler/lower/kernel.h"

namespace einc {

struct ColumnSums {
  std::vector<uint16_t> reductions;  // of the kernel
  std::vector<AxisId> axes;          // of a row
  std::vector<Store> stores;         // of what is made of the sums

  // A new buffer of the kernel for the sums that parts leave.
  static uint16_t buffer_of(uint16_t reduction, Kernel& kernel);
};

// Divides the rows of a kernel that stores these sums (StoreMode::sum, in their order, without an index yet) among parts; gives the kernel
// that runs after it. Of buffers and axes both have the same, needed or not.
Kernel add_columns(const ColumnSums& columns, Kernel& kernel);

}  // namespace einc
