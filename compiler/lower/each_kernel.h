// SPDX-License-Identifier: Apache-2.0
// Passes over a list of kernels. Kernels that the list shares stay shared: each is changed once.
#pragma once
#include <functional>

#include "compiler/lower/kernel_list.h"

namespace einc {

// Changes each kernel but attention, which other passes form.
void for_each_kernel(KernelList& list, const std::function<void(Kernel&)>& change);

// What is wrong with one of the kernels, or nothing.
std::string verify(const KernelList& list);

}  // namespace einc
