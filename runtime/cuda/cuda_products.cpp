// SPDX-License-Identifier: Apache-2.0
// The products of an executor: which algorithms, and which with epilogues.
#include <fmt/format.h>

#include "runtime/base/failure.h"
#include "runtime/base/hash.h"
#include "runtime/cuda/cold_timer.h"
#include "runtime/cuda/cuda_executor.h"
#include "runtime/cuda/launch_place.h"

namespace einc {
cuda::GemmPlan CudaExecutor::plan(const LibraryProduct& gemm, size_t index) {
  const auto is_free = [&](uint32_t buffer) { return !is_source(program().buffers[buffer].role); };
  const cuda::GemmWorkspace workspace{place_.workspace ? place_.workspace->get() : 0, static_cast<size_t>(executable_.workspace_bytes)};
  return {gemm, addresses_, workspace, cuda::AlgorithmTable::get(), stream(), is_free, place_of(program().launches[index])};
}

void CudaExecutor::plan_gemms() {
  if (!gemms_.empty()) return;
  const cuda::GpuScope scope(*place_.gpu);
  upload_tables();  // for the kernels that are measured
  for (size_t l = 0; l < executable_.calls.size(); ++l)
    if (const auto& gemm = executable_.calls[l].gemm) gemms_.emplace(l, plan(*gemm, l));
  plan_fused();
}

// cuBLASLt may have no epilogue of a kind, or none for these matrices: the launches do the same.
void CudaExecutor::plan_fused() {
  for (size_t f = 0; f < executable_.fused.size(); ++f) {
    const CudaFusedProduct& fused = executable_.fused[f];
    try {
      cuda::GemmPlan made = plan(fused.gemm, fused.at);
      if (!takes_together(fused, made)) continue;
      together_.emplace(f, std::move(made));
    } catch (const RuntimeFailure&) {
      continue;
    }
    for (const uint32_t l : fused.parts) part_of_[l] = f;
  }
}

std::vector<size_t> CudaExecutor::fused_products() const {
  std::vector<size_t> list;
  for (const auto& [f, plan] : together_) list.push_back(f);
  return list;
}

bool CudaExecutor::takes_together(const CudaFusedProduct& fused, const cuda::GemmPlan& plan) {
  using cuda::AlgorithmTable;
  std::string kernels;
  for (const uint32_t l : fused.parts)
    if (l != fused.product) kernels += executable_.texts[program().launches[l].function];
  const std::string key = fmt::format("{}, or apart with {:016x}", plan.key(), fnv1a(kernels));
  return AlgorithmTable::get().way_of(key, [&] {
    // A sum over microbatches lies in its state: what is timed would add to it.
    const uint32_t result = fused.gemm.result.buffer;
    std::optional<cuda::HeldMemory> held;
    if (const ExecutableBuffer& b = program().buffers[result]; is_source(b.role))
      held.emplace(addresses_[result], static_cast<size_t>(b.bytes), stream());
    const double together = seconds([&] { run_together(fused, plan); });
    const double apart = seconds([&] {
      for (const uint32_t l : fused.parts) launch(l, Products::apart);
    });
    if (held) held->put_back(stream());
    return together <= apart ? AlgorithmTable::Way::together : AlgorithmTable::Way::apart;
  }) == AlgorithmTable::Way::together;
}

double CudaExecutor::seconds(const std::function<void()>& work) const { return cuda::ColdTimer(stream()).seconds(work); }

void CudaExecutor::run_together(const CudaFusedProduct& fused, const cuda::GemmPlan& plan) {
  if (fused.cast) call_kernel(fused.at, fused.cast->function, fused.cast->grid, {addresses_[fused.cast->from], addresses_[fused.cast->to]});
  plan.run(stream(), place_of(program().launches[fused.product]));
}

void CudaExecutor::launch(size_t index, Products products) {
  if (executable_.calls[index].done_before) return;
  if (const auto part = part_of_.find(index); products == Products::as_chosen && part != part_of_.end()) {
    const CudaFusedProduct& fused = executable_.fused[part->second];
    if (index == fused.at) run_together(fused, together_.at(part->second));
    return;
  }
  if (const auto part = attention_part_of_.find(index); products == Products::as_chosen && part != attention_part_of_.end()) {
    const CudaAttention& call = executable_.attention[part->second];
    if (index == call.at()) run_attention(call, *cuda::AttentionLibrary::get(), *attention_->at(part->second));
    return;
  }
  if (program().launches[index].scan >= 0) {
    LaunchNumbers next{first_key_[index], first_number_[index]};
    run_scan(program(), addresses_, program().launches[index], {}, next);
  } else if (const auto gemm = gemms_.find(index); gemm != gemms_.end())
    gemm->second.run(stream(), place_of(program().launches[index]));
  else
    launch_kernel(index);
}

}  // namespace einc
