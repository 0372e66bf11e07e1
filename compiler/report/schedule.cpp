// SPDX-License-Identifier: Apache-2.0
#include "compiler/report/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <unordered_map>

#include "compiler/cost/memory.h"
#include "compiler/cost/modules.h"
#include "compiler/lower/kernel_cycles.h"
#include "compiler/lower/scan_schedule.h"
#include "compiler/report/gpu_times.h"
#include "compiler/report/lower_bound.h"
#include "compiler/report/report.h"

namespace einc {
namespace {

// Vector instructions for one element of exp, log, tanh, erf and their like, where other ops take one: the median of twelve functions, 40
// (exp) to 101 (softplus), six calls deep in one kernel, by `einc bench` on one thread of a Zen 5 with AVX-512.
constexpr double kTranscendental = 60;

// Seconds of a launch so small that one thread of a processor does it at once, where the machine's own is not measured: 8 ns a launch of
// deep_linear's step, whose kernels do next to nothing (Zen 5).
constexpr double kSmallLaunchSeconds = 8e-9;

// Multiply-adds are two FLOPs of the sheet's peak; an elementwise op is one instruction, too.
constexpr double kFlopsOfInstruction = 2;

struct Times {
  double contraction = 0, vector = 0, memory = 0, cache = 0;
  bool by_turns = false;        // panels are filled from memory, and then multiplied
  bool products_alone = false;  // what else is computed waits for products
};

class Schedule {
 public:
  Schedule(const FormedGraph& formed, const TimedMachine& machine, std::vector<uint32_t>& row_of)
      : graph_(formed.bound.graph), list_(formed.list), device_(machine.device), processor_(machine.processor), row_of_(row_of) {
    fused_ = chosen(formed, machine);
    done_by_.assign(list_.kernels.size(), nullptr);
    for (const FusedProduct& fused : fused_)
      for (const uint32_t part : fused.parts) done_by_[part] = &fused;
    traffic_ = traffic(formed, fused_);
    kernels_at_.assign(list_.kernels.size(), 0);
    for (uint32_t i = 0; i < kernels_at_.size(); ++i) ++kernels_at_[launch_of(i)];
  }

  std::vector<LaunchReport> run() {
    row_of_.assign(list_.kernels.size(), kNoRow);
    for (uint32_t i = 0; i < list_.kernels.size(); ++i) {
      const GraphKernel& k = list_.kernels[i];
      if (k.when != LaunchWhen::unbounded && !k.kernel->collective && (!done_by_[i] || done_by_[i]->at == i)) add(i);
    }
    for (size_t row = 0; row < result_.size(); ++row) {
      LaunchReport& launch = result_[row];
      launch.traffic.from_memory /= launch.count;
      launch.traffic.to_memory /= launch.count;
      launch.traffic.beyond_core /= launch.count;
      const double starts = starts_[row] / static_cast<double>(launch.count);
      if (const auto timed = device_ ? time_of(first_[row], launch.traffic, starts) : std::nullopt)
        launch.time_s = timed->seconds, launch.bound = timed->bound;
    }
    share();
    return std::move(result_);
  }

 private:
  using Key = std::tuple<Phase, std::string, std::string, std::string, uint32_t, uint32_t, int64_t, int64_t>;

  std::vector<LaunchTraffic> traffic(const FormedGraph& formed, std::span<const FusedProduct> instead) const {
    const auto cache = device_ ? static_cast<int64_t>(device_->cache_bytes) : 0;
    std::vector<LaunchTraffic> launches = launch_traffic(list_, formed.plan, cache, instead);
    // What a core's own cache holds is not read from the last one.
    const auto own = processor_ && device_ ? static_cast<int64_t>(std::max(1.0, device_->threads)) * processor_->level2_bytes : 0;
    const std::vector<LaunchTraffic> beyond = own > 0 ? launch_traffic(list_, formed.plan, own, instead) : launches;
    for (size_t i = 0; i < launches.size(); ++i)
      launches[i].beyond_core =
          own > 0 ? beyond[i].from_memory + beyond[i].to_memory : launches[i].work.bytes_read + launches[i].work.bytes_written;
    return launches;
  }

