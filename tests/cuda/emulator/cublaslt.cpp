// SPDX-License-Identifier: Apache-2.0
// cuBLASLt of the emulated GPU: plain loops, and what cuBLASLt asks of its arguments.
#include "runtime/cuda/cublaslt_api.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "emulator.h"
#include "gpu.h"
#include "runtime/base/float_format.h"

namespace einc::cuda {

struct LtHandleObject {};
struct LtMatmulObject {
  int sums, scale_type;
  std::array<bool, 2> transposed{};
  DevicePointer scale = 0;  // of the left matrix
  int8_t fast_sums = 0;
  uint32_t epilogue = kLtPlain;
  DevicePointer vector = 0, gelu_input = 0;  // what is added or where sums go; what GELU is of
  int64_t gelu_leading = 0;
  bool has(uint32_t bit) const { return epilogue & bit; }
};
struct LtLayoutObject {
  int type;
  uint64_t rows, columns;
  int64_t leading, batch_stride = 0;
  int32_t batch = 1;

  size_t element_bytes() const;
  int64_t elements() const { return (batch - 1) * batch_stride + static_cast<int64_t>(columns - 1) * leading + static_cast<int64_t>(rows); }
};
struct LtPreferenceObject {
  uint64_t workspace = 0;
};

}  // namespace einc::cuda

