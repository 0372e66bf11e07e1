// SPDX-License-Identifier: Apache-2.0
// cuBLASLt counts matrices by columns: the transpose of the result, columns x rows, is the transpose of the right operand times that of
// the left one, and row-major memory read by columns is the transpose already.
#include "runtime/cuda/gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <random>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/base/failure.h"
#include "runtime/cuda/cold_timer.h"

namespace einc::cuda {
namespace {

constexpr int kCandidates = 8;

// Of the GPU that this thread works on. The handles live as long as the process, for the library may be unloaded before a destructor runs.
LtHandle handle() {
  static std::mutex mutex;
  static auto& handles = *new std::map<const Gpu*, LtHandle>;
  const std::lock_guard lock(mutex);
  LtHandle& handle = handles[&Gpu::current()];
  if (!handle) EINC_CUBLASLT_CALL(cublasLtCreate, &handle);
  return handle;
}

int type_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return kLtF64;
    case DType::f32:
      return kLtF32;
    case DType::bf16:
      return kLtBf16;
    case DType::f16:
      return kLtF16;
    case DType::f8e4m3:
      return kLtE4m3;
    case DType::f8e5m2:
      return kLtE5m2;
    default:
      break;
  }
  internal_error(__FILE__, __LINE__, fmt::format("a product of matrices of {}", to_string(dtype)));
}

int sums_of(ProductSums sums) { return sums == ProductSums::f64 ? kLtSumsF64 : sums == ProductSums::tf32 ? kLtSumsTf32 : kLtSumsF32; }

// A result that lies by columns is the transpose of one by rows.
LibraryProduct by_rows(LibraryProduct gemm) {
  if (!gemm.result.transposed) return gemm;
  std::swap(gemm.rows, gemm.columns);
  std::swap(gemm.left, gemm.right);
  for (LibraryMatrix* matrix : {&gemm.left, &gemm.right, &gemm.result}) matrix->transposed = !matrix->transposed;
  return gemm;
}

uint32_t alignment_of(DevicePointer address) {
  const DevicePointer lowest = address & (~address + 1);
  return static_cast<uint32_t>(std::min<DevicePointer>(lowest, 256));
}

template <class T>
void set(LtMatmul matmul, int attribute, T value) {
  EINC_CUBLASLT_CALL(cublasLtMatmulDescSetAttribute, matmul, attribute, &value, sizeof value);
}
template <class T>
void set(LtLayout layout, int attribute, T value) {
  EINC_CUBLASLT_CALL(cublasLtMatrixLayoutSetAttribute, layout, attribute, &value, sizeof value);
}
template <class T>
void set(LtPreference preference, int attribute, T value) {
  EINC_CUBLASLT_CALL(cublasLtMatmulPreferenceSetAttribute, preference, attribute, &value, sizeof value);
}

std::string text_of(const LibraryMatrix& m, DevicePointer address) {
  return fmt::format("{}{} {}/{} @{}", to_string(m.dtype), m.transposed ? "T" : "", m.leading, m.batch_stride, alignment_of(address));
}

uint32_t bits_of(const LibraryEpilogue& epilogue) {
  if (epilogue.left_sums) return kLtSumsOfB;
  if (epilogue.right_sums) return kLtSumsOfA;
  if (epilogue.activation == LibraryActivation::gelu_slope) return kLtGeluSlope;
  uint32_t bits = epilogue.activation == LibraryActivation::gelu ? kLtGelu : 0;
  if (bits != 0 && epilogue.input) bits |= kLtKeepGeluInput;
  if (epilogue.bias) bits |= kLtAddBias;
  return bits == 0 ? kLtPlain : bits;
}

// The vector that goes with an epilogue: what is added, or where sums go.
const std::optional<LibraryVector>& vector_of(const LibraryEpilogue& epilogue) {
  return epilogue.left_sums ? epilogue.left_sums : epilogue.right_sums ? epilogue.right_sums : epilogue.bias;
}

std::string text_of(const LibraryEpilogue& epilogue, std::span<const DevicePointer> addresses) {
  if (epilogue.is_none()) return "";
  std::string text = fmt::format(", epilogue {}", bits_of(epilogue));
  if (const auto& vector = vector_of(epilogue)) text += fmt::format(" @{}", alignment_of(addresses[vector->buffer]));
  if (epilogue.input) text += fmt::format(", GELU's input @{}", alignment_of(addresses[*epilogue.input]));
  if (epilogue.addend) text += fmt::format(", plus @{}", alignment_of(addresses[*epilogue.addend]));
  return text;
}

}  // namespace

