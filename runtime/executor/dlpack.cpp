// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/dlpack.h"

#include <fmt/format.h>

#include <optional>

#include "runtime/base/dtype.h"
#include "runtime/base/failure.h"

// The standard's layout; its own header is not needed.
struct DLManagedTensor {
  struct {
    void* data;
    struct {
      int32_t type, id;
    } device;
    int32_t rank;
    struct {
      uint8_t code, bits;
      uint16_t lanes;
    } dtype;
    int64_t* shape;
    int64_t* strides;  // in elements; null: row-major without gaps
    uint64_t byte_offset;
  } tensor;
  void* context;
  void (*deleter)(DLManagedTensor* self);
};

namespace einc {
namespace {

constexpr int32_t kProcessorMemory = 1, kPinnedMemory = 3;  // pinned for a GPU, and as readable as any other

std::optional<DType> dtype_of_dlpack(uint8_t code, uint8_t bits) {
  enum Code : uint8_t { signed_integer = 0, unsigned_integer = 1, real = 2, bfloat = 4, boolean = 6, f8e4m3fn = 10, f8e5m2 = 12 };
  switch (code) {
    case signed_integer:
      return bits == 64 ? std::optional(DType::i64) : bits == 32 ? std::optional(DType::i32) : std::nullopt;
    case unsigned_integer:
      return bits == 16 ? std::optional(DType::u16) : bits == 8 ? std::optional(DType::u8) : std::nullopt;
    case real:
      return bits == 64   ? std::optional(DType::f64)
             : bits == 32 ? std::optional(DType::f32)
             : bits == 16 ? std::optional(DType::f16)
                          : std::nullopt;
    case bfloat:
      return bits == 16 ? std::optional(DType::bf16) : std::nullopt;
    case boolean:
      return bits == 8 ? std::optional(DType::boolean) : std::nullopt;
    case f8e4m3fn:
      return DType::f8e4m3;
    case f8e5m2:
      return DType::f8e5m2;
    default:
      return std::nullopt;
  }
}

bool is_row_major(const int64_t* strides, const std::vector<int64_t>& shape) {
  if (strides == nullptr) return true;
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0; step *= shape[i])
    if (shape[i] != 1 && strides[i] != step) return false;
  return true;
}

}  // namespace

void* elements_of(DLManagedTensor* tensor, const TensorInfo& info) {
  const auto refuse = [&](const std::string& what) {
    throw RuntimeFailure(FailureKind::data, fmt::format("the DLPack tensor for '{}' {}", info.name, what));
  };
  if (tensor == nullptr) refuse("is null");
  const auto& t = tensor->tensor;
  if (t.device.type != kProcessorMemory && t.device.type != kPinnedMemory)
    refuse(fmt::format("lies on a device of kind {}, not in the processor's memory", t.device.type));
  if (t.dtype.lanes != 1 || dtype_of_dlpack(t.dtype.code, t.dtype.bits) != info.dtype)
    refuse(fmt::format("has type code {} with {} bits and {} lanes, not {}", t.dtype.code, t.dtype.bits, t.dtype.lanes,
                       to_string(info.dtype)));
  if (t.rank < 0) refuse(fmt::format("has rank {}", t.rank));
  const std::vector<int64_t> shape(t.shape, t.shape + (t.shape == nullptr ? 0 : t.rank));
  if (shape != info.shape) refuse(fmt::format("has shape [{}], not [{}]", fmt::join(shape, " "), fmt::join(info.shape, " ")));
  if (!is_row_major(t.strides, shape)) refuse("is not row-major without gaps");
  if (t.data == nullptr && info.count() > 0) refuse("lies at the null address");
  return static_cast<std::byte*>(t.data) + t.byte_offset;
}

void release(DLManagedTensor* tensor) {
  if (tensor != nullptr && tensor->deleter != nullptr) tensor->deleter(tensor);
}

}  // namespace einc