namespace emulator {
namespace {

using namespace einc::cuda;
using einc::DType;

constexpr uint64_t kWideAlignment = 16, kWorkspaceAlignment = 256;  // bytes
constexpr Result kNotInitialized = 1, kInvalidLtValue = 7, kNotSupported = 15;
int candidates = 1, unusable = 0, last_algorithm = -1;
uint32_t last_epilogue = kLtPlain;
Epilogues epilogues = Epilogues::offered;

DType dtype_of(int type) {
  static const std::map<int, DType> dtypes{{kLtF32, DType::f32},   {kLtF64, DType::f64},     {kLtF16, DType::f16},
                                           {kLtBf16, DType::bf16}, {kLtE4m3, DType::f8e4m3}, {kLtE5m2, DType::f8e5m2}};
  return dtypes.at(type);
}

template <class T>
T loaded(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

double element(DType dtype, const std::byte* at) {
  switch (einc::bytes_of(dtype)) {
    case 8:
      return loaded<double>(at);
    case 4:
      return loaded<float>(at);
    case 2:
      return einc::decode_float(dtype, loaded<uint16_t>(at));
    default:
      return einc::decode_float(dtype, loaded<uint8_t>(at));
  }
}

struct Matrix {
  LtLayoutObject layout;
  std::byte* memory;

  // All elements of batch i as numbers, columns first.
  std::vector<double> numbers(int64_t i) const {
    const DType dtype = dtype_of(layout.type);
    const auto size = static_cast<int64_t>(layout.element_bytes());
    std::vector<double> result;
    for (uint64_t c = 0; c < layout.columns; ++c)
      for (uint64_t r = 0; r < layout.rows; ++r)
        result.push_back(
            element(dtype, memory + (i * layout.batch_stride + static_cast<int64_t>(c) * layout.leading + static_cast<int64_t>(r)) * size));
    return result;
  }
};

std::byte* at(DevicePointer address) { return reinterpret_cast<std::byte*>(address); }

double element_of(DType dtype, DevicePointer memory, int64_t place) { return element(dtype, at(memory) + place * einc::bytes_of(dtype)); }

// GELU in its tanh form, and its slope.
double gelu(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }
double gelu_slope(double x) {
  const double u = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x), t = std::tanh(u);
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
}

// To 10 bits behind the point, halves away from zero.
double in_tf32(double x) {
  int exponent = 0;
  const double fraction = std::frexp(x, &exponent);
  return std::isfinite(x) ? std::ldexp(std::round(std::ldexp(fraction, 11)), exponent - 11) : x;
}

// What a sum becomes at a row and a column of the result, which lies there as c does.
template <class Sum>
Sum with_epilogue(const LtMatmulObject& matmul, Sum sum, uint64_t r, uint64_t c, DType dtype) {
  if (matmul.has(kLtAddBias)) sum = static_cast<Sum>(sum + element_of(dtype, matmul.vector, static_cast<int64_t>(r)));
  if (matmul.gelu_input == 0) return matmul.has(kLtGelu) ? static_cast<Sum>(gelu(sum)) : sum;
  const int64_t place = static_cast<int64_t>(c) * matmul.gelu_leading + static_cast<int64_t>(r);
  if (!matmul.has(kLtGelu)) return static_cast<Sum>(sum * gelu_slope(element_of(dtype, matmul.gelu_input, place)));
  einc::store_number(dtype, sum, at(matmul.gelu_input) + place * einc::bytes_of(dtype));
  return static_cast<Sum>(gelu(sum));
}

// Of rows of a, or of columns of b.
template <class Sum>
void sum_operand(const LtMatmulObject& matmul, const Matrix& a, const Matrix& b, DType dtype) {
  const bool of_a = matmul.has(kLtSumsOfA);
  const Matrix& x = of_a ? a : b;
  const bool along_columns = of_a != matmul.transposed[of_a ? 0 : 1];  // the depth counts columns of the matrix as it lies
  const std::vector<double> numbers = x.numbers(0);
  const uint64_t depth = along_columns ? x.layout.columns : x.layout.rows, count = along_columns ? x.layout.rows : x.layout.columns;
  for (uint64_t i = 0; i < count; ++i) {
    Sum sum = 0;
    for (uint64_t k = 0; k < depth; ++k)
      sum = static_cast<Sum>(sum + numbers[along_columns ? k * x.layout.rows + i : i * x.layout.rows + k]);
    einc::store_number(dtype, sum, at(matmul.vector) + static_cast<int64_t>(i) * einc::bytes_of(dtype));
  }
}

// f32 sums are rounded after every product, f64's too.
template <class Sum>
void multiply(const LtMatmulObject& matmul, const Matrix& a, const Matrix& b, const Matrix& c_matrix, const Matrix& d) {
  const uint64_t depth = matmul.transposed[0] ? a.layout.rows : a.layout.columns;
  const DType dtype = dtype_of(d.layout.type);
  const double scale = matmul.scale == 0 ? 1 : loaded<float>(reinterpret_cast<const std::byte*>(matmul.scale));
  if (matmul.has(kLtSumsOfA | kLtSumsOfB)) sum_operand<Sum>(matmul, a, b, dtype);
  for (int64_t i = 0; i < d.layout.batch; ++i) {
    std::vector<double> left = a.numbers(i), right = b.numbers(i);
    if (matmul.sums == kLtSumsTf32)
      for (std::vector<double>* numbers : {&left, &right}) std::ranges::transform(*numbers, numbers->begin(), in_tf32);
    for (uint64_t c = 0; c < d.layout.columns; ++c)
      for (uint64_t r = 0; r < d.layout.rows; ++r) {
        Sum sum = 0;
        for (uint64_t k = 0; k < depth; ++k) {
          const double x = matmul.transposed[0] ? left[r * a.layout.rows + k] : left[k * a.layout.rows + r];
          const double y = matmul.transposed[1] ? right[k * b.layout.rows + c] : right[c * b.layout.rows + k];
          sum = static_cast<Sum>(sum + x * y);
        }
        const auto place = i * d.layout.batch_stride + static_cast<int64_t>(c) * d.layout.leading + static_cast<int64_t>(r);
        const auto bytes = static_cast<int64_t>(d.layout.element_bytes());
        sum = static_cast<Sum>(sum * scale);
        if (c_matrix.memory) sum = static_cast<Sum>(sum + element(dtype, c_matrix.memory + place * bytes));
        einc::store_number(dtype, static_cast<double>(with_epilogue(matmul, sum, r, c, dtype)), d.memory + place * bytes);
      }
  }
}

bool is_fp8(int type) { return type == kLtE4m3 || type == kLtE5m2; }

// What cuBLASLt refuses of epilogues.
std::string epilogue_objection(const LtMatmulObject& matmul, const LtLayoutObject& a, const LtLayoutObject& d) {
  if (matmul.epilogue == kLtPlain) return "";
  static constexpr std::array<uint32_t, 8> kKnown{kLtAddBias,   kLtGelu,    kLtGelu | kLtAddBias, kLtGelu | kLtKeepGeluInput,
                                                  kLtGeluSlope, kLtSumsOfA, kLtSumsOfB,           kLtGelu | kLtKeepGeluInput | kLtAddBias};
  if (epilogues == Epilogues::missing || std::find(kKnown.begin(), kKnown.end(), matmul.epilogue) == kKnown.end())
    return "an epilogue that it does not have";
  if (matmul.sums == kLtSumsF64 || d.batch != 1) return "an epilogue of a batch, or in f64";
  const bool keeps = matmul.has(kLtKeepGeluInput);
  if (is_fp8(a.type) && (keeps || matmul.has(kLtSumsOfA | kLtSumsOfB))) return "an epilogue that fp8 does not have";
  if (is_fp8(a.type) && matmul.has(kLtAddBias) && d.type == kLtF32) return "a bias in f32 of products of fp8";
  if (matmul.has(kLtAddBias | kLtSumsOfA | kLtSumsOfB) && matmul.vector == 0) return "no vector for the epilogue";
  if (keeps != (matmul.gelu_input != 0)) return "the input of GELU without an epilogue that has one, or the other way round";
  if (keeps && (matmul.gelu_leading % kLtGeluStep != 0 || matmul.gelu_leading < static_cast<int64_t>(d.rows)))
    return "rows of GELU's input that are no multiples of 8 long";
  if (keeps && matmul.gelu_input % 16 != 0) return "GELU's input at an odd place";
  return "";
}

// Of where an epilogue reads and writes.
bool reaches_beyond(const LtMatmulObject& matmul, const LtLayoutObject& d) {
  const uint64_t size = d.element_bytes(), count = matmul.has(kLtSumsOfB) ? d.columns : d.rows;
  if (matmul.vector != 0 && check_memory(matmul.vector, count * size) != 0) return true;
  const uint64_t elements = (d.columns - 1) * static_cast<uint64_t>(matmul.gelu_leading) + d.rows;
  return matmul.gelu_input != 0 && check_memory(matmul.gelu_input, elements * size) != 0;
}

// What cuBLASLt refuses.
std::string objection(const LtMatmulObject& matmul, const LtLayoutObject& a, const LtLayoutObject& b, const LtLayoutObject& d) {
  const uint64_t rows = matmul.transposed[0] ? a.columns : a.rows, depth = matmul.transposed[0] ? a.rows : a.columns;
  const uint64_t columns = matmul.transposed[1] ? b.rows : b.columns, other_depth = matmul.transposed[1] ? b.columns : b.rows;
  if (rows != d.rows || columns != d.columns || depth != other_depth) return "the matrices do not fit each other";
  if (a.batch != b.batch || a.batch != d.batch) return "batches of different sizes";
  for (const LtLayoutObject* layout : {&a, &b, &d})
    if (layout->leading < static_cast<int64_t>(layout->rows)) return "a column is longer than the next one is away";
  if ((matmul.sums == kLtSumsF64) != (a.type == kLtF64) || (matmul.sums == kLtSumsF64) != (matmul.scale_type == kLtF64))
    return "sums of another type";
  if (std::string why = epilogue_objection(matmul, a, d); !why.empty()) return why;
  if (!is_fp8(a.type) && (matmul.scale != 0 || matmul.fast_sums != 0)) return "scales and fast sums of what is not fp8";
  if (matmul.sums == kLtSumsTf32 && a.type != kLtF32) return "tf32 of what is not f32";
  if (d.batch > 1 && d.batch_stride == 0) return "a batch of results in one place";
  if (!is_fp8(a.type)) return a.type != b.type || (d.type != a.type && d.type != kLtF32) ? "types that do not go together" : "";
  if (!is_fp8(b.type) || (a.type == kLtE5m2 && b.type == kLtE5m2) || is_fp8(d.type)) return "types that do not go together";
  if (!matmul.transposed[0] || matmul.transposed[1]) return "fp8 is multiplied only with the left matrix transposed and the right one not";
  for (const LtLayoutObject* layout : {&a, &b, &d})
    if (static_cast<size_t>(layout->leading) * layout->element_bytes() % kWideAlignment != 0) return "fp8 in rows that begin at odd places";
  return rows % 16 + columns % 16 + depth % 16 == 0 ? "" : "fp8 in sizes that are no multiples of 16";
}

template <class T>
bool take(T& target, const void* value, size_t bytes) {
  if (bytes != sizeof target) return false;
  std::memcpy(&target, value, bytes);
  return true;
}

}  // namespace

void set_gemm_candidates(int count) { candidates = count; }
int last_gemm_algorithm() { return last_algorithm; }
void set_unusable_candidates(int count) { unusable = count; }
void set_epilogues(Epilogues which) { epilogues = which; }
unsigned last_gemm_epilogue() { return last_epilogue; }

}  // namespace emulator

