// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/cubin.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <sstream>

#include "runtime/base/check.h"
#include "runtime/base/failure.h"
#include "runtime/base/on_threads.h"
#include "runtime/cuda/libraries.h"

namespace einc::cuda {
namespace {

constexpr Result kInvalidOption = 5, kCompilation = 6;  // nvrtcResult

// Of a program that NVRTC compiles.
class Compilation {
 public:
  explicit Compilation(const std::string& text) {
    EINC_NVRTC_CALL(nvrtcCreateProgram, &program_, text.c_str(), "einc.cu", 0, nullptr, nullptr);
  }
  ~Compilation() { nvrtc().nvrtcDestroyProgram(&program_); }
  Compilation(const Compilation&) = delete;
  Compilation& operator=(const Compilation&) = delete;

  void compile(const std::vector<std::string>& options) {
    std::vector<const char*> pointers;
    for (const std::string& option : options) pointers.push_back(option.c_str());
    const Result result = nvrtc().nvrtcCompileProgram(program_, static_cast<int>(pointers.size()), pointers.data());
    if (result == kInvalidOption)
      throw RuntimeFailure(FailureKind::resource,
                           fmt::format("this version of NVRTC does not take {}: {}", fmt::join(options, " "), log()));
    EINC_CHECK(result != kCompilation, "NVRTC refuses generated code:\n{}", log());
    check_nvrtc(result, "nvrtcCompileProgram");
  }

  std::string log() const { return text(nvrtc().nvrtcGetProgramLogSize, nvrtc().nvrtcGetProgramLog); }
  std::string cubin() const { return text(nvrtc().nvrtcGetCUBINSize, nvrtc().nvrtcGetCUBIN); }
  std::string ptx() const { return text(nvrtc().nvrtcGetPTXSize, nvrtc().nvrtcGetPTX); }

 private:
  std::string text(Result (*size)(NvrtcProgram, size_t*), Result (*get)(NvrtcProgram, char*)) const {
    size_t bytes = 0;
    check_nvrtc(size(program_, &bytes), "the size of what NVRTC made");
    std::string result(bytes, '\0');
    check_nvrtc(get(program_, result.data()), "what NVRTC made");
    return result;
  }

  NvrtcProgram program_ = nullptr;
};

bool is_ptx(const std::string& arch) { return arch.starts_with("compute_"); }

// A product and a sum are one operation where the text says so (add_product), not where they happen to stand in one kernel: a value has
// the same bits whichever kernel makes it.
std::vector<std::string> options_of(const std::string& arch) {
  // All GPUs of compute capability 9.0 have what is theirs alone: products of four warps.
  std::vector<std::string> options{"--gpu-architecture=" + (arch == "sm_90" ? "sm_90a" : arch), "--std=c++17", "--generate-line-info",
                                   "--fmad=false"};
  if (!is_ptx(arch)) options.emplace_back("--ptxas-options=-v");
  return options;
}

constexpr int KernelUse::*kNumbers[] = {&KernelUse::registers,         &KernelUse::barriers,         &KernelUse::stack_bytes,
                                        &KernelUse::spill_store_bytes, &KernelUse::spill_load_bytes, &KernelUse::shared_bytes};

// One line a kernel, then the code.
std::string to_text(const Cubin& cubin) {
  std::string text = fmt::format("{}\n", cubin.kernels.size());
  for (const KernelUse& kernel : cubin.kernels) {
    text += kernel.name;
    for (const auto number : kNumbers) text += fmt::format(" {}", kernel.*number);
    text += '\n';
  }
  return text + cubin.code;
}

// nullopt: it is no such text.
std::optional<Cubin> from_text(const std::string& text) {
  size_t at = 0, count = 0;
  const auto next_line = [&]() -> std::optional<std::istringstream> {
    const size_t end = text.find('\n', at);
    if (end == std::string::npos) return std::nullopt;
    std::istringstream line(text.substr(at, end - at));
    at = end + 1;
    return line;
  };
  auto first = next_line();
  if (!first || !(*first >> count)) return std::nullopt;
  Cubin cubin;
  for (size_t i = 0; i < count; ++i) {
    auto line = next_line();
    KernelUse kernel;
    if (!line || !(*line >> kernel.name)) return std::nullopt;
    for (const auto number : kNumbers)
      if (!(*line >> kernel.*number)) return std::nullopt;
    cubin.kernels.push_back(std::move(kernel));
  }
  cubin.code = text.substr(at);
  return cubin;
}

// 90 of "sm_90" and of "sm_90a".
int number_of(const std::string& arch) { return std::atoi(arch.c_str() + arch.find('_') + 1); }

}  // namespace

std::string code_for(const std::string& arch) {
  int count = 0;
  EINC_NVRTC_CALL(nvrtcGetNumSupportedArchs, &count);
  std::vector<int> known(static_cast<size_t>(count));
  EINC_NVRTC_CALL(nvrtcGetSupportedArchs, known.data());
  const int wanted = number_of(arch);
  std::erase_if(known, [&](int number) { return number > wanted; });
  const auto newest = std::ranges::max_element(known);
  if (newest == known.end() || *newest == wanted) return arch;
  return fmt::format("compute_{}", *newest);
}

Cubin compile_cubin(const std::string& text, const std::string& arch, FileCache& cache) {
  int major = 0, minor = 0;
  EINC_NVRTC_CALL(nvrtcVersion, &major, &minor);
  const std::vector<std::string> options = options_of(arch);
  const std::string key = fmt::format("cubin NVRTC {}.{} {}\n{}", major, minor, fmt::join(options, " "), text);
  if (const auto found = cache.load(key))
    if (auto cached = from_text(*found)) return std::move(*cached);
  Compilation compilation(text);
  compilation.compile(options);
  Cubin cubin{is_ptx(arch) ? compilation.ptx() : compilation.cubin(), parse_kernel_use(compilation.log())};
  cache.store(key, to_text(cubin));
  return cubin;
}

std::string compile_ptx(const std::string& text, const std::string& arch) {
  Compilation compilation(text);
  compilation.compile(options_of(arch));
  std::string ptx = compilation.ptx();
  ptx.resize(std::strlen(ptx.c_str()));
  return ptx;
}

std::vector<Cubin> compile_cubins(const std::string& prelude, std::span<const std::string> texts, const std::string& arch, FileCache& cache,
                                  int threads) {
  const size_t groups = (texts.size() + kFunctionsPerCubin - 1) / kFunctionsPerCubin;
  std::vector<Cubin> cubins(groups);
  on_threads(groups, threads, [&](size_t group) {
    const auto rest = texts.subspan(group * kFunctionsPerCubin);
    std::string text = prelude;
    for (const std::string& function : rest.first(std::min(kFunctionsPerCubin, rest.size()))) text += "\n" + function;
    cubins[group] = compile_cubin(text, arch, cache);
  });
  return cubins;
}

}  // namespace einc::cuda
