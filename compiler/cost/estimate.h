// SPDX-License-Identifier: Apache-2.0
// Napkin arithmetic without a model: training time from 6 N D, bytes per parameter by optimizer, the largest model that
// fits, ZeRO's shards, the literature's rules, utilisation from a measured time, and the largest value of a dim that fits a device.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/cost/device.h"
#include "compiler/cost/rules.h"
#include "compiler/symbolic/rational.h"

namespace einc {

struct TrainingTime {
  double flops = 0;          // of the whole run
  double flops_per_day = 0;  // of the fleet at that MFU
  double seconds = 0, days = 0, device_hours = 0;
};
// `peak` is one device's dense FLOP/s. mfu in (0, 1].
TrainingTime training_time(double flops, double devices, double peak, double mfu);

// How weights and gradients are stored: all f32; f32 masters and gradients with a low-precision copy (what einc does under
// bf16); low-precision weights and gradients with f32 masters (ZeRO's accounting).
enum class StoragePolicy : uint8_t { f32, low_copy, low_gradients };
std::string_view describe(StoragePolicy policy);
std::string_view short_name(StoragePolicy policy);  // a column's

// Bytes of master weight, gradient, optimizer moments and low-precision copy for each parameter.
struct OptimizerBytes {
  std::string_view name;
  double weight = 4, gradient = 4, state = 0, copy = 0;
  double total() const { return weight + gradient + state + copy; }
};
std::optional<OptimizerBytes> optimizer_bytes(std::string_view optimizer, StoragePolicy policy);
// Bytes a device holds for `parameters` when mixed-precision Adam (2 + 2 + 12) is sharded by ZeRO stage 0 to 3 over n devices.
double zero_bytes(double parameters, double devices, int stage);

struct EstimateRequest {
  std::optional<double> parameters, tokens, mfu, devices, batch_tokens;
  std::optional<Device> device;
  std::string precision = "bf16";  // of contractions: which peak; f32 also leaves out the low-precision storage policies
  std::string optimizer;           // empty: every known one is listed
  TransformerSizes sizes;          // for the rules; params is the field above
  std::optional<double> peak;      // FLOP/s of one device, in place of the table's
  // What was measured: the time of --flops, or of a step of batch x seq tokens, on all devices; or a rate of one device; or
  // the device-hours that all tokens took.
  std::optional<double> flops, seconds, tokens_per_second, device_hours;
};
// A rule and how it compares: to 6 N D, to the FLOPs given, and its share of the devices' peak in the time measured.
struct RuleRow {
  RuleValue rule;
  std::optional<double> to_6nd, to_flops, utilisation;
};
struct Measured {
  std::optional<double> flops_per_second;    // of one device, from --flops
  std::optional<double> utilisation;         // that, of its peak
  std::optional<double> tokens_per_second;   // of one device
  std::optional<double> days, device_hours;  // for all tokens at that rate
};
struct FitRow {
  std::string optimizer;
  StoragePolicy policy = StoragePolicy::f32;
  double bytes_per_parameter = 0;
  std::optional<double> largest_parameters, bytes;
};
struct Estimate {
  EstimateRequest request;
  std::optional<double> flops;  // 6 N D
  std::optional<TrainingTime> time;
  std::optional<double> petaflops_days;
  std::optional<double> steps;  // with tokens and batch_tokens
  std::vector<FitRow> fits;     // with a device, or bytes with parameters
  std::vector<RuleRow> rules;   // with sizes
  std::optional<Measured> measured;
  struct Shard {
    int stage;
    double bytes;
  };
  std::vector<Shard> shards;  // with parameters
  std::vector<std::string> warnings;
};
// Problems of a request that make no sense (negative numbers, an MFU above 1, an unknown optimizer).
std::vector<std::string> check_estimate(const EstimateRequest& request);
Estimate estimate(const EstimateRequest& request);

// The largest value v in [1, limit] with bytes(v) <= memory, found by doubling and bisection; bytes grows with v and gives
// nothing where the model does not exist (an inexact division): such values are stepped over. Empty when not even the
// smallest value fits.
struct FitResult {
  std::optional<int64_t> value;
  std::optional<Rational> bytes;
  bool at_limit = false;
};
FitResult largest_fitting(const std::function<std::optional<Rational>(int64_t)>& bytes, const Rational& memory, int64_t limit);

}  // namespace einc
