// SPDX-License-Identifier: Apache-2.0
#include "compiler/report/lower_bound.h"

#include <algorithm>
#include <unordered_map>

#include "compiler/cost/roofline.h"
#include "compiler/lower/kernel_work.h"

namespace einc {

std::optional<double> contraction_rate(const Graph& graph, const GraphKernel& kernel, const Device& device) {
  if (graph.policy == Policy::tf32) return device.tf32_peak();
  for (const NodeId id : kernel.group.members)
    if (graph[id].op == Op::contract) return device.contraction_peak(working_dtype(graph, id));
  return device.contraction_peak(DType::f32);
}

std::optional<double> lower_bound_seconds(const FormedGraph& formed, const Device& given) {
  Device device = given;
  device.f32 = std::max(given.f32, given.stated_f32);
  device.f64 = std::max(given.f64, given.stated_f32 / 2);  // half the lanes
  device.bf16 = std::max(given.bf16, given.stated_bf16);
  const Graph& graph = formed.bound.graph;
  double products = 0;
  // By place in memory, as an updated param lies where the old one did: the most that one launch reads or writes there. What is
  // gathered of a table may be the same row again and again, and is not counted.
  std::unordered_map<int64_t, int64_t> touched;
  std::unordered_map<const Kernel*, KernelCount> known;
  for (const GraphKernel& launch : formed.list.kernels) {
    if (launch.when == LaunchWhen::unbounded) continue;
    const auto [count, fresh] = known.try_emplace(launch.kernel.get());
    if (fresh) count->second = count_kernel(*launch.kernel);
    if (const int64_t flops = count->second.work.contraction; flops > 0) {
      const auto rate = contraction_rate(graph, launch, device);
      if (!rate) return std::nullopt;
      products += static_cast<double>(flops) / *rate;
    }
    for (size_t b = 0; b < launch.buffers.size(); ++b) {
      if (!launch.buffers[b].valid()) continue;
      const BufferTraffic& bytes = count->second.traffic[b];
      int64_t& most = touched[formed.plan.buffers[formed.plan.holder(launch.buffers[b]).index].offset];
      most = std::max({most, bytes.read, bytes.written});
    }
  }
  int64_t bytes = 0;
  const auto add = [&](NodeId id) {
    const BufferPlan::Buffer& buffer = formed.plan.buffers[formed.plan.holder(id).index];
    const auto found = touched.find(buffer.offset);
    if (buffer.place == BufferPlace::none || found == touched.end() || found->second < buffer.bytes) return;
    bytes += buffer.bytes;
    touched.erase(found);  // each once
  };
  for (uint32_t i = 0; i < graph.size(); ++i)
    if (const Op op = graph.nodes[i].op; op == Op::input || op == Op::param || op == Op::state) add(NodeId{i});
  for (const Output& output : graph.outputs) add(output.node);
  const double beyond_cache = std::max(0.0, static_cast<double>(bytes) - device.cache_bytes);
  return std::max(products, beyond_cache / device.bandwidth);
}

}  // namespace einc
