// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "compiler/driver/bench.h"
#include "compiler/ir/text.h"

namespace einc {
namespace {

const char* distance(double round_trip) {
  if (round_trip > kBusyRoundTrip) return "busy";
  return round_trip > kFarRoundTrip ? "far" : "near";
}

std::string gpu_text(const std::string& name, const CpuPeak& peak, Policy policy) {
  return fmt::format("machine    {}: {:.1f} TFLOP/s {} and {:.1f} bf16 in products of cuBLASLt; {:.0f} GB/s copied\n", name,
                     peak.flops * 1e-12, policy == Policy::tf32 ? "tf32" : "f32", peak.bf16_flops * 1e-12, peak.copy * 1e-9);
}

std::string machine_text(const CpuPeak& peak, int threads) {
  std::string text = fmt::format("machine    {:.0f} GFLOP/s f32", peak.flops * 1e-9);
  if (peak.bf16_flops > 0) text += fmt::format(", {:.0f} bf16", peak.bf16_flops * 1e-9);
  text += fmt::format("; {:.1f} GB/s copied, {:.1f} in a triad, streaming; {} thread{}", peak.copy * 1e-9, peak.triad * 1e-9, threads,
                      threads == 1 ? "" : "s");
  if (peak.round_trip > 0)
    text += fmt::format(
        "\n           {:.0f} ns from core to core and back: {}", peak.round_trip * 1e9,
        peak.round_trip > kBusyRoundTrip ? "busy with other work, so no figure here is the machine's" : distance(peak.round_trip));
  return text + "\n";
}

std::string mfu_text(const BenchResult& r) {
  if (const auto mfu = r.mfu()) return fmt::format("MFU {:.1f} %", 100 * *mfu);
  const bool busy = static_cast<double>(r.executed.contraction) / r.step > r.peak_flops();
  return busy ? "no MFU (the peak was measured while other work ran)" : "no MFU (the step skips work that these rules count)";
}

std::string row_text(const KernelTime& k, double total) {
  const auto flops = static_cast<double>(k.work.flops()), bytes = static_cast<double>(k.work.bytes_read + k.work.bytes_written);
  if (k.seconds <= 0)
    return fmt::format("{:<36} {:>8} {:>9} {:>6} {:>9} {:>7} {:>12}\n", k.label.substr(0, 36), k.launches, "0", "-", "-", "-", "-");
  return fmt::format("{:<36} {:>8} {:>9.3f} {:>5.1f}% {:>9.1f} {:>7.1f} {:>12.3f}\n", k.label.substr(0, 36), k.launches, k.seconds * 1e3,
                     100 * k.seconds / total, flops / k.seconds * 1e-9, bytes / k.seconds * 1e-9, k.predicted * 1e3);
}

double total_seconds(const std::vector<KernelTime>& kernels, size_t from) {
  double total = 0;
  for (size_t i = from; i < kernels.size(); ++i) total += kernels[i].seconds;
  return total;
}

}  // namespace

std::string bench_text(const BenchResult& r, int kernels) {
  const auto [fastest, slowest] = std::minmax_element(r.steps.begin(), r.steps.end());
  const auto giga = [](auto x) { return static_cast<double>(x) * 1e-9; };
  std::string text = r.gpu.empty() ? machine_text(r.peak, r.options.threads) : gpu_text(r.gpu, r.peak, r.policy);
  text += fmt::format("compiled   {:.3f} s; {} launches of {} kernels\n", r.compile_seconds, r.launches, r.kernels.size());
  text += fmt::format("step       {:.3f} ms, median of {} ({:.3f} to {:.3f}); {:.3f} predicted for these peaks\n", r.step * 1e3,
                      r.steps.size(), *fastest * 1e3, *slowest * 1e3, r.predicted * 1e3);
  text += fmt::format(
      "work       {:.3f} GFLOP by the report's rules: {:.1f} GFLOP/s, {}; executed {:.3f} in contractions, {:.3f} in the rest\n",
      giga(r.algorithmic), r.algorithmic / r.step * 1e-9, mfu_text(r), giga(r.executed.contraction),
      giga(r.executed.elementwise + r.executed.reduction));
  text += fmt::format("memory     {:.3f} GB planned; the {} {:.3f} GB, {:.3f} of it there before the first run\n\n", giga(r.memory.planned),
                      r.gpu.empty() ? "process' high-water mark is" : "GPU's memory taken is", giga(r.memory.high_water),
                      giga(r.memory.before));
  const double total = total_seconds(r.kernels, 0);
  text += fmt::format("{:<36} {:>8} {:>9} {:>6} {:>9} {:>7} {:>12}\n", "kernel (its first launch)", "launches", "ms", "share", "GFLOP/s",
                      "GB/s", "predicted ms");
  const size_t shown = std::min(r.kernels.size(), static_cast<size_t>(kernels));
  for (size_t i = 0; i < shown; ++i) text += row_text(r.kernels[i], total);
  if (const double rest = total_seconds(r.kernels, shown); rest > 0)
    text += fmt::format("{:<36} {:>8} {:>9.3f} {:>5.1f}%\n", "others", "", rest * 1e3, 100 * rest / total);
  return text;
}

std::string bench_json(const std::string& model, const BenchResult& r) {
  nlohmann::ordered_json json;
  json["model"] = model;
  json["mode"] = r.options.mode == RunMode::training ? "training" : "inference";
  json["precision"] = std::string(to_string(r.policy));
  json["threads"] = r.options.threads;
  json["target"] = r.gpu.empty() ? "cpu" : "cuda";
  json["machine"] = {
      {"cache_bytes_per_s", r.peak.cache > 0 ? nlohmann::ordered_json(r.peak.cache) : nlohmann::ordered_json(nullptr)},
      {"launch_s", r.peak.launch > 0 ? nlohmann::ordered_json(r.peak.launch) : nlohmann::ordered_json(nullptr)},
      {"small_launch_s", r.peak.small_launch > 0 ? nlohmann::ordered_json(r.peak.small_launch) : nlohmann::ordered_json(nullptr)},
      {"gpu", r.gpu.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(r.gpu)},
      {"f32_flops", r.peak.flops},
      {"bf16_flops", r.peak.bf16_flops > 0 ? nlohmann::ordered_json(r.peak.bf16_flops) : nlohmann::ordered_json(nullptr)},
      {"copy_bytes", r.peak.copy},
      {"triad_bytes", r.peak.triad > 0 ? nlohmann::ordered_json(r.peak.triad) : nlohmann::ordered_json(nullptr)},
      {"round_trip_s", r.peak.round_trip > 0 ? nlohmann::ordered_json(r.peak.round_trip) : nlohmann::ordered_json(nullptr)},
      {"cores", r.peak.round_trip > 0 ? nlohmann::ordered_json(distance(r.peak.round_trip)) : nlohmann::ordered_json(nullptr)}};
  json["compile_s"] = r.compile_seconds;
  json["step_s"] = r.step;
  json["predicted_s"] = r.predicted;
  json["lower_bound_s"] = r.lower_bound ? nlohmann::ordered_json(*r.lower_bound) : nlohmann::ordered_json(nullptr);
  json["steps_s"] = r.steps;
  json["launches_s"] = r.traced;
  json["flops"] = {
      {"step", r.algorithmic},
      {"executed", {{"contraction", r.executed.contraction}, {"elementwise", r.executed.elementwise}, {"reduction", r.executed.reduction}}},
      {"per_second", r.algorithmic / r.step},
      {"mfu", r.mfu() ? nlohmann::ordered_json(*r.mfu()) : nlohmann::ordered_json(nullptr)}};
  json["memory"] = {{"planned", r.memory.planned}, {"before", r.memory.before}, {"high_water", r.memory.high_water}};
  json["kernels"] = nlohmann::ordered_json::array();
  for (const KernelTime& k : r.kernels)
    json["kernels"].push_back({{"symbol", k.symbol},
                               {"label", k.label},
                               {"launches", k.launches},
                               {"time_s", k.seconds},
                               {"flops", k.work.flops()},
                               {"bytes_read", k.work.bytes_read},
                               {"bytes_written", k.work.bytes_written},
                               {"predicted_s", k.predicted}});
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string bench_trace(const BenchResult& r) {
  nlohmann::ordered_json events = nlohmann::ordered_json::array();
  for (int t = 0; t < r.options.threads; ++t)
    events.push_back({{"name", "thread_name"}, {"ph", "M"}, {"pid", 1}, {"tid", t}, {"args", {{"name", fmt::format("thread {}", t)}}}});
  for (const LaunchSpan& span : r.spans)
    events.push_back({{"name", r.labels[span.launch]},
                      {"cat", "kernel"},
                      {"ph", "X"},
                      {"ts", span.begin * 1e6},
                      {"dur", (span.end - span.begin) * 1e6},
                      {"pid", 1},
                      {"tid", span.thread},
                      {"args", {{"launch", span.launch}}}});
  return nlohmann::ordered_json{{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}}.dump(
             -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

}  // namespace einc