  // The alternatives that run.
  std::vector<FusedProduct> chosen(const FormedGraph& formed, const TimedMachine& machine) const {
    const std::vector<FusedProduct>& fused = list_.library.fused;
    std::vector<FusedProduct> result;
    if (machine.fused)
      for (const size_t f : *machine.fused) result.push_back(fused[f]);
    if (machine.fused || !device_ || fused.empty()) return result;
    const std::vector<LaunchTraffic> apart = traffic(formed, {}), together = traffic(formed, fused);
    for (const FusedProduct& f : fused) {
      const auto seconds = [&](uint32_t kernel, const LaunchTraffic& traffic) {
        const auto timed = time_of(kernel, traffic);
        return timed ? timed->seconds : 0;
      };
      double parts = 0;
      for (const uint32_t part : f.parts) parts += seconds(part, apart[part]);
      if (seconds(f.plain, together[f.at]) <= parts) result.push_back(f);
    }
    return result;
  }

  uint32_t launch_of(uint32_t index) const { return list_.runs_with.empty() ? index : list_.runs_with[index]; }

  void add(uint32_t index) {
    const FusedProduct* fused = done_by_[index];
    LaunchReport launch = fused ? describe(*fused) : describe(list_.kernels[index]);
    launch.traffic = traffic_[index];
    const KernelWork& work = launch.traffic.work;
    // Kernels of equal layers need not be one object (a first layer's may differ in what it reads): alike is what reads alike.
    const auto [known, fresh] = known_.try_emplace(Key{launch.phase, launch.name, launch.kind, launch.source.file.str(), launch.source.line,
                                                       launch.source.column, work.flops(), work.bytes_read + work.bytes_written},
                                                   static_cast<uint32_t>(result_.size()));
    row_of_[index] = known->second;
    if (fresh) starts_.push_back(0);
    starts_[known->second] += 1.0 / static_cast<double>(kernels_at_[launch_of(index)]);
    if (fresh) {
      first_.push_back(fused ? fused->plain : index);
      result_.push_back(std::move(launch));
      return;
    }
    LaunchReport& first = result_[known->second];
    ++first.count;
    first.traffic.from_memory += traffic_[index].from_memory;
    first.traffic.to_memory += traffic_[index].to_memory;
    first.traffic.beyond_core += traffic_[index].beyond_core;
  }

  // After its product, with what the epilogue does among the other ops.
  LaunchReport describe(const FusedProduct& fused) const {
    GraphKernel all = list_.kernels[fused.plain];
    for (const uint32_t part : fused.parts)
      for (const NodeId id : list_.kernels[part].group.members)
        if (std::ranges::find(all.group.members, id) == all.group.members.end()) all.group.members.push_back(id);
    return describe(all);
  }

  // A kernel is called after the contraction in it, else after what it stores last.
  LaunchReport describe(const GraphKernel& k) const {
    const Kernel& kernel = *k.kernel;
    NodeId main = k.group.stored.empty() ? k.group.members.back() : k.group.stored.back();
    LaunchReport launch;
    launch.kind = "elementwise";
    if (kernel.attention) {
      launch.kind = "attention";
    } else if (kernel.contraction) {
      launch.kind = "contraction";
      for (const NodeId id : k.group.members)
        if (graph_[id].op == Op::contract) main = id;
    } else if (!kernel.reductions.empty()) {
      launch.kind = "reduction";
    }
    const Node& node = graph_[main];
    const std::string module = launch.module = starred(node.origin.module.str());
    launch.name = module + (module.empty() ? "" : ": ") + (kernel.attention ? "attention" : what(node));
    if (kernel.contraction)
      for (const NodeId x : node.operands)
        if (const NodeId param = param_behind(graph_, x); param.valid()) {
          const std::string path = graph_[param].as<ParamAttr>().path.str();
          launch.name += " " + path.substr(path.rfind('.') + 1);
          break;
        }
    const auto others = std::count_if(k.group.members.begin(), k.group.members.end(),
                                      [&](NodeId id) { return id != main && kind_of(graph_[id].op) != OpKind::view; });
    if (others > 0) launch.name += fmt::format(" +{}", others);
    launch.source = node.origin.location;
    launch.phase = node.origin.phase;
    return launch;
  }

