// SPDX-License-Identifier: Apache-2.0
// Devices, rooflines and napkin estimates against the accounting facts (sections G, M, R, T).
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "compiler/cost/estimate.h"
#include "compiler/cost/roofline.h"
#include "compiler/driver/choose_device.h"

using namespace einc;

namespace {

doctest::Approx about(double value, double epsilon = 1e-12) { return doctest::Approx(value).epsilon(epsilon); }

double gibi(double bytes) { return bytes / (1024.0 * 1024.0 * 1024.0); }

}  // namespace

TEST_CASE("the device table") {
  for (const char* name : {"h100-sxm", "h100-pcie", "h200", "b200", "a100-80gb", "a100-40gb", "v100", "l40s", "rtx4090", "mi300x", "tpu-v4",
                           "tpu-v5e", "tpu-v5p", "cpu"})
    CHECK_MESSAGE(find_device(name) != nullptr, name);
  const Device& h100 = *find_device("h100-sxm");
  CHECK(h100.bf16 == about(989.4e12));
  CHECK(h100.bandwidth == about(3350e9));
  CHECK(*h100.contraction_peak(DType::f8e4m3) == about(1978.9e12));
  CHECK(*h100.contraction_peak(DType::f32) == about(67e12));                           // not TF32
  CHECK(*find_device("a100-80gb")->contraction_peak(DType::f8e4m3) == about(312e12));  // no fp8 units
  CHECK(near_devices("h100-smx").front() == "h100-sxm");
  CHECK(near_devices("a100") == std::vector<std::string>{"a100-80gb", "a100-40gb", "v100"});
  CHECK(near_devices("abacus").empty());
  for (const Device& device : known_devices()) {
    CHECK(list_devices_text().find(device.name) != std::string::npos);
    CHECK_FALSE(sparse_peak_warning(device));
  }
}

TEST_CASE("G: dense peaks in TFLOP/s, memory in GB and bandwidth in GB/s as the sheets have them; 0 where they have none") {
  struct Row {
    const char* name;
    double f32, tf32, bf16, f16, fp8, int8, memory, bandwidth;
  };
  for (const Row& row :
       {Row{"a100-40gb", 19.5, 156, 312, 312, 0, 624, 40, 1555}, Row{"a100-80gb", 19.5, 156, 312, 312, 0, 624, 80, 2039},
        Row{"h100-sxm", 67, 494.7, 989.4, 989.4, 1978.9, 1978.9, 80, 3350}, Row{"h100-pcie", 51, 378, 756, 756, 1513, 1513, 80, 2000},
        Row{"h200", 67, 494.7, 989.4, 989.4, 1978.9, 1978.9, 141, 4800}, Row{"b200", 80, 1125, 2250, 2250, 4500, 4500, 180, 8000},
        Row{"l40s", 91.6, 183, 362.05, 362.05, 733, 733, 48, 864}, Row{"rtx4090", 82.6, 82.6, 165.2, 165.2, 330.3, 660.6, 24, 1008},
        Row{"mi300x", 163.4, 653.7, 1307.4, 1307.4, 2614.9, 2614.9, 192, 5300}, Row{"tpu-v4", 0, 0, 275, 0, 0, 275, 32, 1228},
        Row{"tpu-v5e", 0, 0, 197, 0, 0, 393, 16, 819}, Row{"tpu-v5p", 0, 0, 459, 0, 0, 918, 95, 2765},
        Row{"v100", 15.7, 0, 0, 125, 0, 0, 32, 900}}) {
    CAPTURE(row.name);
    const Device& d = *find_device(row.name);
    CHECK(d.f32 == about(row.f32 * 1e12));
    CHECK(d.tf32 == about(row.tf32 * 1e12));
    CHECK(d.bf16 == about(row.bf16 * 1e12));
    CHECK(d.f16 == about(row.f16 * 1e12));
    CHECK(d.fp8 == about(row.fp8 * 1e12));
    CHECK(d.int8 == about(row.int8 * 1e12));
    CHECK(d.memory_bytes == about(row.memory * 1e9));
    CHECK(d.bandwidth == about(row.bandwidth * 1e9));
  }
}

