// SPDX-License-Identifier: Apache-2.0
// The source notes' claims about number formats, machines and training runs: rows S and X that need no model.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "compiler/cost/estimate.h"
#include "runtime/base/dtype.h"
#include "runtime/base/float_format.h"

using namespace einc;

namespace {

constexpr double kSheetPeak = 1979e12;  // of an H100, for sparse matrices

doctest::Approx about(double value, double epsilon = 1e-12) { return doctest::Approx(value).epsilon(epsilon); }

// An H100 with the peak that the notes give it.
DeviceFile h100_with(double peak) {
  return read_device_file(
      R"({"name": "notes", "memory_bytes": 80e9, "bandwidth": 3.35e12, "f32": 67e12, "bf16": )" + std::to_string(peak) + "}", "notes.json");
}

struct Run {
  double parameters, tokens, devices, peak, mfu;
};
Estimate estimated(const Run& run) {
  EstimateRequest request;
  request.parameters = run.parameters;
  request.tokens = run.tokens;
  request.devices = run.devices;
  request.mfu = run.mfu;
  request.device = h100_with(run.peak).devices.at(0);
  REQUIRE(check_estimate(request).empty());
  return estimate(request);
}

// FLOPs of a fleet at work for so many days.
double fleet_flops(double devices, double peak, double mfu, double days) {
  return training_time(1, devices, peak, mfu).flops_per_day * days;
}

// The share of a device's peak that work done in `seconds` is.
double utilisation(double flops, double peak, double seconds) { return training_time(flops, 1, peak, 1).seconds / seconds; }

}  // namespace

TEST_CASE("S02, S04, S07, S24, S25, S26, S52: bits and ranges of the formats") {
  struct Row {
    DType dtype;
    int exponent, fraction, bytes;
  };
  for (const Row& row : {Row{DType::f32, 8, 23, 4}, Row{DType::f16, 5, 10, 2}, Row{DType::bf16, 8, 7, 2}, Row{DType::f8e4m3, 4, 3, 1},
                         Row{DType::f8e5m2, 5, 2, 1}}) {
    CAPTURE(std::string(to_string(row.dtype)));
    CHECK(info(row.dtype).exponent_bits == row.exponent);
    CHECK(info(row.dtype).mantissa_bits == row.fraction);
    CHECK(bytes_of(row.dtype) == row.bytes);
    CHECK(info(row.dtype).bits == 1 + row.exponent + row.fraction);
  }
  CHECK(4 * 8 * info(DType::f32).bits == 1024);
  CHECK(info(DType::f32).smallest_normal == std::ldexp(1.0, 1 - 127));  // the bias is 127
  CHECK(info(DType::f32).largest == (2 - std::ldexp(1.0, -23)) * std::ldexp(1.0, 127));
  CHECK(info(DType::f32).largest == 3.4028234663852886e38);
  CHECK(info(DType::bf16).largest == (2 - std::ldexp(1.0, -7)) * std::ldexp(1.0, 127));
  CHECK(info(DType::bf16).largest == 3.3895313892515355e38);
  CHECK(info(DType::f16).largest == (2 - std::ldexp(1.0, -10)) * std::ldexp(1.0, 15));
  CHECK(info(DType::f16).largest == 65504);
  CHECK(info(DType::f8e4m3).largest == (1 + 6.0 / 8) * 256);
  CHECK(info(DType::f8e4m3).largest == 448);
  CHECK(info(DType::f8e5m2).largest == (1 + 3.0 / 4) * 32768);
  CHECK(info(DType::f8e5m2).largest == 57344);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  CHECK(std::isnan(round_to_format(DType::f8e4m3, infinity)));  // it has no infinity
  CHECK(round_to_format(DType::f8e5m2, infinity) == infinity);
  CHECK(round_to_format(DType::f16, 1e-8) == 0);
  CHECK(round_to_format(DType::bf16, 1e-8) == 1.0011717677116394e-08);
}

TEST_CASE("S09, S20, S32, S54: peaks of the machines that the notes name") {
  const Device& a100 = *find_device("a100-80gb");
  CHECK(*a100.contraction_peak(DType::bf16) == 312e12);
  CHECK(*a100.contraction_peak(DType::f16) == 312e12);
  CHECK(*a100.contraction_peak(DType::f32) == 19.5e12);
  const Device& h100 = *find_device("h100-sxm");
  CHECK(*h100.contraction_peak(DType::f32) == 67e12);
  CHECK(*h100.contraction_peak(DType::bf16) == about(kSheetPeak / 2, 2e-4));
  CHECK(h100_with(kSheetPeak / 2).warnings.empty());
  REQUIRE(h100_with(kSheetPeak).warnings.size() == 1);
  CHECK(h100_with(kSheetPeak).warnings[0].find("sparse") != std::string::npos);
}

