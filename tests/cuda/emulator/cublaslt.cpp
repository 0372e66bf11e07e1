// cuBLASLt of the emulated GPU: plain loops, and what cuBLASLt asks of its arguments.
#include "runtime/cuda/cublaslt_api.h"

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

constexpr Result kInvalidLtValue = 7, kNotSupported = 15;
int candidates = 1, last_algorithm = -1;

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

// f32 sums are rounded after every product, f64's too.
template <class Sum>
void multiply(const LtMatmulObject& matmul, const Matrix& a, const Matrix& b, const Matrix& d) {
  const uint64_t depth = matmul.transposed[0] ? a.layout.rows : a.layout.columns;
  const DType dtype = dtype_of(d.layout.type);
  const double scale = matmul.scale == 0 ? 1 : loaded<float>(reinterpret_cast<const std::byte*>(matmul.scale));
  for (int64_t i = 0; i < d.layout.batch; ++i) {
    const std::vector<double> left = a.numbers(i), right = b.numbers(i);
    for (uint64_t c = 0; c < d.layout.columns; ++c)
      for (uint64_t r = 0; r < d.layout.rows; ++r) {
        Sum sum = 0;
        for (uint64_t k = 0; k < depth; ++k) {
          const double x = matmul.transposed[0] ? left[r * a.layout.rows + k] : left[k * a.layout.rows + r];
          const double y = matmul.transposed[1] ? right[k * b.layout.rows + c] : right[c * b.layout.rows + k];
          sum = static_cast<Sum>(sum + x * y);
        }
        const auto place = i * d.layout.batch_stride + static_cast<int64_t>(c) * d.layout.leading + static_cast<int64_t>(r);
        einc::store_number(dtype, static_cast<double>(static_cast<Sum>(sum * scale)),
                           d.memory + place * static_cast<int64_t>(d.layout.element_bytes()));
      }
  }
}

bool is_fp8(int type) { return type == kLtE4m3 || type == kLtE5m2; }

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
  if (!is_fp8(a.type) && (matmul.scale != 0 || matmul.fast_sums != 0)) return "scales and fast sums of what is not fp8";
  if (!is_fp8(a.type)) return a.type != b.type || (d.type != a.type && d.type != kLtF32) ? "types that do not go together" : "";
  if (!is_fp8(b.type) || (a.type == kLtE5m2 && b.type == kLtE5m2) || is_fp8(d.type)) return "types that do not go together";
  if (!matmul.transposed[0] || matmul.transposed[1]) return "fp8 is multiplied only with the left matrix transposed and the right one not";
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

}  // namespace emulator

size_t einc::cuda::LtLayoutObject::element_bytes() const { return static_cast<size_t>(bytes_of(emulator::dtype_of(type))); }

using namespace einc::cuda;
using emulator::Call;

extern "C" {

size_t cublasLtGetVersion() { return 1; }

const char* cublasLtGetStatusName(Result) { return emulator::gpu().failure.c_str(); }

Result cublasLtCreate(LtHandle* handle) {
  const Call call("cublasLtCreate");
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
                      const void* beta, DevicePointer c, LtLayout, DevicePointer d, LtLayout d_layout, const LtAlgorithm* algorithm,
                      DevicePointer workspace, size_t workspace_bytes, Stream stream) {
  const Call call("cublasLtMatmul");
  if (const std::string why = emulator::objection(*matmul, *a_layout, *b_layout, *d_layout); !why.empty())
    return emulator::fail(emulator::kNotSupported, why);
  const bool in_f64 = matmul->scale_type == kLtF64;
  const double scale = in_f64 ? *static_cast<const double*>(alpha) : *static_cast<const float*>(alpha);
  const double kept = in_f64 ? *static_cast<const double*>(beta) : *static_cast<const float*>(beta);
  if (scale != 1 || kept != 0 || c != d) return emulator::fail(emulator::kNotSupported, "scales that the emulator does not know");
  for (const auto& [address, layout] : {std::pair{a, a_layout}, {b, b_layout}, {d, d_layout}})
    if (address % layout->element_bytes() != 0 ||
        emulator::check_memory(address, static_cast<size_t>(layout->elements()) * layout->element_bytes()) != 0)
      return emulator::fail(emulator::kInvalidLtValue, "a matrix goes beyond the GPU's memory");
  if (matmul->scale != 0 && emulator::check_memory(matmul->scale, sizeof(float)) != 0)
    return emulator::fail(emulator::kInvalidLtValue, "a scale lies beyond the GPU's memory");
  if (workspace_bytes > 0 && emulator::check_memory(workspace, workspace_bytes) != 0)
    return emulator::fail(emulator::kInvalidLtValue, "the workspace goes beyond the GPU's memory");
  emulator::last_algorithm = static_cast<int>(algorithm->data[0]);
  const auto at = [](DevicePointer address) { return reinterpret_cast<std::byte*>(address); };
  return emulator::give(stream, [how = *matmul, left = emulator::Matrix{*a_layout, at(a)}, right = emulator::Matrix{*b_layout, at(b)},
                                 result = emulator::Matrix{*d_layout, at(d)}, noise = at(workspace), workspace_bytes] {
    std::memset(noise, 0xFF, workspace_bytes);
    how.sums == kLtSumsF64 ? emulator::multiply<double>(how, left, right, result) : emulator::multiply<float>(how, left, right, result);
    return 0;
  });
}

}  // extern "C"