TEST_CASE("G: the list says what else sheets print, and doubled figures for sparse matrices are warned of") {
  const std::string list = list_devices_text();
  for (const char* also :
       {"1935 GB/s", "192 GB physical", "186 GB", "366.4", "also sold with 16 GB", "1200 GB/s", "800 GiB/s", "f16 accumulation"})
    CHECK_MESSAGE(list.find(also) != std::string::npos, also);
  struct Row {
    const char* name;
    double peak;
    DType dtype;
  };
  for (const Row& row : {Row{"h100-sxm", 1979e12, DType::bf16}, Row{"h100-sxm", 3958e12, DType::f8e4m3},
                         Row{"a100-80gb", 624e12, DType::bf16}, Row{"b200", 4500e12, DType::bf16}}) {
    CHECK(sparse_peak_warning(row.peak, row.dtype, find_device(row.name)));
    CHECK_FALSE(sparse_peak_warning(row.peak / 2, row.dtype, find_device(row.name)));
  }
  CHECK(sparse_peak_warning(1979e12, DType::bf16, nullptr));
  CHECK_FALSE(sparse_peak_warning(1979e12, DType::f8e4m3, nullptr));  // that is dense in fp8
  CHECK_FALSE(sparse_peak_warning(67.5e12, DType::bf16, nullptr));
}

TEST_CASE("tensor cores x FMA x 2 x clock give the tabulated peaks") {
  struct Check {
    const char* name;
    double cores, fma, ghz;
  };
  for (const Check& c : {Check{"h100-sxm", 528, 512, 1.830}, Check{"a100-80gb", 432, 256, 1.410}, Check{"h100-pcie", 456, 512, 1.620},
                         Check{"rtx4090", 512, 64, 2.520}, Check{"mi300x", 1216, 256, 2.100}})
    CHECK_MESSAGE(find_device(c.name)->bf16 == about(c.cores * c.fma * 2 * c.ghz * 1e9, 1e-3), c.name);
  CHECK(find_device("v100")->f16 == about(640 * 64 * 2 * 1.530e9, 3e-3));
}

TEST_CASE("every device keeps some memory for itself and says why") {
  for (const Device& device : known_devices()) {
    CAPTURE(device.name);
    CHECK(device.reserve_bytes > 0);
    CHECK(device.reserve_bytes <= device.memory_bytes / 8);
    CHECK(device.usable_bytes() == device.memory_bytes - device.reserve_bytes);
    CHECK(!device.reserve_source.empty());
  }
  const DeviceFile file =
      read_device_file(R"({"name": "mine", "memory_bytes": 8e10, "bandwidth": 1e12, "reserve_bytes": 3e9})", "mine.json");
  REQUIRE(file.problems.empty());
  CHECK(file.devices[0].usable_bytes() == 7.7e10);
  CHECK(file.devices[0].reserve_source == "mine.json");
}

