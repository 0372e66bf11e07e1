// SPDX-License-Identifier: Apache-2.0
#include "compiler/cost/estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace einc {
namespace {

constexpr double kSecondsPerDay = 86400;

struct OptimizerRow {
  std::string_view name;
  double state;  // bytes of f32 (or 8-bit) moments for each parameter
};
constexpr std::array kOptimizers{OptimizerRow{"sgd", 0},     OptimizerRow{"momentum", 4}, OptimizerRow{"adagrad", 4},
                                 OptimizerRow{"rmsprop", 4}, OptimizerRow{"adam", 8},     OptimizerRow{"adamw", 8},
                                 OptimizerRow{"adam8bit", 2}};

DType contraction_dtype(std::string_view precision) {
  if (precision == "bf16") return DType::bf16;
  if (precision == "f16") return DType::f16;
  if (precision == "fp8") return DType::f8e4m3;
  return DType::f32;
}

// The peak of fp8 products is that of bf16 where a device has no fp8: no estimate for fp8 should be made from it.
bool lacks_fp8(const EstimateRequest& request) {
  return request.precision == "fp8" && request.device && !request.peak && request.device->fp8 == 0;
}

std::optional<double> peak_of(const EstimateRequest& request) {
  if (request.peak) return request.peak;
  if (request.device && request.precision == "tf32") return request.device->tf32_peak();
  return request.device ? request.device->contraction_peak(contraction_dtype(request.precision)) : std::nullopt;
}

std::optional<int64_t> whole(const std::optional<double>& value) {
  constexpr double kLimit = 9.2e18;
  if (!value || !(*value >= 1 && *value < kLimit) || *value != std::floor(*value)) return std::nullopt;
  return static_cast<int64_t>(*value);
}

std::optional<Measured> measure(const EstimateRequest& request) {
  Measured m;
  const double devices = request.devices.value_or(1);
  const auto peak = peak_of(request);
  const auto step = request.sizes.tokens_per_step();
  if (request.seconds && request.flops) {
    m.flops_per_second = *request.flops / (*request.seconds * devices);
    if (peak) m.utilisation = *m.flops_per_second / *peak;
  }
  if (request.tokens_per_second)
    m.tokens_per_second = request.tokens_per_second;
  else if (request.device_hours && request.tokens)
    m.tokens_per_second = *request.tokens / (*request.device_hours * 3600);
  else if (request.seconds && step)
    m.tokens_per_second = step->to_double() / (*request.seconds * devices);
  if (!m.flops_per_second && !m.tokens_per_second) return std::nullopt;
  if (m.tokens_per_second && request.tokens) {
    const double seconds = *request.tokens / *m.tokens_per_second;
    if (request.devices) m.days = seconds / devices / kSecondsPerDay;
    m.device_hours = seconds / 3600;
  }
  return m;
}

std::vector<RuleRow> rule_rows(const EstimateRequest& request, const std::optional<Measured>& measured) {
  if (!request.sizes.layers && !measured) return {};
  TransformerSizes sizes = request.sizes;
  sizes.params = whole(request.parameters);
  const auto peak = peak_of(request);
  std::vector<RuleRow> rows;
  for (RuleValue& value : known_rules(sizes)) {
    RuleRow row{std::move(value), {}, {}, {}};
    const RuleKind kind = row.rule.rule->kind;
    if (kind == RuleKind::step_flops || kind == RuleKind::hardware_flops) {
      const double per_token = row.rule.value.to_double();
      if (request.parameters) row.to_6nd = per_token / (6 * *request.parameters);
      if (request.flops && row.rule.step) row.to_flops = row.rule.step->to_double() / *request.flops;
      if (measured && measured->tokens_per_second && peak) row.utilisation = per_token * *measured->tokens_per_second / *peak;
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

TrainingTime training_time(double flops, double devices, double peak, double mfu) {
  TrainingTime time;
  const double rate = devices * peak * mfu;
  time.flops = flops;
  time.flops_per_day = rate * kSecondsPerDay;
  time.seconds = flops / rate;
  time.days = time.seconds / kSecondsPerDay;
  time.device_hours = time.seconds * devices / 3600;
  return time;
}

std::string_view describe(StoragePolicy policy) {
  switch (policy) {
    case StoragePolicy::f32:
      return "f32 weights and gradients";
    case StoragePolicy::low_copy:
      return "f32 masters and gradients, 16-bit copy";
    case StoragePolicy::low_gradients:
      return "16-bit weights and gradients, f32 masters";
  }
  return "";
}

std::string_view short_name(StoragePolicy policy) {
  switch (policy) {
    case StoragePolicy::f32:
      return "all f32";
    case StoragePolicy::low_copy:
      return "f32 and a 16-bit copy";
    case StoragePolicy::low_gradients:
      return "16-bit, f32 masters";
  }
  return "";
}

std::optional<OptimizerBytes> optimizer_bytes(std::string_view optimizer, StoragePolicy policy) {
  for (const OptimizerRow& row : kOptimizers) {
    if (row.name != optimizer) continue;
    OptimizerBytes bytes{row.name, 4, 4, row.state, 0};
    if (policy != StoragePolicy::f32) bytes.copy = 2;
    if (policy == StoragePolicy::low_gradients) bytes.gradient = 2;
    return bytes;
  }
  return std::nullopt;
}

double zero_bytes(double parameters, double devices, int stage) {
  const double n = devices;
  const double weights = 2 * parameters, gradients = 2 * parameters, states = 12 * parameters;
  return (stage >= 3 ? weights / n : weights) + (stage >= 2 ? gradients / n : gradients) + (stage >= 1 ? states / n : states);
}

namespace {

void check_heads(const TransformerSizes& sizes, std::vector<std::string>& problems) {
  if (sizes.kv_heads && sizes.heads && (*sizes.kv_heads > *sizes.heads || *sizes.heads % *sizes.kv_heads != 0))
    problems.push_back(fmt::format("--kv-heads {} do not divide --heads {}: each head of keys and values serves as many heads of queries",
                                   *sizes.kv_heads, *sizes.heads));
  if (sizes.experts && sizes.used_experts && *sizes.used_experts > *sizes.experts)
    problems.push_back(fmt::format("--used-experts {} are more than --experts {}", *sizes.used_experts, *sizes.experts));
}

// What makes numbers of the estimate doubtful.
void warn(const EstimateRequest& request, Estimate& result) {
  const auto above_peak = [&](const RuleRow& row) {
    return row.rule.rule->kind == RuleKind::step_flops && row.utilisation.value_or(0) > 1;
  };
  const bool measured = result.measured && result.measured->utilisation.value_or(0) > 1;
  if (measured || std::any_of(result.rules.begin(), result.rules.end(), above_peak))
    result.warnings.emplace_back(
        "a utilisation above 1: no device is faster than its peak; the time, --devices or --precision is not what was measured");
  if (!result.rules.empty() && request.sizes.kv_heads && request.sizes.heads && *request.sizes.kv_heads < *request.sizes.heads)
    result.warnings.push_back(fmt::format(
        "the rules are those of multi-head attention: with {} heads of keys and values for {} of queries all but the key-value cache and "
        "those of --params alone count too much",
        *request.sizes.kv_heads, *request.sizes.heads));
}

}  // namespace

std::vector<std::string> check_estimate(const EstimateRequest& request) {
  std::vector<std::string> problems;
  auto positive = [&](const std::optional<double>& value, std::string_view option) {
    if (value && !(*value > 0 && std::isfinite(*value))) problems.push_back(fmt::format("{} must be a positive number", option));
  };
  positive(request.parameters, "--params");
  positive(request.tokens, "--tokens");
  positive(request.devices, "--devices");
  if (request.devices && *request.devices != std::floor(*request.devices)) problems.emplace_back("--devices must be a whole number");
  positive(request.mfu, "--mfu");
  positive(request.batch_tokens, "--batch-tokens");
  positive(request.peak, "--peak");
  positive(request.flops, "--flops");
  positive(request.seconds, "--seconds");
  positive(request.tokens_per_second, "--tokens-per-second");
  positive(request.device_hours, "--device-hours");
  if (request.seconds && !request.flops && !request.sizes.seq)
    problems.push_back("--seconds is the time of --flops, or of a step of --batch sequences of --seq tokens: give one of them");
  if (request.device_hours && !request.tokens) problems.push_back("--device-hours is the time of all --tokens: give them");
  if (request.tokens_per_second && request.device_hours)
    problems.push_back("--tokens-per-second and --device-hours both give the rate: leave one out");
  check_heads(request.sizes, problems);
  if (lacks_fp8(request)) problems.push_back(fmt::format("{} has no fp8: take another --precision, or give --peak", request.device->name));
  if (request.sizes.pipeline_parallel.value_or(1) == 1 && request.sizes.interleave)
    problems.push_back("--interleave needs --pipeline-parallel");
  if (request.mfu && *request.mfu > 1) problems.push_back("--mfu is a fraction of the device's peak, at most 1");
  constexpr std::array precisions{std::string_view("f32"), std::string_view("tf32"), std::string_view("bf16"), std::string_view("f16"),
                                  std::string_view("fp8")};
  if (std::find(precisions.begin(), precisions.end(), request.precision) == precisions.end())
    problems.push_back(fmt::format("--precision is f32, tf32, bf16, f16 or fp8, not {}", request.precision));
  if (!request.optimizer.empty() && !optimizer_bytes(request.optimizer, StoragePolicy::f32)) {
    std::string names;
    for (const OptimizerRow& row : kOptimizers) names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
    problems.push_back(fmt::format("--optimizer is one of {}; found {}", names, request.optimizer));
  }
  if (!request.parameters && !request.device && !request.sizes.layers && !request.flops)
    problems.push_back(
        "nothing to estimate: give --params, --device for the largest model that fits, or --layers and --embed for the rules");
  return problems;
}

Estimate estimate(const EstimateRequest& request) {
  Estimate result;
  result.request = request;
  const double devices = request.devices.value_or(1);
  if (request.parameters && request.tokens) result.flops = 6 * *request.parameters * *request.tokens;
  if (result.flops) result.petaflops_days = *result.flops / (1e15 * kSecondsPerDay);
  if (const auto peak = peak_of(request); result.flops && peak)
    result.time = training_time(*result.flops, devices, *peak, request.mfu.value_or(0.5));
  if (request.tokens && request.batch_tokens) result.steps = *request.tokens / *request.batch_tokens;
  result.measured = measure(request);
  result.rules = rule_rows(request, result.measured);
  const Device* const device = request.device ? &*request.device : nullptr;
  if (request.peak)
    if (auto warning = sparse_peak_warning(*request.peak, contraction_dtype(request.precision), device))
      result.warnings.push_back("--peak " + *warning);
  if (request.device)
    if (auto warning = sparse_peak_warning(*request.device)) result.warnings.push_back(*warning);
  warn(request, result);
  if (request.device || request.parameters) {
    for (const OptimizerRow& row : kOptimizers) {
      if (!request.optimizer.empty() && row.name != request.optimizer) continue;
      for (StoragePolicy policy : {StoragePolicy::f32, StoragePolicy::low_copy, StoragePolicy::low_gradients}) {
        if (policy != StoragePolicy::f32 && (request.precision == "f32" || request.precision == "tf32")) continue;
        const double per_parameter = optimizer_bytes(row.name, policy)->total();
        FitRow fit{std::string(row.name), policy, per_parameter, {}, {}};
        if (request.device) fit.largest_parameters = std::floor(devices * request.device->memory_bytes / per_parameter);
        if (request.parameters) fit.bytes = per_parameter * *request.parameters;
        result.fits.push_back(std::move(fit));
      }
    }
  }
  if (request.parameters)
    for (int stage = 0; stage <= 3; ++stage) result.shards.push_back({stage, zero_bytes(*request.parameters, devices, stage)});
  return result;
}

FitResult largest_fitting(const std::function<std::optional<Rational>(int64_t)>& bytes, const Rational& memory, int64_t limit) {
  // Values with no model are stepped over, upwards, for at most this many.
  constexpr int64_t kGap = 4096;
  struct Probe {
    int64_t value;
    Rational bytes;
  };
  auto first_from = [&](int64_t from, int64_t to) -> std::optional<Probe> {
    for (int64_t v = from; v <= to && v - from < kGap; ++v)
      if (auto b = bytes(v)) return Probe{v, *b};
    return std::nullopt;
  };
  auto best = first_from(1, limit);
  if (!best || best->bytes > memory) return {};
  int64_t low = best->value, high = limit;  // low fits; what lies above high does not
  for (int64_t v = low; v < limit;) {       // doubling
    v = v > limit / 2 ? limit : 2 * v;
    const auto probe = first_from(v, limit);
    if (!probe) break;
    if (probe->bytes > memory) {
      high = v - 1;
      break;
    }
    best = probe;
    low = v = probe->value;
  }
  while (low < high) {
    const int64_t middle = low + (high - low + 1) / 2;
    const auto probe = first_from(middle, high);
    if (probe && probe->bytes <= memory) {
      best = probe;
      low = probe->value;
    } else {
      high = middle - 1;
    }
  }
  return {best->value, best->bytes, best->value == limit};
}

}  // namespace einc