  struct Rates {
    double matrix = 0, vector = 0;  // FLOP/s
    double cycles = 0;              // of a processor, a second, of all its threads
  };

  Times unit_times(const KernelWork& work, const Rates& rates) const {
    const double ops = static_cast<double>(work.elementwise - work.transcendental + work.reduction) +
                       kTranscendental * static_cast<double>(work.transcendental);
    return {static_cast<double>(work.contraction) / rates.matrix, kFlopsOfInstruction * ops / rates.vector};
  }

  // By the loops and tiles of the kernel's own plan. The tiles of attention are taken to be at their peak.
  Times loop_times(const GraphKernel& made, const Rates& of_all_threads) const {
    const Kernel& kernel = *made.kernel;
    Rates rates = of_all_threads;
    if (kernel.attention && !made.loops->attention->has_matrix_tiles())
      rates.matrix = std::min(rates.matrix, device_->f32);  // as it multiplies
    if (is_alone(made))
      for (double* rate : {&rates.matrix, &rates.vector, &rates.cycles}) *rate /= std::max(1.0, device_->threads);
    if (kernel.attention) return unit_times(work_of(kernel), rates);
    Times sum;
    if (kernel.scan) {
      for_each_launch(
          kernel.scan->list,
          [&](const GraphKernel& k, int64_t times) {
            const Times once = loop_times(k, of_all_threads);
            sum.contraction += static_cast<double>(times) * once.contraction;
            sum.vector += static_cast<double>(times) * (once.vector + launch_s(k));
          },
          kernel.scan->length);
      return sum;
    }
    const KernelCycles cycles = kernel_cycles(kernel, *made.loops, *processor_);
    sum.by_turns = cycles.in_tiles;
    if (cycles.in_tiles) sum.contraction = static_cast<double>(work_of(kernel).contraction) / rates.matrix * cycles.slowdown;
    sum.vector = cycles.others / rates.cycles;
    return sum;
  }

  static bool is_alone(const GraphKernel& k) { return k.loops && k.loops->alone; }
  double launch_s(const GraphKernel& k) const {
    if (!is_alone(k)) return device_->launch_s;
    return device_->small_launch_s > 0 ? device_->small_launch_s : kSmallLaunchSeconds;
  }

  struct Timed {
    double seconds = 0;
    LaunchBound bound = LaunchBound::none;
  };

  // `starts`: launches per kernel, below one where several kernels are one launch.
  std::optional<Timed> time_of(uint32_t index, const LaunchTraffic& traffic, double starts = 1) const {
    const GraphKernel& k = list_.kernels[index];
    const KernelWork& work = traffic.work;
    const auto matrix = work.contraction > 0 ? contraction_rate(graph_, k, *device_) : std::optional(1.0);
    const auto vector = device_->vector_peak(graph_[k.group.members.back()].type.dtype);
    if (!matrix || !vector) return std::nullopt;
    const bool on_processor = device_->target == DeviceTarget::cpu;
    const Rates rates{*matrix, *vector, processor_ ? device_->f32 / peak_flops_per_cycle(*processor_) : 0};
    Times t;
    if (on_processor) {
      t = processor_ ? loop_times(k, rates) : unit_times(work, rates);
    } else {
      const GpuTimes units = gpu_times(*k.kernel, k.plan.get(), work, list_.library.product(index), *device_, *matrix, *vector);
      t = {.contraction = units.products, .vector = units.vector, .products_alone = units.by_turns};
    }
    t.memory = static_cast<double>(traffic.from_memory + traffic.to_memory) / (device_->bandwidth * device_->sustained_bandwidth);
    if (device_->cache_bandwidth > 0) t.cache = static_cast<double>(traffic.beyond_core) / device_->cache_bandwidth;
    // A processor multiplies and does all else in the same units; a GPU has units for products.
    const double compute = on_processor || t.products_alone ? t.contraction + t.vector : std::max(t.contraction, t.vector);
    const double longest = t.by_turns ? compute + t.memory : std::max({compute, t.memory, t.cache});
    const double start = is_alone(k) ? launch_s(k) : starts * device_->launch_s;
    const LaunchBound bound = longest < start                         ? LaunchBound::launch
                              : longest == 0                          ? LaunchBound::none
                              : compute < std::max(t.memory, t.cache) ? (t.memory >= t.cache ? LaunchBound::memory : LaunchBound::cache)
                              : t.contraction >= t.vector             ? LaunchBound::contraction
                                                                      : LaunchBound::vector;
    return Timed{longest + start, bound};
  }