TEST_CASE("device files") {
  const DeviceFile file =
      read_device_file(R"({"name": "mine", "bf16": 1e14, "f32": 2e13, "memory_bytes": 4.8e10, "bandwidth": 9e11})", "mine.json");
  REQUIRE(file.problems.empty());
  REQUIRE(file.devices.size() == 1);
  CHECK(file.devices[0].bf16 == 1e14);
  CHECK(file.warnings.empty());
  CHECK(read_device_file(R"([{"name": "a", "memory_bytes": 1, "bandwidth": 1}, {"name": "b", "memory_bytes": 1, "bandwidth": 1}])", "f")
            .devices.size() == 2);
  const std::pair<const char*, DeviceTarget> targets[] = {
      {"", DeviceTarget::cpu}, {R"(, "target": "cpu")", DeviceTarget::cpu}, {R"(, "target": "cuda")", DeviceTarget::cuda}};
  for (const auto& [field, target] : targets) {
    const DeviceFile read = read_device_file(R"({"name": "a", "memory_bytes": 1, "bandwidth": 1)" + std::string(field) + "}", "f");
    REQUIRE(read.problems.empty());
    CHECK(read.devices.at(0).target == target);
  }
  CHECK(!read_device_file(R"({"name": "a", "memory_bytes": 1, "bandwidth": 1, "target": "tpu"})", "f").problems.empty());
  CHECK(find_device("h200")->target == DeviceTarget::cuda);
  CHECK(find_device("tpu-v4")->target == DeviceTarget::none);
  CHECK(find_device("rtx4090")->vector_peak(DType::f64) == about(82.6e12 / 64, 1e-9));
  CHECK(!find_device("rtx4090")->contraction_peak(DType::f64));
  for (const Device& device : known_devices()) CHECK(device.gpu.has_value() == (device.target == DeviceTarget::cuda));
  const DeviceFile sparse = read_device_file(R"({"name": "h100", "bf16": 1979e12, "memory_bytes": 80e9, "bandwidth": 3.35e12})", "h.json");
  REQUIRE(sparse.warnings.size() == 1);
  CHECK(sparse.warnings[0].find("sparse") != std::string::npos);
  for (const char* bad :
       {"", "[", "[]", "3", R"({"name": 3})", R"({"name": "x", "bandwidth": 1})", R"({"name": "x", "memory_bytes": -1, "bandwidth": 1})",
        R"({"name": "x", "memory_bytes": 1, "bandwidth": 1, "bf17": 3})", R"({"name": "x", "memory_bytes": 1e400, "bandwidth": 1})"})
    CHECK_MESSAGE(!read_device_file(bad, "bad.json").problems.empty(), bad);
  CHECK_FALSE(read_device_file(std::string(100000, '['), "deep.json").problems.empty());
  const auto with_share = [](const char* share) {
    return read_device_file(fmt::format(R"({{"name": "a", "memory_bytes": 1, "bandwidth": 1, "sustained_clock": {}}})", share), "f");
  };
  CHECK(with_share("0.8").devices.at(0).sustained_clock == 0.8);
  REQUIRE(with_share("1.2").problems.size() == 1);
  CHECK(with_share("1.2").problems[0] == "f: device a: \"sustained_clock\" is a share of a rate, at most 1");
  for (const Device& device : known_devices()) CHECK(device.has_sustained_rates() == (device.target == DeviceTarget::cuda));
}

TEST_CASE("device files: like a row of the table, with links of one's own") {
  const DeviceFile file = read_device_file(R"({"name": "ours", "like": "a100-80gb", "bandwidth": 1.9e12,
      "links": [{"name": "NVLink", "devices": 8, "bandwidth": 3e11, "latency_s": 3e-6}, {"name": "Omni-Path", "bandwidth": 6.25e9}]})",
                                           "ours.json");
  REQUIRE(file.problems.empty());
  const Device& ours = file.devices.at(0);
  const Device& like = *find_device("a100-80gb");
  CHECK(ours.name == "ours");
  CHECK(ours.description == like.description);
  CHECK(ours.source == "ours.json");
  CHECK(ours.bandwidth == 1.9e12);
  CHECK(ours.bf16 == like.bf16);
  CHECK(ours.sustained_clock == like.sustained_clock);
  CHECK(ours.reserve_source == like.reserve_source);
  REQUIRE(ours.gpu);
  CHECK(ours.gpu->processors == like.gpu->processors);
  REQUIRE(ours.links.size() == 2);
  CHECK(ours.links[0].name == "NVLink");
  CHECK(ours.links[0].devices == 8);
  CHECK(ours.links[0].latency_s == 3e-6);
  CHECK(ours.links[1].bandwidth == 6.25e9);
  CHECK(ours.links[1].devices > int64_t{1} << 30);  // any number
  CHECK(read_device_file(R"({"name": "ours", "like": "a100-80gb"})", "f").devices.at(0).links.size() == like.links.size());

  const std::pair<const char*, const char*> wrong[] = {
      {R"("like": "a100-80g")", "f: device x: no device is called \"a100-80g\"; a100-80gb is one"},
      {R"("like": 3)", "f: device x: \"like\" is the name of a device of the table"},
      {R"("like": "h200", "links": 3)", "f: device x: \"links\" is a list of objects, the nearest first"},
      {R"("like": "h200", "links": [{"name": "a"}])", "f: device x: a link has a \"name\" and a positive \"bandwidth\""},
      {R"("like": "h200", "links": [{"name": "a", "bandwidth": 1, "devices": 1}])",
       "f: device x: \"devices\" of link a is a whole number above that of the link before it, at least 2"},
      {R"("like": "h200", "links": [{"name": "a", "bandwidth": 1, "devices": 8}, {"name": "b", "bandwidth": 1, "devices": 8}])",
       "f: device x: \"devices\" of link b is a whole number above that of the link before it, at least 2"},
      {R"("like": "h200", "links": [{"name": "a", "bandwidth": 1}, {"name": "b", "bandwidth": 1, "devices": 8}])",
       "f: device x: \"devices\" of link b is a whole number above that of the link before it, at least 2"},
      {R"("like": "h200", "links": [{"name": "a", "bandwidth": 1, "latency_s": -1}])",
       "f: device x: \"latency_s\" of link a is a number of seconds, at least 0"},
      {R"("like": "h200", "links": [{"name": "a", "bandwidth": 1, "width": 2}])", "f: device x: link a: unknown field \"width\""}};
  for (const auto& [fields, problem] : wrong) {
    const DeviceFile read = read_device_file(fmt::format(R"({{"name": "x", {}}})", fields), "f");
    REQUIRE_MESSAGE(!read.problems.empty(), fields);
    CHECK(read.problems[0] == problem);
  }
}

