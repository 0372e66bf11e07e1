// SPDX-License-Identifier: Apache-2.0
// Passes over a list of kernels. Kernels that the list shares stay shared: each is changed once.
#pragma once
#include <functional>

#include "compiler/lower/kernel_list.h"

namespace einc {

enum class KernelSort : uint8_t { loops, attention };

// Changes each kernel of a sort: loops, or attention, which few passes are for. Scans and collectives are neither.
void for_each_kernel(KernelList& list, const std::function<void(Kernel&)>& change, KernelSort sort = KernelSort::loops);

// What is wrong with one of the kernels, or nothing.
std::string verify(const KernelList& list);

}  // namespace einc