TEST_CASE("S01, S48: 70e9 parameters and 15e12 tokens on 1024 H100s") {
  const Estimate e = estimated({70e9, 15e12, 1024, kSheetPeak / 2, 0.5});
  CHECK(*e.flops == about(6.3e24));
  CHECK(e.time->flops_per_day == about(4.37723136e22));
  CHECK(e.time->days == about(143.92659381842682));
  CHECK(e.time->days / 30 == about(4.8, 1e-3));
  CHECK(e.warnings.empty());
}

TEST_CASE("S49, X11: the same with the sheet's doubled peak is half as long, and warned of") {
  const Estimate e = estimated({70e9, 15e12, 1024, kSheetPeak, 0.5});
  CHECK(e.time->flops_per_day == about(8.75446272e22));
  CHECK(e.time->days == about(71.96329690921341));
  CHECK(e.warnings.size() == 1);
}

TEST_CASE("S17, S33, S69: an MFU of a half is assumed where none is given; a twentieth takes ten times as long") {
  EstimateRequest request;
  request.parameters = 70e9;
  request.tokens = 15e12;
  request.device = *find_device("h100-sxm");
  const double assumed = estimate(request).time->days;
  request.mfu = 0.5;
  CHECK(estimate(request).time->days == assumed);
  request.mfu = 0.05;
  CHECK(estimate(request).time->days == about(10 * assumed));
  // The notes' two runs of one matrix product: f32 above a half of its peak, bf16 below.
  CHECK(utilisation(8796093022208, *request.device->contraction_peak(DType::f32), 0.163) > 0.5);
  CHECK(utilisation(8796093022208, *request.device->contraction_peak(DType::bf16), 0.032) < 0.5);
}

TEST_CASE("S57, S58: a matrix product's utilisation from its time") {
  const Device& h100 = *find_device("h100-sxm");
  CHECK(utilisation(8796093022208, *h100.contraction_peak(DType::f32), 0.163) == about(0.8054, 1e-4));
  CHECK(utilisation(8796093022208, 67.5e12, 0.163) == about(0.7995, 1e-4));  // the notes' peak
  CHECK(utilisation(8796093022208, kSheetPeak / 2, 0.032) == about(0.2778, 1e-4));
  CHECK(utilisation(8796093022208, *h100.contraction_peak(DType::bf16), 0.0322) ==
        about(0.276, 1e-3));  // what the notes print comes from 0.0322 s
  CHECK(fleet_flops(1, 67e12, 0.8054, 0.163 / 86400) == about(8796093022208, 1e-4));
}

TEST_CASE("S29, S54, S65: GPT-3's FLOPs, and weeks of eight H100s that they are") {
  EstimateRequest request;
  request.parameters = 174.6e9;
  request.tokens = 300e9;
  const double gpt3 = *estimate(request).flops;
  CHECK(gpt3 == about(3.1428e23));
  const double week = fleet_flops(8, kSheetPeak / 2, 0.5, 7);
  CHECK(week == about(2.3937984e21));
  CHECK(gpt3 / week == about(131.3, 1e-3));
}

TEST_CASE("S55: eight H100s for a week, and for the two weeks that the notes mean") {
  CHECK(fleet_flops(8, kSheetPeak / 2, 1, 7) == about(4.7875968e21));
  CHECK(fleet_flops(8, kSheetPeak / 2, 1, 14) == about(9.5751936e21));
}

TEST_CASE("S50, S67: bytes per parameter of Adam and AdaGrad, the largest model on eight H100s, FLOPs of a step") {
  EstimateRequest request;
  request.device = *find_device("h100-sxm");
  request.devices = 8;
  request.precision = "f32";
  request.optimizer = "adam";
  Estimate e = estimate(request);
  REQUIRE(e.fits.size() == 1);
  CHECK(e.fits[0].bytes_per_parameter == 16);
  CHECK(e.fits[0].largest_parameters == 40e9);
  request.optimizer = "adagrad";
  CHECK(estimate(request).fits.at(0).bytes_per_parameter == 12);
  request.parameters = 40e9;
  request.tokens = 4e6;  // one step's
  CHECK(*estimate(request).flops == about(6 * 40e9 * 4e6));
}