void fill_random(DevicePointer memory, size_t bytes, Stream stream) {
  static const std::vector<uint16_t> numbers = [] {
    std::vector<uint16_t> made(size_t{1} << 19);
    std::minstd_rand random(1);
    for (uint16_t& number : made) number = static_cast<uint16_t>(0x3F00 | (random() >> 8 & 0x807F));
    return made;
  }();
  const size_t first = std::min(bytes, numbers.size() * 2);
  EINC_CUDA(cuMemcpyHtoDAsync_v2, memory, numbers.data(), first, stream);
  for (size_t at = first; at < bytes; at *= 2) EINC_CUDA(cuMemcpyDtoDAsync_v2, memory + at, memory, std::min(bytes - at, at), stream);
}

GemmPlan::Operand GemmPlan::operand(const LibraryMatrix& matrix, int64_t batch, int64_t rows, int64_t columns,
                                    std::span<const DevicePointer> addresses) {
  if (matrix.transposed) std::swap(rows, columns);
  const int64_t leading = rows == 1 ? std::max(matrix.leading, columns) : matrix.leading;
  EINC_CHECK(leading >= columns, "rows of {} elements lie {} apart", columns, leading);
  Operand made;
  const auto size = static_cast<uint64_t>(bytes_of(matrix.dtype));
  made.address = addresses[matrix.buffer] + static_cast<uint64_t>(matrix.offset) * size;
  made.bytes = static_cast<size_t>((batch - 1) * matrix.batch_stride + (rows - 1) * leading + columns) * size;
  EINC_CUBLASLT_CALL(cublasLtMatrixLayoutCreate, made.layout.out(), type_of(matrix.dtype), static_cast<uint64_t>(columns),
                     static_cast<uint64_t>(rows), leading);
  if (batch > 1) {
    set(made.layout.get(), kLtBatchCount, static_cast<int32_t>(batch));
    set(made.layout.get(), kLtBatchStride, matrix.batch_stride);
  }
  return made;
}

void GemmPlan::set_epilogue(const LibraryProduct& gemm, std::span<const DevicePointer> addresses) {
  const LibraryEpilogue& epilogue = gemm.epilogue;
  if (epilogue.is_none()) return;
  EINC_CHECK(gemm.batch == 1 && (!vector_of(epilogue) || vector_of(epilogue)->dtype == gemm.result.dtype), "an epilogue of another form");
  set(matmul_.get(), kLtEpilogue, bits_of(epilogue));
  if (const auto& vector = vector_of(epilogue)) set(matmul_.get(), kLtBias, addresses[vector->buffer]);
  if (epilogue.input) {
    set(matmul_.get(), kLtGeluInput, addresses[*epilogue.input]);
    set(matmul_.get(), kLtGeluInputLeading, gemm.result.leading);
  }
  if (epilogue.addend) addend_ = addresses[*epilogue.addend];
}

GemmPlan::GemmPlan(const LibraryProduct& given, std::span<const DevicePointer> addresses, GemmWorkspace workspace, AlgorithmTable& table,
                   Stream stream, const std::function<bool(uint32_t buffer)>& is_free, const std::string& where)
    : in_f64_(given.sums == ProductSums::f64), workspace_(workspace) {
  EINC_CHECK(given.epilogue.is_none() || !given.result.transposed, "an epilogue's result lies by columns");
  const LibraryProduct gemm = by_rows(given);
  handle();  // made before a stream is captured, which making it would break
  EINC_CUBLASLT_CALL(cublasLtMatmulDescCreate, matmul_.out(), sums_of(gemm.sums), in_f64_ ? kLtF64 : kLtF32);
  set(matmul_.get(), kLtTransposeA, static_cast<int32_t>(gemm.right.transposed));
  set(matmul_.get(), kLtTransposeB, static_cast<int32_t>(gemm.left.transposed));
  if (gemm.scale) set(matmul_.get(), kLtScaleA, addresses[*gemm.scale]);
  // Of e4m3 alone, the forward's; gradients' products are summed in f32 all along.
  if (gemm.left.dtype == DType::f8e4m3 && gemm.right.dtype == DType::f8e4m3) set(matmul_.get(), kLtFastSums, int8_t{1});
  a_ = operand(gemm.right, gemm.batch, gemm.depth, gemm.columns, addresses);
  b_ = operand(gemm.left, gemm.batch, gemm.rows, gemm.depth, addresses);
  d_ = operand(gemm.result, gemm.batch, gemm.rows, gemm.columns, addresses);
  set_epilogue(gemm, addresses);
  key_ = fmt::format("{}, cuBLASLt {}: {} of {} x {} x {} in {}, {} by {} to {}, workspace {}{}", Gpu::current().name(),
                     cublaslt().cublasLtGetVersion(), gemm.batch, gemm.rows, gemm.depth, gemm.columns, sums_of(gemm.sums),
                     text_of(gemm.left, b_.address), text_of(gemm.right, a_.address), text_of(gemm.result, d_.address), workspace.bytes,
                     text_of(gemm.epilogue, addresses));
  entry_ = table.of(key_, [&] {
    const auto fill = [&](const LibraryMatrix& matrix, const Operand& held) {
      if (is_free(matrix.buffer)) fill_random(held.address, held.bytes, stream);
    };
    fill(gemm.right, a_);
    fill(gemm.left, b_);
    std::vector<HeldMemory> held;
    const auto hold = [&](uint32_t buffer, DevicePointer address, size_t bytes) {
      if (!is_free(buffer)) held.emplace_back(address, bytes, stream);
    };
    hold(gemm.result.buffer, d_.address, d_.bytes);
    const LibraryEpilogue& epilogue = gemm.epilogue;
    if (epilogue.activation == LibraryActivation::gelu && epilogue.input) hold(*epilogue.input, addresses[*epilogue.input], d_.bytes);
    const auto hold_sums = [&](const std::optional<LibraryVector>& sums, int64_t count) {
      if (sums) hold(sums->buffer, addresses[sums->buffer], static_cast<size_t>(count * bytes_of(sums->dtype)));
    };
    hold_sums(epilogue.left_sums, gemm.rows), hold_sums(epilogue.right_sums, gemm.columns);
    const AlgorithmTable::Entry chosen = choose(stream, where);
    for (const HeldMemory& memory : held) memory.put_back(stream);
    return chosen;
  });
}

