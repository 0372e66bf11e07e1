// SPDX-License-Identifier: Apache-2.0
// Products of matrices by cuBLASLt: how row-major matrices are described to it, which algorithm is taken, and what is said when there is
// none.
#include <doctest/doctest.h>

#include <fstream>

#include "emulator.h"
#include "runtime/base/failure.h"
#include "runtime/cuda/cold_timer.h"
#include "tests/support/library_products.h"

namespace einc {

using namespace library_products;

namespace {

// Row-major, neither operand transposed, no epilogue.
LibraryProduct f32_product(int64_t rows, int64_t columns, int64_t depth) {
  return {1,
          rows,
          columns,
          depth,
          matrix(DType::f32, depth, false),
          {1, DType::f32, 0, columns},
          {2, DType::f32, 0, columns},
          ProductSums::f32};
}

}  // namespace

TEST_CASE("row-major products of every orientation") { check_orientations(); }
TEST_CASE("batches, offsets, and an operand that all of a batch share") { check_batches(); }
TEST_CASE("products of every format") { check_formats(); }
TEST_CASE("products with every epilogue") { check_epilogues(); }

TEST_CASE("a product of fp8 is times the number in a buffer") {
  LibraryProduct gemm{
      1, 16, 32, 16, matrix(DType::f8e4m3, 16, false), matrix(DType::f8e4m3, 16, true), matrix(DType::f32, 32, false), ProductSums::f32, 3};
  gemm.right.buffer = 1;
  gemm.result.buffer = 2;
  CudaExecutable executable = executable_of(gemm);
  executable.program.buffers.push_back(
      {BufferRole::input, "scale", DType::f32, {}, 4, executable.program.memory_bytes, InitKind::zeros, {}});
  executable.program.memory_bytes += 256;
  executable.program.launches[0].buffers.push_back(3);
  OnGpu gpu(std::move(executable));
  gpu.executor.set(0, numbers(gemm.left.dtype, 256));
  gpu.executor.set(1, numbers(gemm.right.dtype, 512));
  HostArray scale{DType::f32, {}, std::vector<std::byte>(4)};
  store_number(DType::f32, 0.25, scale.bytes.data());
  gpu.executor.set(3, scale);
  gpu.executor.run(1, 1);
  const HostArray y = gpu.executor.get(2);
  const std::vector<double> got = TensorView(y.dtype, y.shape, y.bytes.data()).to_doubles();
  double sum = 0;
  for (int64_t k = 0; k < 16; ++k) sum += number(place(gemm.left, 0, 5, k)) * number(place(gemm.right, 0, k, 7));
  CHECK(got[5 * 32 + 7] == sum / 4);
}

TEST_CASE("a product that cuBLASLt does not have names its launch") {
  LibraryProduct gemm{
      1, 16, 32, 16, matrix(DType::f8e4m3, 16, false), matrix(DType::f8e5m2, 32, false), matrix(DType::bf16, 32, false), ProductSums::f32};
  gemm.right.buffer = 1;
  gemm.result.buffer = 2;
  OnGpu gpu(executable_of(gemm));
  CHECK_THROWS_WITH_AS(gpu.executor.run(1, 1),
                       "cuBLASLt failed: cublasLtMatmulAlgoGetHeuristic: fp8 is multiplied only with the left matrix transposed and the "
                       "right one not, in 'y' (gemm.ein:2:1)",
                       RuntimeFailure);
}

TEST_CASE("a shape's algorithm is chosen once, and kept in the table") {
  const LibraryProduct gemm{1, 9, 8, 7, matrix(DType::f32, 7, false), {1, DType::f32, 0, 8}, {2, DType::f32, 0, 8}, ProductSums::f32};
  emulator::set_gemm_candidates(3);
  const auto products = emulator::calls("cublasLtMatmul"), asked = emulator::calls("cublasLtMatmulAlgoGetHeuristic");
  OnGpu first(executable_of(gemm));
  first.executor.run(1, 1);
  CHECK(emulator::calls("cublasLtMatmul") ==
        products + 3 * (1 + cuda::ColdTimer::kRuns) + 1);  // each candidate is tried and timed; then the product
  OnGpu second(executable_of(gemm));
  second.executor.run(1, 1);
  CHECK(emulator::calls("cublasLtMatmulAlgoGetHeuristic") == asked + 1);
  emulator::set_gemm_candidates(1);
  // Another process reads the same.
  const std::string key = "some GPU, cuBLASLt 1: 1 of 2 x 3 x 4";
  const cuda::AlgorithmTable::Entry entry{{{1, 2, 3, 4, 5, 6, 7, 0xABCDEF}}, 4096};
  cuda::AlgorithmTable writes(table_file());
  const uint64_t unused = writes.used_hash();
  CHECK(writes.of(key, [&] { return entry; }) == entry);
  CHECK(writes.used_hash() != unused);
  cuda::AlgorithmTable reads(table_file());
  CHECK(reads.used_hash() == unused);
  CHECK(reads.of(key, []() -> cuda::AlgorithmTable::Entry { throw std::logic_error("the table has it"); }) == entry);
  CHECK(reads.used_hash() == writes.used_hash());
  std::filesystem::remove(table_file());
}

TEST_CASE("an algorithm that is offered and does not work is not taken") {
  const auto product = [](int64_t rows) { return f32_product(rows, 8, 7); };
  emulator::set_gemm_candidates(3);
  emulator::set_unusable_candidates(2);
  check_product(product(13));
  CHECK(emulator::last_gemm_algorithm() == 2);
  emulator::set_unusable_candidates(3);
  OnGpu gpu(executable_of(product(14)));
  CHECK_THROWS_WITH_AS(gpu.executor.run(1, 1), "cuBLASLt has no algorithm for this product, in 'y' (gemm.ein:2:1)", RuntimeFailure);
  emulator::set_unusable_candidates(0);
  emulator::set_gemm_candidates(1);
  gpu.executor.run(1, 1);
}

TEST_CASE("a measured product leaves a state as it was") {
  constexpr int64_t kRows = 11, kColumns = 16, kDepth = 6;
  const auto runs = [&](bool accumulates) {
    LibraryProduct gemm = f32_product(kRows, kColumns, kDepth);
    if (accumulates) gemm.epilogue.addend = 2;
    CudaExecutable executable = executable_of(gemm);
    executable.program.buffers[2].role = BufferRole::state;
    // What a launch in front of the product would read of the state.
    executable.program.buffers.push_back({BufferRole::arena,
                                          "",
                                          DType::f32,
                                          {kRows * kColumns},
                                          kRows * kColumns * 4,
                                          executable.program.memory_bytes,
                                          InitKind::zeros,
                                          {}});
    executable.program.memory_bytes += 1024;
    executable.program.snapshots = {{2, 3}};
    OnGpu gpu(std::move(executable));
    gpu.executor.set(0, numbers(DType::f32, kRows * kDepth));
    gpu.executor.set(1, numbers(DType::f32, kDepth * kColumns));
    gpu.executor.set(2, numbers(DType::f32, kRows * kColumns));
    gpu.executor.run(1, 1);
    return std::pair{gpu.executor.get(2).bytes, gpu.executor.get(3).bytes};
  };
  emulator::set_gemm_candidates(3);
  for (const bool accumulates : {false, true}) {
    CAPTURE(accumulates);
    const auto asked = emulator::calls("cublasLtMatmulAlgoGetHeuristic");
    const auto measured = runs(accumulates), known = runs(accumulates);
    CHECK(emulator::calls("cublasLtMatmulAlgoGetHeuristic") == asked + 1);
    CHECK((measured == known));
    CHECK((measured.second == numbers(DType::f32, kRows * kColumns).bytes));
  }
  emulator::set_gemm_candidates(1);
}

TEST_CASE("measured epilogues leave sums and kept values as they were where somebody holds them") {
  constexpr int64_t kRows = 17, kColumns = 16, kDepth = 9;
  LibraryProduct gemm = f32_product(kRows, kColumns, kDepth);
  for (const bool sums : {true, false}) {
    CAPTURE(sums);
    if (sums) {
      gemm.epilogue = {};
      gemm.epilogue.right_sums = LibraryVector{3, DType::f32};
    } else {
      gemm.epilogue = {};
      gemm.epilogue.activation = LibraryActivation::gelu;
      gemm.epilogue.input = 3;
    }
    const int64_t count = sums ? kColumns : kRows * kColumns;
    CudaExecutable executable = executable_of(gemm);
    executable.program.buffers.push_back(
        {BufferRole::state, "held", DType::f32, {count}, count * 4, executable.program.memory_bytes, InitKind::zeros, {}});
    executable.program.memory_bytes += 4096;
    OnGpu gpu(std::move(executable));
    gpu.executor.set(3, numbers(DType::f32, count));
    gpu.executor.plan_gemms();
    CHECK((gpu.executor.get(3).bytes == numbers(DType::f32, count).bytes));
  }
}

TEST_CASE("algorithms are timed with a cold cache") {
  const auto fills = emulator::calls("cuMemsetD8Async");
  check_product(LibraryProduct{1, 15, 8, 7, matrix(DType::f32, 7, false), {1, DType::f32, 0, 8}, {2, DType::f32, 0, 8}, ProductSums::f32});
  CHECK(emulator::calls("cuMemsetD8Async") >= fills + cuda::ColdTimer::kRuns - 1);
}

TEST_CASE("a damaged table is chosen anew, and a file that is none is left alone") {
  const std::string path = table_file() + "_damaged";
  const cuda::AlgorithmTable::Entry entry{{{8, 7, 6, 5, 4, 3, 2, 1}}, 16};
  int chosen = 0;
  const auto choose = [&] {
    ++chosen;
    return entry;
  };
  std::ofstream(path) << "einc gemm algorithms 1\nkey = 16 8 7 6\nother = x\n";
  CHECK(cuda::AlgorithmTable(path).of("key", choose) == entry);
  CHECK(cuda::AlgorithmTable(path).of("other", choose) == entry);
  CHECK(chosen == 2);
  CHECK(cuda::AlgorithmTable(path).of("key", choose) == entry);
  CHECK(chosen == 2);
  std::ofstream(path) << "notes of mine\n";
  CHECK(cuda::AlgorithmTable(path).of("key", choose) == entry);
  CHECK(std::filesystem::file_size(path) == 14);
  std::filesystem::remove(path);
}

}  // namespace einc