TEST_CASE("--device takes a name of the table or a file") {
  CHECK(choose_device("a100-80gb", "einc")->bf16 == 312e12);
  const std::string path = (std::filesystem::temp_directory_path() / "einc_test_device_").string() + std::to_string(getpid()) + ".json";
  std::ofstream(path) << R"({"name": "mine", "bf16": 1e14, "memory_bytes": 4.8e10, "bandwidth": 9e11})";
  CHECK(choose_device(path, "einc")->bf16 == 1e14);
  std::ofstream(path) << "{}";
  CHECK_FALSE(choose_device(path, "einc"));
  std::filesystem::remove(path);
  CHECK_FALSE(choose_device(path, "einc"));
}

TEST_CASE("R01, R05, R07: intensity and the balance point") {
  const double flops = 8796093022208.0, bytes = 1879048192.0;
  CHECK(flops / bytes == about(4681.142857, 1e-9));
  const Device& h100 = *find_device("h100-sxm");
  const auto big = roofline(h100, FlopClass::contraction, DType::bf16, flops, bytes);
  REQUIRE(big);
  CHECK(big->bound == Bound::compute);
  CHECK(big->time_s == about(flops / 989.4e12));
  // [B 8192] x [8192 8192] in bf16: the smallest batch that is compute-bound.
  struct Row {
    const char* name;
    int batch;
  };
  for (const Row& row : {Row{"h100-sxm", 319}, Row{"a100-80gb", 159}, Row{"tpu-v5e", 256}}) {
    auto bound = [&](double b) {
      const double n = 8192;
      return roofline(*find_device(row.name), FlopClass::contraction, DType::bf16, 2 * b * n * n, 2 * (2 * b * n + n * n))->bound;
    };
    CHECK_MESSAGE(bound(row.batch) == Bound::compute, row.name);
    CHECK_MESSAGE(bound(row.batch - 1) == Bound::memory, row.name);
  }
  CHECK(roofline(h100, FlopClass::other, DType::f32, 0, 0)->bound == Bound::none);
}