AlgorithmTable::Entry GemmPlan::choose(Stream stream, const std::string& where) const {
  OwnedPreference preference;
  EINC_CUBLASLT_CALL(cublasLtMatmulPreferenceCreate, preference.out());
  set(preference.get(), kLtMaxWorkspace, static_cast<uint64_t>(workspace_.bytes));
  set(preference.get(), kLtReductionSchemes, kLtReduceInWorkspace);
  set(preference.get(), kLtAlignmentA, alignment_of(a_.address));
  set(preference.get(), kLtAlignmentB, alignment_of(b_.address));
  set(preference.get(), kLtAlignmentC, alignment_of(addend_ ? addend_ : d_.address));
  set(preference.get(), kLtAlignmentD, alignment_of(d_.address));
  std::vector<LtCandidate> candidates(kCandidates);
  int found = 0;
  check_cublaslt(cublaslt().cublasLtMatmulAlgoGetHeuristic(handle(), matmul_.get(), a_.layout.get(), b_.layout.get(), d_.layout.get(),
                                                           d_.layout.get(), preference.get(), kCandidates, candidates.data(), &found),
                 "cublasLtMatmulAlgoGetHeuristic", where);
  candidates.resize(static_cast<size_t>(found));
  std::optional<AlgorithmTable::Entry> best;
  const ColdTimer timer(stream);
  double least = std::numeric_limits<double>::infinity();
  for (const LtCandidate& candidate : candidates) {
    if (candidate.state != 0) continue;
    const AlgorithmTable::Entry entry{candidate.algorithm, candidate.workspace_bytes};
    if (multiply(entry, stream) != 0) continue;  // it does not take these matrices after all
    Result result = 0;
    const double time = timer.seconds([&] {
      if (const Result failed = multiply(entry, stream); failed != 0) result = failed;
    });
    if (result != 0 || time >= least) continue;
    least = time;
    best = entry;
  }
  if (!best) throw RuntimeFailure(FailureKind::resource, fmt::format("cuBLASLt has no algorithm for this product{}", where));
  return *best;
}

Result GemmPlan::multiply(const AlgorithmTable::Entry& entry, Stream stream) const {
  const float one = 1, zero = 0;
  const double one_f64 = 1, zero_f64 = 0;
  const void* alpha = in_f64_ ? static_cast<const void*>(&one_f64) : &one;
  const void* beta = in_f64_ ? static_cast<const void*>(&zero_f64) : addend_ ? &one : &zero;
  return cublaslt().cublasLtMatmul(handle(), matmul_.get(), alpha, a_.address, a_.layout.get(), b_.address, b_.layout.get(), beta,
                                   addend_ ? addend_ : d_.address, d_.layout.get(), d_.address, d_.layout.get(), &entry.algorithm,
                                   workspace_.memory, workspace_.bytes, stream);
}

void GemmPlan::run(Stream stream, const std::string& where) const { check_cublaslt(multiply(entry_, stream), "cublasLtMatmul", where); }

}  // namespace einc::cuda
