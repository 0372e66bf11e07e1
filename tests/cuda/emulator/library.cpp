// SPDX-License-Identifier: Apache-2.0
// Kernels of the emulated GPU: shared libraries of the host, and how they are launched.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "emulator.h"
#include "gpu.h"
#include "kernel_file.h"
#include "scheduler.h"

namespace einc::cuda {

struct KernelObject {
  std::string name;
  EmuCall* call = nullptr;
  const int* parameter_bytes = nullptr;  // ended by 0
  EmuShared static_shared{};
  unsigned max_shared = 48 << 10;
};
struct LibraryObject {
  void* handle = nullptr;
  EmuShared static_shared{};
  std::map<std::string, std::unique_ptr<KernelObject>> kernels;
};

}  // namespace einc::cuda

namespace emulator {
namespace {

using namespace einc::cuda;

template <class Function>
Function* find(const Library library, const std::string& name) {
  return reinterpret_cast<Function*>(dlsym(library->handle, name.c_str()));
}

// From a file of a name of its own, which the loader knows it by; it is gone from the disk at once.
void* open_library(std::string_view code) {
  static unsigned number = 0;
  const std::string stem = "einc-kernels-" + std::to_string(getpid()) + "-" + std::to_string(number++) + "-XXXXXX";
  std::string name = (std::filesystem::temp_directory_path() / stem).string();
  const int file = mkstemp(name.data());
  if (file < 0) return nullptr;
  const bool whole = write(file, code.data(), code.size()) == static_cast<ssize_t>(code.size());
  close(file);
  void* handle = whole ? dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  unlink(name.c_str());
  return handle;
}

// The driver copies arguments when a kernel is launched.
struct Arguments {
  std::vector<std::vector<unsigned char>> values;
  std::vector<void*> pointers;
};

std::shared_ptr<Arguments> copied(const KernelObject& kernel, void** arguments) {
  auto copy = std::make_shared<Arguments>();
  for (const int* bytes = kernel.parameter_bytes; *bytes != 0; ++bytes, ++arguments) {
    const auto* first = static_cast<const unsigned char*>(*arguments);
    copy->values.emplace_back(first, first + *bytes);
  }
  for (auto& value : copy->values) copy->pointers.push_back(value.data());
  return copy;
}

}  // namespace
}  // namespace emulator

using namespace einc::cuda;
using emulator::Call;

extern "C" {

Result cuLibraryLoadData(Library* library, const void* code, int*, void**, unsigned, int*, void**, unsigned) {
  const Call call("cuLibraryLoadData");
  if (const Result refused = emulator::unsafe_in_capture("kernels are loaded"); refused != 0) return refused;
  const auto file = emulator::read_kernel_file(code);
  if (!file) return emulator::fail(emulator::kInvalidImage, "no kernels that the emulated NVRTC made");
  void* handle = emulator::open_library(*file);
  if (!handle) return emulator::fail(emulator::kInvalidImage, "the kernels' library cannot be opened");
  *library = new LibraryObject{handle, {}, {}};
  (*library)->static_shared = emulator::find<EmuBind>(*library, "einc_bind")(emulator::scheduler());
  return 0;
}

Result cuLibraryUnload(Library library) {
  const Call call("cuLibraryUnload");
  if (const Result refused = emulator::unsafe_in_capture("kernels are unloaded"); refused != 0) return refused;
  dlclose(library->handle);
  delete library;
  return 0;
}

Result cuLibraryGetKernel(Kernel* kernel, Library library, const char* name) {
  const Call call("cuLibraryGetKernel");
  std::unique_ptr<KernelObject>& held = library->kernels[name];
  if (!held) {
    EmuCall* function = emulator::find<EmuCall>(library, std::string("einc_call_") + name);
    if (!function) return emulator::fail(emulator::kNotFound, std::string("there is no kernel ") + name);
    const int* bytes = emulator::find<const int*()>(library, std::string("einc_bytes_") + name)();
    held = std::make_unique<KernelObject>(KernelObject{name, function, bytes, library->static_shared});
  }
  *kernel = held.get();
  return 0;
}

Result cuKernelSetAttribute(int attribute, int value, Kernel kernel, Device) {
  const Call call("cuKernelSetAttribute");
  if (attribute != kMaxDynamicSharedBytes || value > 232448)
    return emulator::fail(emulator::kInvalidValue, "an attribute of a kernel out of range");
  kernel->max_shared = static_cast<unsigned>(value);
  return 0;
}

Result cuLaunchKernel(Kernel kernel, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z, unsigned threads_x, unsigned threads_y,
                      unsigned threads_z, unsigned shared_bytes, Stream stream, void** arguments, void**) {
  const Call call("cuLaunchKernel");
  const emulator::Shape shape{{blocks_x, blocks_y, blocks_z}, {threads_x, threads_y, threads_z}, shared_bytes};
  const unsigned long long threads = 1ull * threads_x * threads_y * threads_z, blocks = 1ull * blocks_x * blocks_y * blocks_z;
  if (threads == 0 || threads > 1024 || threads_z > 64 || blocks == 0 || blocks_x > 2147483647u || blocks_y > 65535 || blocks_z > 65535)
    return emulator::fail(emulator::kInvalidValue, kernel->name + ": a launch of this shape");
  if (shared_bytes > kernel->max_shared) return emulator::fail(emulator::kInvalidValue, kernel->name + ": too much shared memory");
  if (const Result refused = emulator::needs_context(); refused != 0) return refused;
  emulator::note_kernel(emulator::current_context());
  return emulator::give(stream, [=, copy = emulator::copied(*kernel, arguments)] {
    emulator::Gpu& gpu = emulator::gpu();
    gpu.threads += threads * blocks;
    std::string failure = emulator::run_kernel(shape, kernel->static_shared, gpu.order, kernel->call, copy->pointers.data());
    if (failure.empty()) failure = gpu.memory.overwritten();
    return failure.empty() ? 0 : emulator::fail(emulator::kLaunchFailed, kernel->name + ", " + failure);
  });
}

}  // extern "C"
