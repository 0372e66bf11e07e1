// SPDX-License-Identifier: Apache-2.0
// Elementwise kernels that a product's epilogue does as well.
#pragma once
#include <optional>

#include "compiler/lower/kernel.h"
#include "runtime/program/library_product.h"

namespace einc {

struct EpilogueMatch {
  LibraryEpilogue epilogue;    // buffers by their number in the kernel
  uint32_t result = 0;         // where it goes
  bool reads_product = false;  // as GELU's input, which has to be stored then
};

// Of a kernel that goes once over a product of rows of `columns` numbers, which lies in `product` without gaps, and stores what is made
// of it in the same places elsewhere, in one format: with a bias or another matrix added, GELU in its tanh form, or times the slope of
// GELU.
std::optional<EpilogueMatch> match_epilogue(const Kernel& kernel, uint32_t product, int64_t columns);

}  // namespace einc