TEST_CASE("T01, T03, T05, T11, T17: training time") {
  const TrainingTime t01 = training_time(6 * 70e9 * 15e12, 1024, 1979e12 / 2, 0.5);
  CHECK(t01.flops_per_day == about(4.37723136e22));
  CHECK(t01.days == about(143.92659381842682));
  CHECK(t01.device_hours == about(3537139.97, 1e-8));
  CHECK(training_time(6 * 70e9 * 15e12, 1024, 1979e12, 0.5).days == about(71.96329690921341));
  CHECK(training_time(1, 8, 1979e12 / 2, 1).flops_per_day * 7 == about(4.7875968e21));
  CHECK(training_time(1, 8, 1979e12 / 2, 0.5).flops_per_day * 7 == about(2.3937984e21));
  CHECK(training_time(8 * 300e9 * 175e9, 1024, 140e12, 1).days == about(33.908, 1e-4));
  CHECK(training_time(8 * 450e9 * 1e12, 3072, 163e12, 1).days == about(83.211, 1e-4));
  CHECK(training_time(6 * 405853388800.0 * 15.6e12, 16384, 989e12, 0.41).days == about(66.18, 1e-4));
}

TEST_CASE("M01, M03, M05, M15: bytes per parameter and the largest model") {
  auto total = [](const char* optimizer, StoragePolicy policy) { return optimizer_bytes(optimizer, policy)->total(); };
  CHECK(total("sgd", StoragePolicy::f32) == 8);
  for (const char* one_moment : {"momentum", "adagrad", "rmsprop"}) CHECK(total(one_moment, StoragePolicy::f32) == 12);
  for (const char* adam : {"adam", "adamw"}) {
    CHECK(total(adam, StoragePolicy::f32) == 16);
    CHECK(total(adam, StoragePolicy::low_copy) == 18);
    CHECK(total(adam, StoragePolicy::low_gradients) == 16);
  }
  CHECK(total("adam8bit", StoragePolicy::low_copy) == 12);
  const double zero[] = {120e9, 31.40625e9, 16.640625e9, 1.875e9};
  for (int stage = 0; stage <= 3; ++stage) CHECK(zero_bytes(7.5e9, 64, stage) == about(zero[stage]));
  EstimateRequest request;
  request.device = *find_device("h100-sxm");
  request.devices = 8;
  request.optimizer = "adamw";
  const Estimate e = estimate(request);
  REQUIRE(e.fits.size() == 3);
  CHECK(e.fits[0].largest_parameters == 40e9);
  CHECK(std::floor(8 * 80e9 / 18) == e.fits[1].largest_parameters);
  CHECK(gibi(49152.0 * 12288 * 4) == 2.25);  // M11
}

TEST_CASE("an estimate and what is wrong with one") {
  EstimateRequest request;
  request.parameters = 70e9;
  request.tokens = 15e12;
  request.devices = 1024;
  request.mfu = 0.5;
  request.device = *find_device("h100-sxm");
  CHECK(check_estimate(request).empty());
  const Estimate e = estimate(request);
  CHECK(*e.flops == about(6.3e24));
  CHECK(e.time->days == about(143.9265938 * 989.5 / 989.4, 1e-9));
  request.mfu = 1.5;
  request.parameters = -1;
  request.optimizer = "adamx";
  request.precision = "fp7";
  CHECK(check_estimate(request).size() == 4);
  CHECK(check_estimate({}).size() == 1);
}

TEST_CASE("--fit: the largest value that fits, by bisection") {
  int calls = 0;
  auto line = [&](int64_t v) -> std::optional<Rational> { return ++calls, Rational(1000 + 7 * v); };
  CHECK(largest_fitting(line, Rational(8000), int64_t{1} << 40).value == 1000);
  CHECK(calls < 100);
  CHECK(largest_fitting(line, Rational(7999), int64_t{1} << 40).value == 999);
  CHECK_FALSE(largest_fitting(line, Rational(1006), int64_t{1} << 40).value);
  const FitResult all = largest_fitting(line, Rational(1000000), 5);
  CHECK(all.value == 5);
  CHECK(all.at_limit);
  // Only multiples of 12 exist.
  auto steps = [](int64_t v) -> std::optional<Rational> { return v % 12 == 0 ? std::optional(Rational(v)) : std::nullopt; };
  for (int64_t limit : {24, 100, 1000, 1007}) CHECK(largest_fitting(steps, Rational(limit), 1 << 20).value == limit / 12 * 12);
}
