// SPDX-License-Identifier: Apache-2.0
// Products of matrices by cuBLASLt against sums in f64: row-major matrices of every orientation, format and batch.
#pragma once
#include <doctest/doctest.h>
#include <einc/tensor.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "runtime/base/failure.h"
#include "runtime/base/float_format.h"
#include "tests/unit/cuda/saxpy.h"

namespace einc::library_products {

// A table of algorithms that goes away; it is this process's from the first product on.
inline const std::string& table_file() {
  static const std::string file = [] {
    const std::string path = (std::filesystem::temp_directory_path() / ("einc_gemm_table_" + std::to_string(getpid()))).string();
    std::filesystem::remove(path);
    setenv("EINC_GEMM_TABLE", path.c_str(), 1);
    return path;
  }();
  return file;
}

inline int64_t elements(const LibraryMatrix& m, int64_t batch, int64_t rows, int64_t columns) {
  if (m.transposed) std::swap(rows, columns);
  return m.offset + (batch - 1) * m.batch_stride + (rows - 1) * m.leading + columns;
}

inline int64_t place(const LibraryMatrix& m, int64_t i, int64_t r, int64_t c) {
  return m.offset + i * m.batch_stride + (m.transposed ? c * m.leading + r : r * m.leading + c);
}

// Small whole numbers: their sums are exact in every format's products.
inline double number(int64_t i) { return static_cast<double>((i * 7 + i / 5) % 9 - 4); }

inline HostArray numbers(DType dtype, int64_t count) {
  HostArray array{dtype, {count}, std::vector<std::byte>(static_cast<size_t>(count * bytes_of(dtype)))};
  for (int64_t i = 0; i < count; ++i) store_number(dtype, number(i), array.bytes.data() + i * bytes_of(dtype));
  return array;
}

inline CudaExecutable executable_of(const LibraryProduct& gemm) {
  table_file();
  use_test_gpu();
  CudaExecutable executable;
  Executable& program = executable.program;
  const auto add = [&](BufferRole role, const char* name, DType dtype, int64_t count) {
    program.buffers.push_back({role, name, dtype, {count}, count * bytes_of(dtype), program.memory_bytes, InitKind::zeros, {}});
    program.memory_bytes += (count * bytes_of(dtype) + 255) / 256 * 256;
  };
  add(BufferRole::input, "a", gemm.left.dtype, elements(gemm.left, gemm.batch, gemm.rows, gemm.depth));
  add(BufferRole::input, "b", gemm.right.dtype, elements(gemm.right, gemm.batch, gemm.depth, gemm.columns));
  add(BufferRole::arena, "", gemm.result.dtype, elements(gemm.result, gemm.batch, gemm.rows, gemm.columns));
  Launch launch;
  launch.buffers = {0, 1, 2};
  launch.label = "y";
  launch.location = "gemm.ein:2:1";
  program.launches = {launch};
  executable.calls = {{{}, gemm}};
  executable.workspace_bytes = 4096;
  return executable;
}

inline void check_product(LibraryProduct gemm) {
  gemm.right.buffer = 1;
  gemm.result.buffer = 2;
  OnGpu gpu(executable_of(gemm));
  const int64_t as = gpu.executable.program.buffers[0].shape[0], bs = gpu.executable.program.buffers[1].shape[0];
  gpu.executor.set(0, numbers(gemm.left.dtype, as));
  gpu.executor.set(1, numbers(gemm.right.dtype, bs));
  gpu.executor.run(1, 1);
  const HostArray y = gpu.executor.get(2);
  const std::vector<double> got = TensorView(y.dtype, y.shape, y.bytes.data()).to_doubles();
  for (int64_t i = 0; i < gemm.batch; ++i)
    for (int64_t r = 0; r < gemm.rows; ++r)
      for (int64_t c = 0; c < gemm.columns; ++c) {
        double sum = 0;
        for (int64_t k = 0; k < gemm.depth; ++k) sum += number(place(gemm.left, i, r, k)) * number(place(gemm.right, i, k, c));
        CHECK(got[static_cast<size_t>(place(gemm.result, i, r, c))] == round_to_format(gemm.result.dtype, sum));
      }
}

inline LibraryMatrix matrix(DType dtype, int64_t leading, bool transposed, int64_t batch_stride = 0, int64_t offset = 0) {
  return {0, dtype, offset, leading, batch_stride, transposed};
}

inline void check_orientations() {
  for (const bool left : {false, true})
    for (const bool right : {false, true})
      for (const bool result : {false, true}) {
        CAPTURE(left);
        CAPTURE(right);
        CAPTURE(result);
        // 3 x 5 by 5 x 4, with room between the rows
        check_product({1, 3, 4, 5, matrix(DType::f32, left ? 4 : 6, left), matrix(DType::f32, right ? 7 : 5, right),
                       matrix(DType::f32, result ? 3 : 6, result), ProductSums::f32});
      }
}

inline void check_batches() {
  check_product({3, 2, 4, 5, matrix(DType::f32, 5, false, 11, 2), matrix(DType::f32, 4, false, 0, 1), matrix(DType::f32, 4, false, 8),
                 ProductSums::f32});
  check_product(
      {2, 4, 1, 3, matrix(DType::f32, 4, true, 12), matrix(DType::f32, 1, false, 3), matrix(DType::f32, 1, false, 4), ProductSums::tf32});
  check_product(
      {2, 1, 4, 3, matrix(DType::f32, 1, false, 3), matrix(DType::f32, 3, true, 12), matrix(DType::f32, 1, false, 4), ProductSums::f32});
}

inline void check_formats() {
  check_product(
      {1, 5, 6, 7, matrix(DType::bf16, 7, false), matrix(DType::bf16, 6, false), matrix(DType::bf16, 6, false), ProductSums::f32});
  check_product({1, 5, 6, 7, matrix(DType::bf16, 7, false), matrix(DType::bf16, 6, false), matrix(DType::f32, 6, false), ProductSums::f32});
  check_product({1, 5, 6, 7, matrix(DType::f16, 7, false), matrix(DType::f16, 6, false), matrix(DType::f16, 6, false), ProductSums::f32});
  check_product({1, 5, 6, 7, matrix(DType::f64, 7, false), matrix(DType::f64, 6, false), matrix(DType::f64, 6, false), ProductSums::f64});
  check_product(
      {1, 16, 32, 16, matrix(DType::f8e4m3, 16, false), matrix(DType::f8e5m2, 16, true), matrix(DType::bf16, 32, false), ProductSums::f32});
}

// The kinds of epilogues: what goes in besides the operands, what comes out.
struct EpilogueCase {
  bool bias = false, addend = false, keeps_input = false;
  LibraryActivation activation = LibraryActivation::none;
  bool left_sums = false, right_sums = false;
};

inline double gelu(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }
inline double gelu_slope(double x) {
  const double step = 1e-5;
  return (gelu(x + step) - gelu(x - step)) / (2 * step);
}

// 24 x 32 x 16 of one format to another; the left operand transposed, as for the gradient of a weight.
inline void check_epilogue(DType dtype, DType to, const EpilogueCase& which) {
  constexpr int64_t kRows = 24, kColumns = 32, kDepth = 16;
  LibraryProduct gemm{1,
                      kRows,
                      kColumns,
                      kDepth,
                      matrix(dtype, kRows, true),
                      matrix(dtype, kColumns, false),
                      matrix(to, kColumns, false),
                      ProductSums::f32};
  gemm.right.buffer = 1, gemm.result.buffer = 2;
  CudaExecutable executable = executable_of(gemm);
  Executable& program = executable.program;
  const auto add = [&](int64_t count) {
    const auto buffer = static_cast<uint32_t>(program.buffers.size());
    program.buffers.push_back({BufferRole::input, "more", to, {count}, count * bytes_of(to), program.memory_bytes, InitKind::zeros, {}});
    program.memory_bytes += (count * bytes_of(to) + 255) / 256 * 256;
    program.launches[0].buffers.push_back(buffer);
    return buffer;
  };
  LibraryEpilogue& epilogue = executable.calls[0].gemm->epilogue;
  const uint32_t vector = add(kColumns), more = add(kRows * kColumns), input = add(kRows * kColumns);
  if (which.bias) epilogue.bias = LibraryVector{vector, to};
  if (which.left_sums) epilogue.left_sums = LibraryVector{vector, to};
  if (which.right_sums) epilogue.right_sums = LibraryVector{vector, to};
  if (which.addend) epilogue.addend = more;
  epilogue.activation = which.activation;
  if (which.keeps_input || which.activation == LibraryActivation::gelu_slope) epilogue.input = input;
  OnGpu gpu(std::move(executable));
  gpu.executor.set(0, numbers(dtype, kRows * kDepth));
  gpu.executor.set(1, numbers(dtype, kColumns * kDepth));
  for (const uint32_t buffer : {vector, more, input}) {
    HostArray array = numbers(to, gpu.executable.program.buffers[buffer].shape[0]);
    gpu.executor.set(buffer, array);
  }
  try {
    gpu.executor.run(1, 1);
  } catch (const RuntimeFailure& failure) {
    if (!tests_real_gpu()) throw;
    MESSAGE("programs do without an epilogue of " << to_string(dtype) << ": " << failure.what());
    return;
  }
  const auto got = [&](uint32_t buffer) {
    const HostArray held = gpu.executor.get(buffer);
    return TensorView(held.dtype, held.shape, held.bytes.data()).to_doubles();
  };
  const std::vector<double> y = got(2), sums = got(vector), kept = got(input);
  const double close = bytes_of(to) == 2 ? 0.01 : which.activation == LibraryActivation::none ? 1e-5 : 2e-3;
  for (int64_t r = 0; r < kRows; ++r)
    for (int64_t c = 0; c < kColumns; ++c) {
      const int64_t at = r * kColumns + c;
      double sum = (which.bias ? number(c) : 0) + (which.addend ? number(at) : 0);
      for (int64_t k = 0; k < kDepth; ++k) sum += number(k * kRows + r) * number(k * kColumns + c);
      if (which.keeps_input) CHECK(kept[static_cast<size_t>(at)] == doctest::Approx(sum).epsilon(close));
      const double wanted = which.activation == LibraryActivation::gelu         ? gelu(sum)
                            : which.activation == LibraryActivation::gelu_slope ? sum * gelu_slope(number(at))
                                                                                : sum;
      CHECK(y[static_cast<size_t>(at)] == doctest::Approx(wanted).epsilon(close));
    }
  for (int64_t i = 0; (which.left_sums && i < kRows) || (which.right_sums && i < kColumns); ++i) {
    double sum = 0;
    for (int64_t k = 0; k < kDepth; ++k) sum += number(k * (which.left_sums ? kRows : kColumns) + i);
    CHECK(sums[static_cast<size_t>(i)] == doctest::Approx(sum).epsilon(close));
  }
}

inline void check_epilogues() {
  using enum LibraryActivation;
  for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
    check_epilogue(dtype, dtype, {.bias = true});
    check_epilogue(dtype, dtype, {.addend = true});
    check_epilogue(dtype, dtype, {.bias = true, .addend = true});
    check_epilogue(dtype, dtype, {.activation = gelu});
    check_epilogue(dtype, dtype, {.bias = true, .activation = gelu});
    check_epilogue(dtype, dtype, {.keeps_input = true, .activation = gelu});
    check_epilogue(dtype, dtype, {.bias = true, .keeps_input = true, .activation = gelu});
    check_epilogue(dtype, dtype, {.activation = gelu_slope});
    check_epilogue(dtype, DType::f32, {.left_sums = true});
    check_epilogue(dtype, DType::f32, {.right_sums = true});
  }
}

}  // namespace einc::library_products
