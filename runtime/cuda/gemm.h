// SPDX-License-Identifier: Apache-2.0
// A product of matrices by cuBLASLt.
#pragma once
#include <functional>
#include <span>
#include <string>

#include "runtime/cuda/algorithm_table.h"
#include "runtime/cuda/cuda_executable.h"
#include "runtime/cuda/device.h"

namespace einc::cuda {

// Memory that products may use; one at a time.
struct GemmWorkspace {
  DevicePointer memory = 0;
  size_t bytes = 0;
};

// What is cuBLASLt's own, destroyed by a member of its table.
template <class T, auto Destroy>
class LtOwned {
 public:
  LtOwned() = default;
  LtOwned(LtOwned&& other) noexcept { std::swap(value_, other.value_); }
  LtOwned& operator=(LtOwned&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~LtOwned() {
    if (value_) (cublaslt().*Destroy)(value_);
  }
  T get() const { return value_; }
  T* out() { return &value_; }

 private:
  T value_{};
};
using OwnedMatmul = LtOwned<LtMatmul, &LtTable::cublasLtMatmulDescDestroy>;
using OwnedLayout = LtOwned<LtLayout, &LtTable::cublasLtMatrixLayoutDestroy>;
using OwnedPreference = LtOwned<LtPreference, &LtTable::cublasLtMatmulPreferenceDestroy>;

// Numbers as a step has them: zeros would be multiplied faster. Each 16 bits are 0.5 to 1 in bf16, of both signs; no f32 or f16 of them is
// large.
void fill_random(DevicePointer memory, size_t bytes, Stream stream);

class GemmPlan {
 public:
  // `addresses`: of the program's buffers, which stay there. Where the table has no algorithm for the shape the best candidates are timed,
  // before anything runs: memory of the buffers that `is_free` names is filled for that; in others all that the product writes, its
  // epilogue's vectors too, is as it was afterwards. Throws RuntimeFailure (resource) when cuBLASLt has no way to do it; `where` names the
  // launch.
  GemmPlan(const LibraryProduct& gemm, std::span<const DevicePointer> addresses, GemmWorkspace workspace, AlgorithmTable& table,
           Stream stream, const std::function<bool(uint32_t buffer)>& is_free, const std::string& where);

  void run(Stream stream, const std::string& where) const;
  // All that cuBLASLt's choice depends on, in one line.
  const std::string& key() const { return key_; }

 private:
  struct Operand {
    DevicePointer address = 0;
    size_t bytes = 0;  // from the first element to the last
    OwnedLayout layout;
  };

  Operand operand(const LibraryMatrix& matrix, int64_t batch, int64_t rows, int64_t columns, std::span<const DevicePointer> addresses);
  void set_epilogue(const LibraryProduct& gemm, std::span<const DevicePointer> addresses);
  Result multiply(const AlgorithmTable::Entry& entry, Stream stream) const;
  AlgorithmTable::Entry choose(Stream stream, const std::string& where) const;

  OwnedMatmul matmul_;
  Operand a_, b_, d_;
  DevicePointer addend_ = 0;  // lies as the result does; 0: none
  bool in_f64_;
  std::string key_;
  GemmWorkspace workspace_;
  AlgorithmTable::Entry entry_;
};

}  // namespace einc::cuda
