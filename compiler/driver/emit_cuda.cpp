// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/emit_cuda.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/library/map_gemm.h"
#include "runtime/cuda/cubin.h"
#include "runtime/data/file.h"

namespace einc {
namespace {

std::string launch_text(const Launch& launch, const CudaGrid& grid, const std::string& number) {
  std::string text = fmt::format("// launch {}: {}{}{}", number, launch.label, launch.location.empty() ? "" : ", ", launch.location);
  text += fmt::format("; {} blocks of {}", grid.blocks[0], grid.threads[0]);
  if (grid.threads[1] > 1) text += fmt::format(" x {}", grid.threads[1]);
  text += " threads";
  if (grid.shared_bytes > 0) text += fmt::format(", {} bytes of shared memory", grid.shared_bytes);
  return text + "\n";
}

// Of all launches of a function, those in iterations too.
std::string launches_of(uint32_t function, const CudaExecutable& executable, const Executable& program, const std::string& before) {
  std::string text;
  for (size_t i = 0; i < program.launches.size(); ++i) {
    const Launch& launch = program.launches[i];
    const std::string number = before + std::to_string(i);
    if (launch.scan >= 0) {
      text += launches_of(function, executable, program.scans[static_cast<size_t>(launch.scan)].body, number + ".");
    } else if (launch.function == function) {
      if (!before.empty()) text += launch_text(launch, executable.grids[function], number);
      if (before.empty() && !executable.calls[i].gemm) text += launch_text(launch, executable.calls[i].grid, number);
    }
  }
  return text;
}

std::string source_of(const CudaExecutable& executable) {
  std::string text = executable.prelude;
  for (const std::string& function : executable.texts) text += "\n" + function;
  return text;
}

// "; with launch 10, where that is faster: plus a bias, GELU".
std::string epilogue_text(const CudaExecutable& executable, size_t product) {
  for (const CudaFusedProduct& fused : executable.fused) {
    if (fused.product != product) continue;
    std::vector<uint32_t> others = fused.parts;
    std::erase(others, fused.product);
    return fmt::format("; as one with launch {}, where that is no slower: {}", fmt::join(others, ", "), describe(fused.gemm.epilogue));
  }
  return "";
}

void print_use(const std::vector<cuda::KernelUse>& kernels) {
  for (const cuda::KernelUse& k : kernels) {
    std::string spills;
    if (k.spill_store_bytes + k.spill_load_bytes > 0) spills = fmt::format(", {} bytes spilled", k.spill_store_bytes);
    fmt::print("{:<6} {:>3} registers, {} bytes of shared memory{}\n", k.name, k.registers, k.shared_bytes, spills);
  }
}

}  // namespace

std::string cuda_text(const CudaExecutable& executable) {
  std::string text = executable.prelude;
  for (size_t f = 0; f < executable.texts.size(); ++f) {
    text += "\n" + launches_of(static_cast<uint32_t>(f), executable, executable.program, "");
    text += executable.texts[f];
  }
  return text;
}

std::string explain_gemm(const CudaProgramText& program) {
  std::string text;
  for (size_t i = 0; i < program.list.kernels.size(); ++i) {
    const Kernel& kernel = *program.list.kernels[i].kernel;
    if (!kernel.contraction || kernel.contraction->rows.empty() || kernel.contraction->columns.empty()) continue;
    const Launch& launch = program.executable.program.launches[i];
    text += fmt::format("launch {}: {}{}{}: ", i, launch.label, launch.location.empty() ? "" : ", ", launch.location);
    const GemmMapping mapping = map_gemm(kernel);
    if (program.executable.calls[i].gemm)
      text += "cuBLASLt, " + describe(*mapping.gemm) + epilogue_text(program.executable, i);
    else
      text += fmt::format("a kernel of its own: {}", mapping.gemm ? "it is small" : mapping.reason);
    text += "\n";
  }
  return text.empty() ? "There are no contractions.\n" : text;
}

ExitStatus emit_cuda(const CudaExecutable& executable, const std::string& kind, const CudaRequest& request) {
  if (kind == "cuda") {
    fmt::print("{}", cuda_text(executable));
    return ExitStatus::done;
  }
  if (kind == "ptx") {
    fmt::print("{}", cuda::compile_ptx(source_of(executable), request.arch));
    return ExitStatus::done;
  }
  FileCache cache(FileCache::default_folder());
  const cuda::Cubin cubin = cuda::compile_cubin(source_of(executable), request.arch, cache);
  const std::span<const std::byte> piece(reinterpret_cast<const std::byte*>(cubin.code.data()), cubin.code.size());
  write_file(request.path, {&piece, 1});
  print_use(cubin.kernels);
  return ExitStatus::done;
}

}  // namespace einc
