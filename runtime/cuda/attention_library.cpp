// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/attention_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <type_traits>

#include "runtime/base/failure.h"
#include "runtime/cuda/device.h"

namespace einc::cuda {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVariable = "EINC_ATTENTION_PLUGIN";
constexpr const char* kFile = "libeinc_cudnn.so";

static_assert(std::has_unique_object_representations_v<einc_attention_steps>);
static_assert(sizeof(einc_attention_problem) == 8 * (13 + 9 * 3));

std::string file_beside_us() {
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& file : {folder / kFile, folder.parent_path() / "lib" / kFile})
    if (!error && fs::exists(file, error)) return file;
  return "";
}

std::unique_ptr<const AttentionLibrary> open_any() {
  const char* given = std::getenv(kVariable);
  const std::string file = given ? given : file_beside_us();
  if (file.empty()) return nullptr;
  try {
    return std::make_unique<const AttentionLibrary>(file);
  } catch (const RuntimeFailure& failure) {
    fmt::print(stderr, "warning: {}; attention is left to einc's own kernels\n", failure.what());
    return nullptr;
  }
}

}  // namespace

const AttentionLibrary* AttentionLibrary::get() {
  static const AttentionLibrary* const library = open_any().release();  // to the process' end: what it stands on may be gone before statics
  return library;
}

AttentionLibrary::AttentionLibrary(const std::string& file) {
  const auto failure = [&](const std::string& why) {
    return RuntimeFailure(FailureKind::resource, fmt::format("no attention plug-in in '{}': {}", file, why));
  };
  void* handle = dlopen(fs::absolute(file).c_str(), RTLD_NOW | RTLD_LOCAL);  // open until the process ends
  if (!handle) throw failure(fs::exists(file) ? dlerror() : "there is no such file");
  const auto take = [&](const char* name, auto*& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
    if (!function) throw failure(fmt::format("it has no {}", name));
  };
#define EINC_ATTENTION_TAKE(name, result, arguments) take("einc_attention_" #name, name##_);
  EINC_ATTENTION_FUNCTIONS(EINC_ATTENTION_TAKE)
#undef EINC_ATTENTION_TAKE
  if (abi_() != EINC_ATTENTION_ABI) throw failure(fmt::format("it is of interface {}, this is {}", abi_(), EINC_ATTENTION_ABI));
  const char* version = version_();
  if (!version) throw failure(error_());
  name_ = version;
}

AttentionLibrary::~AttentionLibrary() {
  for (const auto& [problem, plan] : plans_)
    if (plan.plan) destroy_(plan.plan);
}

const AttentionLibrary::Plan& AttentionLibrary::plan(const einc_attention_problem& problem) const {
  const std::lock_guard lock(mutex_);
  const auto [known, fresh] = plans_.try_emplace(std::string(reinterpret_cast<const char*>(&problem), sizeof problem));
  Plan& plan = known->second;
  if (!fresh) return plan;
  std::optional<GpuScope> scope;
  try {
    scope.emplace(Gpu::current());
  } catch (const RuntimeFailure&) {
    // The library may know a GPU that is not here, and otherwise says that there is none.
  }
  plan.plan = create_(&problem);
  if (plan.plan) {
    plan.workspace_bytes = workspace_(plan.plan);
    return plan;
  }
  plan.refusal = error_();
  fmt::print(stderr, "warning: {} refuses attention, {}: {}; einc's own kernels compute it\n", name_, to_string(problem), plan.refusal);
  return plan;
}

void AttentionLibrary::run(const Plan& plan, const einc_attention_buffers& buffers, DevicePointer workspace, Stream stream,
                           const std::string& where) const {
  if (run_(plan.plan, &buffers, workspace, stream) != 0)
    throw RuntimeFailure(FailureKind::resource, fmt::format("{} failed: {}{}", name_, error_(), where));
}

std::string to_string(const einc_attention_problem& p) {
  return fmt::format("{} {} {} x {}:{} heads, {} queries, {} keys, {}:{} wide{}",
                     p.direction == EINC_ATTENTION_FORWARD ? "forward" : "backward", p.dtype == EINC_ATTENTION_BF16 ? "bf16" : "f16",
                     p.batch, p.query_heads, p.key_heads, p.queries, p.keys, p.head_size, p.value_size,
                     p.mask == EINC_ATTENTION_CAUSAL ? ", causal" : "");
}

}  // namespace einc::cuda