  void share() {
    const bool timed = device_ && std::all_of(result_.begin(), result_.end(), [](const LaunchReport& l) { return l.time_s.has_value(); });
    const auto part = [&](const LaunchReport& l) {
      return static_cast<double>(l.count) * (timed ? *l.time_s : static_cast<double>(l.traffic.work.flops()));
    };
    double whole = 0;
    for (const LaunchReport& l : result_) whole += part(l);
    if (whole <= 0) return;
    for (LaunchReport& l : result_) l.share = part(l) / whole;
  }

  const Graph& graph_;
  const KernelList& list_;
  const Device* device_;
  const std::optional<Processor> processor_;
  std::vector<FusedProduct> fused_;           // that run instead of their parts
  std::vector<const FusedProduct*> done_by_;  // by launch: one of them
  std::vector<LaunchTraffic> traffic_;
  std::vector<uint32_t>& row_of_;
  std::vector<uint32_t> first_;      // by row: its first launch
  std::vector<double> starts_;       // by row: launches, of those that kernels of several rows are together their part
  std::vector<int64_t> kernels_at_;  // by launch: how many kernels it is
  std::map<Key, uint32_t> known_;
  std::vector<LaunchReport> result_;
};

}  // namespace

std::string_view to_string(LaunchBound bound) {
  switch (bound) {
    case LaunchBound::none:
      return "nothing";
    case LaunchBound::contraction:
      return "contraction";
    case LaunchBound::vector:
      return "vector units";
    case LaunchBound::memory:
      return "memory";
    case LaunchBound::cache:
      return "cache";
    case LaunchBound::launch:
      return "launch";
  }
  return "";
}

std::string what(const Node& node) {
  std::string text = node.origin.label.empty() ? std::string() : starred(node.origin.label.str()) + " ";
  if (node.op == Op::map) return text + std::string(to_string(node.as<MapAttr>().fn));
  if (node.op == Op::reduce) return text + "reduce " + std::string(to_string(node.as<ReduceAttr>().fn));
  return text + std::string(to_string(node.op));
}

std::vector<LaunchReport> schedule_report(const FormedGraph& formed, const TimedMachine& machine, std::vector<uint32_t>& row_of) {
  return Schedule(formed, machine, row_of).run();
}

ExecutedWork executed_work(const KernelList& list, const std::function<bool(size_t)>& counts) {
  ExecutedWork all;
  std::unordered_map<const Kernel*, KernelWork> known;
  for (size_t i = 0; i < list.kernels.size(); ++i) {
    const GraphKernel& k = list.kernels[i];
    if (k.when == LaunchWhen::unbounded || (counts && !counts(i))) continue;
    const auto [work, fresh] = known.try_emplace(k.kernel.get());
    if (fresh) work->second = work_of(*k.kernel);
    all.work += work->second;
    all.flops = all.flops + Rational(work->second.flops());
  }
  return all;
}

}  // namespace einc
