// SPDX-License-Identifier: Apache-2.0
// The attention of an executor: whose, and how a plug-in is called.
#include <fmt/format.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <set>

#include "runtime/base/hash.h"
#include "runtime/cuda/cuda_executor.h"
#include "runtime/cuda/launch_place.h"

namespace einc {
namespace {

using cuda::AlgorithmTable;
using cuda::AttentionLibrary;

// Wherever there is a plan, untimed: to measure a plug-in.
bool always_takes_library() {
  const char* value = std::getenv("EINC_ATTENTION_ALWAYS");
  return value && *value && std::strcmp(value, "0") != 0;
}

}  // namespace

void CudaExecutor::plan_attention() {
  if (attention_) return;
  const cuda::GpuScope scope(*place_.gpu);
  attention_.emplace();
  const AttentionLibrary* library = AttentionLibrary::get();
  if (!library) return;
  std::map<size_t, size_t> part_of;
  std::set<const AttentionLibrary::Plan*> warm;
  for (size_t a = 0; a < executable_.attention.size(); ++a) {
    const CudaAttention& call = executable_.attention[a];
    const AttentionLibrary::Plan& plan = library->plan(call.problem);
    if (!plan.plan || static_cast<int64_t>(plan.workspace_bytes) > executable_.workspace_bytes) continue;
    if (!takes_library(call, *library, plan)) continue;
    // A library may load its kernels with the first run, which a capture forbids.
    if (warm.insert(&plan).second) run_attention(call, *library, plan);
    attention_->emplace(a, &plan);
    for (const uint32_t l : call.parts) part_of[l] = a;
  }
  attention_part_of_ = std::move(part_of);
}

std::vector<size_t> CudaExecutor::library_attention() const {
  std::vector<size_t> list;
  if (attention_)
    for (const auto& [a, plan] : *attention_) list.push_back(a);
  return list;
}

bool CudaExecutor::takes_library(const CudaAttention& call, const AttentionLibrary& library, const AttentionLibrary::Plan& plan) {
  std::string kernels;
  for (const uint32_t l : call.parts) kernels += executable_.texts[program().launches[l].function];
  const std::string_view steps(reinterpret_cast<const char*>(&call.problem), sizeof call.problem);
  const std::string key = fmt::format("{}, {}: {}, as {:016x}, or own kernels {:016x}", place_.gpu->name(), library.name(),
                                      cuda::to_string(call.problem), fnv1a(steps), fnv1a(kernels));
  const auto run_library = [&] { run_attention(call, library, plan); };
  const auto run_own = [&] {
    for (const uint32_t l : call.parts) launch(l, Products::apart);
  };
  const auto faster = [&] {
    fill_operands(call);
    const double theirs = seconds(run_library), ours = seconds(run_own);
    return theirs < ours ? AlgorithmTable::Way::library : AlgorithmTable::Way::own;
  };
  return always_takes_library() || AlgorithmTable::get().way_of(key, faster) == AlgorithmTable::Way::library;
}

// What nobody has made yet, for runs that are timed.
void CudaExecutor::fill_operands(const CudaAttention& call) {
  const auto fill = [&](const CudaAttention::Operand& operand) {
    const ExecutableBuffer& buffer = program().buffers[operand.buffer];
    if (!is_source(buffer.role)) cuda::fill_random(addresses_[operand.buffer], static_cast<size_t>(buffer.bytes), stream());
  };
  for (const auto* operand : {&call.q, &call.k, &call.v}) fill(*operand);
  if (call.problem.direction == EINC_ATTENTION_BACKWARD) fill(call.o), fill(call.d_o), fill(call.log_sum);
}

void CudaExecutor::run_attention(const CudaAttention& call, const AttentionLibrary& library, const AttentionLibrary::Plan& plan) {
  const auto address = [&](const CudaAttention::Operand& operand) {
    return addresses_[operand.buffer] + static_cast<uint64_t>(operand.offset * bytes_of(program().buffers[operand.buffer].dtype));
  };
  const size_t at = call.at();
  einc_attention_buffers buffers{address(call.q), address(call.k), address(call.v), address(call.o), 0, 0, 0, 0, 0};
  const bool backward = call.problem.direction == EINC_ATTENTION_BACKWARD;
  if (backward) {
    buffers.d_o = address(call.d_o);
    buffers.d_q = address(call.d_q), buffers.d_k = address(call.d_k), buffers.d_v = address(call.d_v);
  }
  if (backward || call.problem.keeps_log_sum) buffers.log_sum = address(call.log_sum);
  library.run(plan, buffers, place_.workspace ? place_.workspace->get() : 0, stream(), place_of(program().launches[at]));
}

}  // namespace einc