size_t einc::cuda::LtLayoutObject::element_bytes() const { return static_cast<size_t>(bytes_of(emulator::dtype_of(type))); }

using namespace einc::cuda;
using emulator::Call;

extern "C" {

size_t cublasLtGetVersion() { return 1; }

const char* cublasLtGetStatusName(Result) { return emulator::gpu().failure.c_str(); }

Result cublasLtCreate(LtHandle* handle) {
  const Call call("cublasLtCreate");
  if (emulator::unsafe_in_capture("cuBLASLt is set up") != 0) return emulator::kNotInitialized;
  *handle = new LtHandleObject;
  return 0;
}

Result cublasLtMatmulDescCreate(LtMatmul* matmul, int sums, int scale_type) {
  const Call call("cublasLtMatmulDescCreate");
  *matmul = new LtMatmulObject{sums, scale_type};
  return 0;
}

Result cublasLtMatmulDescDestroy(LtMatmul matmul) {
  delete matmul;
  return 0;
}

Result cublasLtMatmulDescSetAttribute(LtMatmul matmul, int attribute, const void* value, size_t bytes) {
  const Call call("cublasLtMatmulDescSetAttribute");
  if (attribute == kLtScaleA && emulator::take(matmul->scale, value, bytes)) return 0;
  if (attribute == kLtFastSums && emulator::take(matmul->fast_sums, value, bytes)) return 0;
  if (attribute == kLtEpilogue && emulator::take(matmul->epilogue, value, bytes)) return 0;
  if (attribute == kLtBias && emulator::take(matmul->vector, value, bytes)) return 0;
  if (attribute == kLtGeluInput && emulator::take(matmul->gelu_input, value, bytes)) return 0;
  if (attribute == kLtGeluInputLeading && emulator::take(matmul->gelu_leading, value, bytes)) return 0;
  int32_t operation = 0;
  if ((attribute != kLtTransposeA && attribute != kLtTransposeB) || !emulator::take(operation, value, bytes))
    return emulator::fail(emulator::kInvalidLtValue, "an attribute of a product that the emulator does not know");
  matmul->transposed[attribute == kLtTransposeA ? 0 : 1] = operation == 1;
  return 0;
}

Result cublasLtMatrixLayoutCreate(LtLayout* layout, int type, uint64_t rows, uint64_t columns, int64_t leading) {
  const Call call("cublasLtMatrixLayoutCreate");
  *layout = new LtLayoutObject{type, rows, columns, leading};
  return 0;
}

Result cublasLtMatrixLayoutDestroy(LtLayout layout) {
  delete layout;
  return 0;
}

Result cublasLtMatrixLayoutSetAttribute(LtLayout layout, int attribute, const void* value, size_t bytes) {
  const Call call("cublasLtMatrixLayoutSetAttribute");
  const bool taken = attribute == kLtBatchCount    ? emulator::take(layout->batch, value, bytes)
                     : attribute == kLtBatchStride ? emulator::take(layout->batch_stride, value, bytes)
                                                   : false;
  return taken ? 0 : emulator::fail(emulator::kInvalidLtValue, "an attribute of a matrix that the emulator does not know");
}

Result cublasLtMatmulPreferenceCreate(LtPreference* preference) {
  const Call call("cublasLtMatmulPreferenceCreate");
  *preference = new LtPreferenceObject;
  return 0;
}

Result cublasLtMatmulPreferenceDestroy(LtPreference preference) {
  delete preference;
  return 0;
}

Result cublasLtMatmulPreferenceSetAttribute(LtPreference preference, int attribute, const void* value, size_t bytes) {
  const Call call("cublasLtMatmulPreferenceSetAttribute");
  if (attribute == kLtMaxWorkspace && emulator::take(preference->workspace, value, bytes)) return 0;
  const bool known = attribute == kLtReductionSchemes || (attribute >= kLtAlignmentA && attribute <= kLtAlignmentD);
  return known && bytes == 4 ? 0
                             : emulator::fail(emulator::kInvalidLtValue, "an attribute of a preference that the emulator does not know");
}

Result cublasLtMatmulAlgoGetHeuristic(LtHandle, LtMatmul matmul, LtLayout a, LtLayout b, LtLayout, LtLayout d, LtPreference preference,
                                      int asked, LtCandidate* found, int* count) {
  const Call call("cublasLtMatmulAlgoGetHeuristic");
  *count = 0;
  if (const std::string why = emulator::objection(*matmul, *a, *b, *d); !why.empty()) return emulator::fail(emulator::kNotSupported, why);
  for (; *count < asked && *count < emulator::candidates; ++*count)
    found[*count] = {{{static_cast<uint64_t>(*count)}}, preference->workspace, 0, 1, {}};
  return 0;
}

Result cublasLtMatmul(LtHandle, LtMatmul matmul, const void* alpha, DevicePointer a, LtLayout a_layout, DevicePointer b, LtLayout b_layout,
                      const void* beta, DevicePointer c, LtLayout c_layout, DevicePointer d, LtLayout d_layout,
                      const LtAlgorithm* algorithm, DevicePointer workspace, size_t workspace_bytes, Stream stream) {
  const Call call("cublasLtMatmul");
  if (const std::string why = emulator::objection(*matmul, *a_layout, *b_layout, *d_layout); !why.empty())
    return emulator::fail(emulator::kNotSupported, why);
  const bool in_f64 = matmul->scale_type == kLtF64;
  const double scale = in_f64 ? *static_cast<const double*>(alpha) : *static_cast<const float*>(alpha);
  const double kept = in_f64 ? *static_cast<const double*>(beta) : *static_cast<const float*>(beta);
  if (scale != 1 || (kept != 0 && kept != 1) || (kept == 0 && c != d))
    return emulator::fail(emulator::kNotSupported, "scales that the emulator does not know");
  if (c_layout->type != d_layout->type || c_layout->leading != d_layout->leading || c_layout->rows != d_layout->rows)
    return emulator::fail(emulator::kNotSupported, "what is added lies otherwise than the result");
  for (const auto& [address, layout] : {std::pair{a, a_layout}, {b, b_layout}, {c, c_layout}, {d, d_layout}})
    if (address % layout->element_bytes() != 0 ||
        emulator::check_memory(address, static_cast<size_t>(layout->elements()) * layout->element_bytes()) != 0)
      return emulator::fail(emulator::kInvalidLtValue, "a matrix goes beyond the GPU's memory");
  for (const auto& [address, layout] : {std::pair{a, a_layout}, {b, b_layout}, {d, d_layout}})
    if (emulator::is_fp8(a_layout->type) && address % emulator::kWideAlignment != 0)
      return emulator::fail(emulator::kNotSupported, "fp8 at an odd place");
  if (workspace % emulator::kWorkspaceAlignment != 0) return emulator::fail(emulator::kInvalidLtValue, "the workspace at an odd place");
  if (algorithm->data[0] < static_cast<uint64_t>(emulator::unusable) ||
      (emulator::epilogues == emulator::Epilogues::unusable && matmul->epilogue != kLtPlain))
    return emulator::fail(emulator::kNotSupported, "an algorithm that does not take these matrices after all");
  if (matmul->scale != 0 && emulator::check_memory(matmul->scale, sizeof(float)) != 0)
    return emulator::fail(emulator::kInvalidLtValue, "a scale lies beyond the GPU's memory");
  if (workspace_bytes > 0 && emulator::check_memory(workspace, workspace_bytes) != 0)
    return emulator::fail(emulator::kInvalidLtValue, "the workspace goes beyond the GPU's memory");
  if (emulator::reaches_beyond(*matmul, *d_layout))
    return emulator::fail(emulator::kInvalidLtValue, "an epilogue goes beyond the GPU's memory");
  emulator::last_algorithm = static_cast<int>(algorithm->data[0]);
  emulator::last_epilogue = matmul->epilogue;
  if (matmul->epilogue != kLtPlain || kept != 0) emulator::note_epilogue(stream);
  using emulator::at;
  return emulator::give(stream, [how = *matmul, left = emulator::Matrix{*a_layout, at(a)}, right = emulator::Matrix{*b_layout, at(b)},
                                 added = emulator::Matrix{*c_layout, kept == 0 ? nullptr : at(c)},
                                 result = emulator::Matrix{*d_layout, at(d)}, noise = at(workspace), workspace_bytes] {
    std::memset(noise, 0xFF, workspace_bytes);
    how.sums == kLtSumsF64 ? emulator::multiply<double>(how, left, right, added, result)
                           : emulator::multiply<float>(how, left, right, added, result);
    return 0;
  });
}

}  // extern "C"
