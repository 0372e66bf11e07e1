// SPDX-License-Identifier: Apache-2.0
// A contraction as a product of matrices where they lie in memory, for a library.
#pragma once
#include <optional>
#include <string>

#include "compiler/lower/kernel.h"
#include "runtime/program/library_product.h"

namespace einc {

struct GemmMapping {
  std::optional<LibraryProduct> gemm;  // buffers by their number in the kernel
  std::string reason;                  // why not
};

// Of a kernel that is a contraction and nothing else: rows, columns, depth and batch are one dimension each in the tensors that have
// them (one of the rows' or columns' axes may be the batch). Of fp8 the result may be times a number.
GemmMapping map_gemm(const Kernel& kernel);

// "2048 x 3072 x 768 bf16, right transposed".
std::string describe(const LibraryProduct& gemm);
// "plus a bias, GELU, its input kept"; empty of none.
std::string describe(const LibraryEpilogue& epilogue);

}  // namespace einc
