// SPDX-License-Identifier: Apache-2.0
// A program compiled for an NVIDIA GPU, as plain data: an executable whose launches are generated CUDA kernels or calls of cuBLASLt.
// Its buffers lie in one device allocation of program.memory_bytes.
//
// A generated function is `extern "C" __global__ void NAME(T0* b0, ..., Tn* bn, const u64* step, const u64* keys, Fault* fault, i32
// launch)`: pointers to the kernel's buffers in its order (a `const` element type for those it only reads), where the step that random
// numbers depend on lies in device memory, the Philox keys of the launch's streams there, the record of a position outside its table, and
// the number of the launch for that record. So a captured graph replays with other steps and seeds. A function by table gets `const u64*
// table` instead of the buffers: the addresses of its launches' buffers, those of block (x, y) in row y.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/program/attention_plugin.h"
#include "runtime/program/executable.h"
#include "runtime/program/library_product.h"

namespace einc {

struct CudaGrid {
  std::array<uint32_t, 3> blocks{1, 1, 1}, threads{1, 1, 1};
  uint32_t shared_bytes = 0;  // dynamic
};

// Beside each of program.launches: where that is a generated kernel, how it is launched.
struct CudaCall {
  CudaGrid grid;
  std::optional<LibraryProduct> gemm;  // instead of a kernel; Launch::function means nothing then
  std::vector<uint32_t> together{};    // later launches of the function that run as one with this; the grid is that of one of them
  bool done_before = false;            // with an earlier one
};

// One product whose epilogue does what several launches do: taken instead of them where it takes no longer, which is measured once for
// each shape.
struct CudaFusedProduct {
  // Numbers in another format first: a bias in that of the result.
  struct Cast {
    uint32_t function = 0;
    CudaGrid grid;
    uint32_t from = 0, to = 0;  // buffers
  };
  LibraryProduct gemm;
  std::vector<uint32_t> parts;   // the launches, ascending
  uint32_t product = 0, at = 0;  // that of them which is the plain product; that in whose place it runs
  std::optional<Cast> cast{};
};

// Attention of a plug-in's instead of our own kernels, where it takes less time, which is measured once for each problem.
struct CudaAttention {
  struct Operand {
    uint32_t buffer = 0;
    int64_t offset = 0;  // elements
  };
  einc_attention_problem problem{};
  std::vector<uint32_t> parts;  // the launches, ascending; it runs in the place of the last
  Operand q, k, v, o, log_sum, d_o, d_q, d_k, d_v;
  uint32_t at() const { return parts.back(); }
};

struct CudaExecutable {
  Executable program;              // `functions` are the kernels' symbols
  std::string prelude;             // CUDA C++ in front of every function
  std::vector<std::string> texts;  // of each function, complete after the prelude
  std::vector<bool> by_table{};    // of each function; none of them when empty
  std::vector<CudaCall> calls;
  std::vector<CudaGrid> grids{};                         // by function: of those that iterations of scans launch
  std::vector<CudaFusedProduct> fused{};                 // no launch is part of two
  std::vector<CudaAttention> attention{};                // as above
  std::map<uint32_t, std::string> attention_refusals{};  // why a plug-in does not take a launch's
  int64_t workspace_bytes = 0;                           // of cuBLASLt and the plug-in, besides program.memory_bytes
  // Of buffers that do not lie row-major: their axes as they lie in memory, outermost first.
  std::map<uint32_t, std::vector<int>> orders{};
  // By launch: buffers of which it makes a part, and a later one the rest.
  std::map<uint32_t, std::vector<uint32_t>> unfinished{};
};

}  // namespace einc
