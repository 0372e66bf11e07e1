// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/libraries.h"

#include <fmt/format.h>

#include <type_traits>

#include "runtime/base/failure.h"
#include "runtime/cuda/open_library.h"

namespace einc::cuda {
namespace {

template <class Function>
void take(const OpenLibrary& library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(library.function(name));
}

DriverTable open_driver() {
  const OpenLibrary library({"libcuda.so.1"}, "NVIDIA's driver");
  DriverTable table;
#define EINC_TAKE(name, arguments) take(library, #name, table.name);
  EINC_CUDA_DRIVER(EINC_TAKE)
  return table;
}

// 0 without a driver: code is made for other machines then.
int driver_version() {
  int version = 0;
  try {
    EINC_CUDA(cuDriverGetVersion, &version);
  } catch (const RuntimeFailure&) {
    return 0;
  }
  return version;
}

OpenLibrary open_of_toolkit(const std::string& name, const char* part) {
  const int driver = driver_version();
  std::vector<std::string> names;
  for (const int version : usable_cuda_versions(driver)) names.push_back(fmt::format("{}.so.{}", name, version));
  const std::string taken = driver == 0 ? "" : fmt::format(" (the driver takes CUDA up to {}.{})", driver / 1000, driver % 1000 / 10);
  return {names, fmt::format("the CUDA toolkit, as {}{}", part, taken)};
}

NvrtcTable open_nvrtc() {
  const OpenLibrary library = open_of_toolkit("libnvrtc", "NVRTC");
  NvrtcTable table;
  EINC_NVRTC(EINC_TAKE)
  take(library, "nvrtcGetErrorString", table.nvrtcGetErrorString);
  return table;
}

LtTable open_cublaslt() {
  const OpenLibrary library = open_of_toolkit("libcublasLt", "cuBLAS");
  LtTable table;
  EINC_CUBLASLT(EINC_TAKE)
#undef EINC_TAKE
  take(library, "cublasLtGetStatusName", table.cublasLtGetStatusName);
  take(library, "cublasLtGetVersion", table.cublasLtGetVersion);
  return table;
}

}  // namespace

std::vector<int> usable_cuda_versions(int driver) {
  if (driver > 0 && driver < 13000) return {12};
  return {13, 12};
}

const DriverTable& driver() {
  static const DriverTable table = open_driver();
  return table;
}

const NvrtcTable& nvrtc() {
  static const NvrtcTable table = open_nvrtc();
  return table;
}

const LtTable& cublaslt() {
  static const LtTable table = open_cublaslt();
  return table;
}

bool has_nvrtc() {
  try {
    nvrtc();
    return true;
  } catch (const RuntimeFailure&) {
    return false;
  }
}

void check(Result result, const char* call, const std::string& where) {
  if (result == 0) return;
  const char *name = nullptr, *text = nullptr;
  if (driver().cuGetErrorName(result, &name) != 0) name = nullptr;
  if (driver().cuGetErrorString(result, &text) != 0) text = nullptr;
  throw RuntimeFailure(FailureKind::resource,
                       fmt::format("the GPU failed: {}: {} ({}){}", call, name ? name : fmt::format("error {}", result),
                                   text ? text : "unknown to this driver", where));
}

void check_nvrtc(Result result, const char* call) {
  if (result != 0) throw RuntimeFailure(FailureKind::resource, fmt::format("{}: {}", call, nvrtc().nvrtcGetErrorString(result)));
}

void check_cublaslt(Result result, const char* call, const std::string& where) {
  if (result != 0)
    throw RuntimeFailure(FailureKind::resource,
                         fmt::format("cuBLASLt failed: {}: {}{}", call, cublaslt().cublasLtGetStatusName(result), where));
}

}  // namespace einc::cuda
