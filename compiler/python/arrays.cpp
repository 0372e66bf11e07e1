// SPDX-License-Identifier: Apache-2.0
#include "compiler/python/arrays.h"

#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <optional>

namespace einc::python {
namespace {

namespace dlpack = nb::dlpack;
using Code = dlpack::dtype_code;

constexpr int kProcessorMemory = 1, kPinnedMemory = 3;  // DLPack's numbers of devices whose memory the processor reads

struct Row {
  DType dtype;
  Code code;
  uint8_t bits;
  bool in_numpy;
};

constexpr Row kRows[] = {
    {DType::f64, Code::Float, 64, true},
    {DType::f32, Code::Float, 32, true},
    {DType::bf16, Code::Bfloat, 16, false},
    {DType::f16, Code::Float, 16, true},
    {DType::f8e4m3, Code::Float8_E4M3FN, 8, false},
    {DType::f8e5m2, Code::Float8_E5M2, 8, false},
    {DType::i64, Code::Int, 64, true},
    {DType::i32, Code::Int, 32, true},
    {DType::u16, Code::UInt, 16, true},
    {DType::u8, Code::UInt, 8, true},
    {DType::boolean, Code::Bool, 8, true},
};

const Row& row_of(DType dtype) {
  for (const Row& row : kRows)
    if (row.dtype == dtype) return row;
  throw Error(ErrorKind::internal, "a tensor of no dtype");
}

[[noreturn]] void refuse(std::string_view tensor, const std::string& what) {
  throw Error(ErrorKind::usage, fmt::format("the array for '{}' {}", tensor, what));
}

}  // namespace

ReadArray array_of(nb::handle object, std::string_view tensor, Access access) {
  ReadArray array;
  if (!nb::try_cast(object, array, /*convert=*/false))
    throw Error(ErrorKind::usage, fmt::format("'{}' is given a {}, which is no array: give one of numpy, torch or jax, or what has "
                                              "__dlpack__ or the buffer protocol",
                                              tensor, nb::type_name(object.type()).c_str()));
  if (array.device_type() != kProcessorMemory && array.device_type() != kPinnedMemory)
    refuse(tensor, fmt::format("lies on a device (DLPack's kind {}), not in the processor's memory", array.device_type()));
  nb::ndarray<> writable;
  if (access == Access::write && !nb::try_cast(object, writable, /*convert=*/false)) refuse(tensor, "may not be written");
  return array;
}

DType dtype_of(const ReadArray& array, std::string_view tensor) {
  const dlpack::dtype dtype = array.dtype();
  for (const Row& row : kRows)
    if (dtype.lanes == 1 && dtype.bits == row.bits && dtype.code == static_cast<uint8_t>(row.code)) return row.dtype;
  refuse(tensor, fmt::format("has elements of {} bits that einc has no dtype for (DLPack's code {}): convert it", dtype.bits, dtype.code));
}

std::vector<int64_t> shape_of(const ReadArray& array) {
  std::vector<int64_t> shape;
  for (size_t i = 0; i < array.ndim(); ++i) shape.push_back(static_cast<int64_t>(array.shape(i)));
  return shape;
}

bool is_row_major(const ReadArray& array) {
  int64_t step = 1;
  for (size_t i = array.ndim(); i-- > 0; step *= static_cast<int64_t>(array.shape(i)))
    if (array.shape(i) != 1 && array.stride(i) != step) return false;
  return true;
}

size_t bytes_of_array(const ReadArray& array) { return array.nbytes(); }

nb::object view_of(const TensorView& tensor, nb::handle owner, Access access) {
  const Row& row = row_of(tensor.dtype());
  const dlpack::dtype dtype{static_cast<uint8_t>(row.code), row.bits, 1};
  const std::vector<size_t> shape(tensor.shape().begin(), tensor.shape().end());
  void* data = const_cast<void*>(tensor.data());
  const auto make = [&]<class... Kind>(Kind...) {
    return nb::cast(nb::ndarray<Kind...>(data, shape.size(), shape.data(), owner, nullptr, dtype, kProcessorMemory),
                    nb::rv_policy::reference);
  };
  if (access == Access::write) return row.in_numpy ? make(nb::numpy()) : make();
  return row.in_numpy ? make(nb::numpy(), nb::ro()) : make(nb::ro());
}

nb::object copy_of(const TensorView& tensor) {
  const auto bytes = static_cast<size_t>(tensor.bytes());
  auto memory = std::make_unique<std::byte[]>(std::max<size_t>(bytes, 1));
  if (bytes > 0) std::memcpy(memory.get(), tensor.data(), bytes);
  const TensorView copy(tensor.dtype(), tensor.shape(), memory.get());
  const nb::capsule owner(memory.release(), [](void* p) noexcept { delete[] static_cast<std::byte*>(p); });
  return view_of(copy, owner, Access::write);
}

}  // namespace einc::python
