// SPDX-License-Identifier: Apache-2.0
// The launches of a report: what they do adds up to what the step executes, their times to the step's.
#include <doctest/doctest.h>

#include <fstream>

#include "compiler/pipeline/cuda_program.h"
#include "compiler/pipeline/pipeline.h"
#include "compiler/report/json.h"
#include "compiler/report/text.h"
#include "dsl/render.h"
#include "tests/support/json_schema.h"
#include "tests/support/near_seconds.h"

using namespace einc;
using Json = nlohmann::json;

namespace {

const char* const kBlocks = R"(
dim batch = 32, layers = 3, d = 256
input x: f32[batch d]
input t: f32[batch d]
fn block(h: [... c]) {
  param w: [c k=1024] ~ normal(std = 0.02)
  param v: [k=1024 c] ~ normal(std = 0.02)
  return h + einsum(gelu(einsum(h, w, "... c, c k -> ... k")), v, "... k, k c -> ... c")
}
h = x
for i in layers { h = block(h) as layer }
loss = mean((h - t)^2)
minimize loss using adamw(lr = 1e-3)
)";

Report report_of(const char* program, const char* device, const Scheduling& scheduling = Scheduling::all) {
  const Compilation c = compile_text("blocks.ein", program, {});
  REQUIRE_MESSAGE(c.graph.has_value(), render_text(c.sources, c.diagnostics));
  ReportOptions options;
  if (device) {
    options.device = *find_device(device);
    if (options.device->target == DeviceTarget::cuda) options.plan = plan_for_gpu({.scheduling = scheduling});
  }
  Report report = build_report(*c.graph, options);
  const Json json = Json::parse(render_json(report, *c.graph));
  std::ifstream file(EINC_SOURCE_DIR "/compiler/report/report.schema.json");
  for (const std::string& problem : test::SchemaCheck(Json::parse(file))(json)) FAIL_CHECK(problem);
  const std::string text = render_text(report, {100, Paint::off});
  CHECK_MESSAGE(text.find("Where the work is") != std::string::npos, text);
  return report;
}

}  // namespace

TEST_CASE("launches add up") {
  for (const char* device : {static_cast<const char*>(nullptr), "cpu", "a100-80gb"}) {
    CAPTURE(device == nullptr ? "none" : device);
    const Report report = report_of(kBlocks, device);
    int64_t flops = 0;
    double time = 0, share = 0, kernels = 0;
    bool forward_product = false;
    for (const LaunchReport& launch : report.schedule) kernels += static_cast<double>(launch.count);
    for (const LaunchReport& launch : report.schedule) {
      CAPTURE(launch.name);
      const KernelWork& work = launch.traffic.work;
      flops += launch.count * work.flops();
      share += launch.share;
      CHECK(launch.source.line > 0);
      CHECK(launch.time_s.has_value() == (device != nullptr));
      if (!device) continue;
      const Device& d = report.device->device;
      time += static_cast<double>(launch.count) * *launch.time_s;
      // No unit works faster than its peak.
      CHECK(*launch.time_s >= static_cast<double>(work.contraction) / d.f32);
      CHECK(*launch.time_s >= static_cast<double>(launch.traffic.from_memory + launch.traffic.to_memory) / d.bandwidth);
      // A processor's smallest launches wake no team of threads: 8 ns (see schedule.cpp). On a GPU kernels may be one launch.
      CHECK(*launch.time_s >= (d.target == DeviceTarget::cuda ? d.launch_s / kernels : 8e-9));
      if (launch.kind == "contraction" && launch.phase == Phase::forward && launch.count == 3) forward_product = true;
    }
    CHECK(Rational(flops) == *report.executed.value);
    CHECK(report.executed_by.flops() == flops);
    // Each product of the program is done once, whatever else fusion makes again; the loss' sum of squares may be one too.
    const Rational products = *report.forward.contraction.value + *report.backward.contraction.value;
    CHECK(Rational(report.executed_by.contraction) >= products);
    CHECK(Rational(report.executed_by.contraction) <= products + Rational(2 * 32 * 256));
    CHECK(share == doctest::Approx(1));
    if (!device) continue;
    CHECK(forward_product);  // three blocks alike are one row
    REQUIRE(report.device->step_time_s);
    CHECK(*report.device->step_time_s == near_seconds(time));
  }
}

TEST_CASE("the least time of a step: its products, or what it must read and write beyond the cache") {
  struct Row {
    const char* program;
    const char* device;
    double seconds;
  };
  const Row rows[] = {
      {"input x: f32[n=4096 m=4096]\ninput y: f32[m=4096 k=4096]\noutput z = einsum(x, y, \"n m, m k -> n k\")\n", "cpu",
       2 * 4096.0 * 4096 * 4096 / 0.55e12},
      {"input x: f32[n=50000000]\noutput z = x * 2\n", "cpu", (4e8 - 32e6) / 63e9},
      {"input x: f32[n=500000]\noutput z = x * 2\n", "cpu", 0},  // the cache holds it
      {"dim n = 50000000\nparam w: [n] ~ zeros\nloss = sum(w)\nminimize loss using sgd(lr = 0.1)\n", "cpu",
       (2e8 + 4 - 32e6) / 63e9},                                                                   // once
      {"input t: f32[rows=1000000 m=64]\ninput i: i32[b=5]\noutput z = t[rows = i]\n", "cpu", 0},  // five rows of a table
      {"precision bf16\ninput x: bf16[n=8192 m=8192]\ninput y: bf16[m=8192 k=8192]\noutput z = einsum(x, y, \"n m, m k -> n k\")\n",
       "h100-sxm", 2 * 8192.0 * 8192 * 8192 / 989.4e12},
  };
  for (const Row& row : rows) {
    CAPTURE(row.program);
    const Report report = report_of(row.program, row.device);
    REQUIRE(report.device->lower_bound_s);
    CHECK(*report.device->lower_bound_s == near_seconds(row.seconds, 1e-6));
    CHECK(*report.device->lower_bound_s <= *report.device->step_time_s);
  }
  for (const char* device : {"cpu", "h100-sxm"}) {
    const Report report = report_of(kBlocks, device);
    CHECK(*report.device->lower_bound_s <= *report.device->step_time_s);
  }
}

TEST_CASE("what a device keeps for itself is no room for a step") {
  const Compilation c = compile_text("blocks.ein", kBlocks, {});
  REQUIRE(c.graph.has_value());
  ReportOptions options;
  options.device = *find_device("cpu");
  const double peak = build_report(*c.graph, options).memory.peak_training.value->to_double();
  for (const double spare : {-1.0, 0.0}) {
    options.device->memory_bytes = peak + options.device->reserve_bytes + spare;
    CHECK(build_report(*c.graph, options).device->fits == (spare == 0));
  }
}

TEST_CASE("each unit's peak bounds the launches that need it most") {
  struct Row {
    const char* program;
    const char* device;
    LaunchBound bound;
  };
  const Row rows[] = {
      {"input x: f32[n=4096 m=4096]\ninput y: f32[m=4096 k=4096]\noutput z = einsum(x, y, \"n m, m k -> n k\")\n", "cpu",
       LaunchBound::contraction},
      {"input x: f32[n=50000000]\noutput z = x * 2\n", "cpu", LaunchBound::memory},
      {"input x: f32[n=500000]\noutput z = x * 2\n", "cpu", LaunchBound::cache},
      {"input x: f32[n=50000000]\noutput z = tanh(exp(sin(tanh(x))))\n", "cpu", LaunchBound::vector},
      {"input x: f32[n=9000]\noutput z = x * 2\n", "cpu", LaunchBound::launch},
      {"input x: f32[n=5]\noutput z = x * 2\n", "cpu", LaunchBound::launch},            // one thread does it: 8 ns, not none
      {"input x: f32[n=500000]\noutput z = x * 2\n", "h100-sxm", LaunchBound::launch},  // both lie in its cache
  };
  for (const Row& row : rows) {
    CAPTURE(row.program);
    const Report report = report_of(row.program, row.device);
    REQUIRE(report.schedule.size() == 1);
    CHECK(to_string(report.schedule[0].bound) == to_string(row.bound));
  }
}

TEST_CASE("without a peak for a format there is no time, and a note says so") {
  const char* program = "input x: f64[n=8 m=8]\ninput y: f64[m=8 k=8]\noutput z = einsum(x, y, \"n m, m k -> n k\")\n";
  const Report report = report_of(program, "l40s");  // its sheet gives no f64
  CHECK(!report.device->step_time_s);
  REQUIRE(!report.notes.empty());
  CHECK(report.notes[0].find("has no peak for some of the dtypes") != std::string::npos);
}

TEST_CASE("on a GPU what an epilogue does is no launch, and launches that run together start once") {
  const auto row = [](const Report& report, std::string_view name) -> const LaunchReport* {
    for (const LaunchReport& launch : report.schedule)
      if (launch.name.starts_with(name) && launch.phase == Phase::forward) return &launch;
    return nullptr;
  };
  const Report together = report_of(kBlocks, "a100-80gb"), apart = report_of(kBlocks, "a100-80gb", {{"epilogues"}}),
               single = report_of(kBlocks, "a100-80gb", {{"join_launches"}});
  const int64_t matrix = 4 * 32 * 256;  // bytes of h
  // The block's second product adds h, whose sum is stored instead of the product: one matrix more is read, and two less than by the
  // launches apart, which write the product and read it again.
  const LaunchReport *fused = row(together, "layer.*: contract v"), *product = row(apart, "layer.*: contract v");
  REQUIRE(fused);
  REQUIRE(product);
  CHECK(fused->name == "layer.*: contract v +1");
  CHECK(fused->count == 2);  // the last sum joins the loss
  CHECK(fused->traffic.work.contraction == product->traffic.work.contraction);
  CHECK(fused->traffic.work.elementwise == product->traffic.work.elementwise + 32 * 256);
  CHECK(fused->traffic.work.bytes_read == product->traffic.work.bytes_read + matrix);
  CHECK(fused->traffic.work.bytes_written == product->traffic.work.bytes_written);
  CHECK(together.schedule.size() < apart.schedule.size());
  CHECK(together.executed_by.flops() == apart.executed_by.flops());
  CHECK(*together.device->step_time_s < *apart.device->step_time_s);
  // Three layers' updates of a param are three launches less two.
  const double launch = together.device->device.launch_s;
  CHECK(*single.device->step_time_s >= *together.device->step_time_s + 4 * launch);
  CHECK(single.schedule.size() == together.schedule.size());
}

// Half of the keys lie behind a causal mask, and of 3 x 3 windows over 7 x 7 places 18 % reach into zeros: what is skipped is no work.
TEST_CASE("where a step skips work that the rules count there is no MFU above one, and the text says why") {
  const char* const attention = R"(
dim s = 4096, t = s, d = 64
input q: f32[s d]
input k: f32[t d]
input v: f32[t d]
masked = where(iota(s) >= iota(t), einsum(q, k, "s d, t d -> s t") / 8, -inf)
output y = einsum(softmax(masked, t), v, "s t, t d -> s d")
)";
  const char* const convolution = R"(
input a: f32[g=8 h=7 w=7 c=512]
input b: f32[ky=3 kx=3 c o=512]
output z = einsum(pad(a, h = (1, 1), w = (1, 1)), b, "g (y + ky) (x + kx) c, ky kx c o -> g y x o")
)";
  struct Row {
    const char *program, *device;
    std::optional<bool> skips;  // or about as much as it falls short of the peak
  };
  for (const Row& row : {Row{attention, "h100-sxm", true}, Row{attention, "cpu", true}, Row{convolution, "cpu", std::nullopt},
                         Row{kBlocks, "cpu", false}, Row{kBlocks, "h100-sxm", false}}) {
    CAPTURE(row.program);
    CAPTURE(row.device);
    const Report report = report_of(row.program, row.device);
    const std::string text = render_text(report, {100, Paint::off});
    const bool says_so = text.find("no MFU: the step skips work that these rules count") != std::string::npos;
    CHECK(says_so != report.device->mfu_at_bound.has_value());
    if (row.skips) CHECK(says_so == *row.skips);
    if (report.device->mfu_at_bound) CHECK(*report.device->mfu_at_bound <= 1);
  }
}

TEST_CASE("on a processor two threads are no faster than one at what one does alone") {
  struct Row {
    const char* program;
    double ratio;  // of the second thread's time to the first's, without what launches take
  };
  const Row rows[] = {
      {"input x: f32[n=1000]\noutput z = tanh(x)\n", 1},
      {"input x: f32[n=100000]\noutput z = tanh(x)\n", 0.5},
      {"input x: f32[time=100 n=1000]\ninput first: f32[n]\ns = first\nscan t in time {\n  s = tanh(s + x[time = t])\n}\noutput s\n", 1},
      {"input x: f32[time=100 n=50000]\ninput first: f32[n]\ns = first\nscan t in time {\n  s = tanh(s + x[time = t])\n}\noutput s\n", 0.5},
      {"input q: f32[rows=16 head=16]\ninput k: f32[keys=16 head]\ninput v: f32[keys head]\n"
       "scores = einsum(q, k, \"rows head, keys head -> rows keys\")\n"
       "output y = einsum(softmax(scores, keys), v, \"rows keys, keys head -> rows head\")\n",
       1},
  };
  const auto time_on = [](const char* program, int threads) {
    const Compilation c = compile_text("m.ein", program, {});
    REQUIRE(c.graph.has_value());
    Processor processor;
    processor.vector_bits = 512, processor.vector_registers = 32;
    ReportOptions options;
    options.device = *find_device("cpu");
    options.device->threads = threads, options.device->f32 *= threads;
    options.device->bandwidth = options.device->cache_bandwidth = 1e15;
    options.device->launch_s = options.device->small_launch_s = 1e-15;
    options.plan = plan_for_processor(processor);
    return *build_report(*c.graph, options).device->step_time_s;
  };
  for (const Row& row : rows) {
    CAPTURE(row.program);
    CHECK(time_on(row.program, 2) / time_on(row.program, 1) == doctest::Approx(row.ratio).epsilon(0.01));
  }
}

// Dot instructions of bf16 are a product's alone.
TEST_CASE("on a processor attention of bf16 is multiplied in f32 but on matrix tiles") {
  const Compilation c = compile_text("attention.ein", R"(
precision bf16
input q: f32[batch=4 heads=4 rows=256 head=64]
input k: f32[batch heads keys=256 head]
input v: f32[batch heads keys head]
scores = einsum(q, k, "batch heads rows head, batch heads keys head -> batch heads rows keys") / sqrt(head)
output y = einsum(softmax(scores, keys), v, "batch heads rows keys, batch heads keys head -> batch heads rows head")
)",
                                     {});
  REQUIRE(c.graph.has_value());
  // In units of its products at the peak of f32.
  const auto time_on = [&](bool tiles) {
    Processor processor;
    processor.vector_bits = 512, processor.vector_registers = 32, processor.bf16_pairs = true, processor.matrix_tiles = tiles;
    ReportOptions options;
    options.device = *find_device("cpu");
    options.device->bf16 = 4 * options.device->f32;
    options.plan = plan_for_processor(processor);
    const Report report = build_report(*c.graph, options);
    for (const LaunchReport& launch : report.schedule)
      if (launch.kind == "attention") return *launch.time_s * options.device->f32 / static_cast<double>(launch.traffic.work.contraction);
    return 0.0;
  };
  CHECK(time_on(false) >= 1);
  CHECK(time_on(true) >= 0.25);
  CHECK(time_on(true) == doctest::Approx(time_on(false) - 0.75).epsilon(0.01));
}

TEST_CASE("on a GPU attention multiplies and does the rest by turns") {
  for (const int head : {32, 64}) {
    // 16 x 12 heads, 512 rows against all 512 keys.
    const std::string program = fmt::format(R"(
precision bf16
input q: f32[batch=16 heads=12 rows=512 head={}]
input k: f32[batch heads keys=512 head]
input v: f32[batch heads keys head]
scores = einsum(q, k, "batch heads rows head, batch heads keys head -> batch heads rows keys") / sqrt(head)
output y = einsum(softmax(scores, keys), v, "batch heads rows keys, batch heads keys head -> batch heads rows head")
)",
                                            head);
    const Report report = report_of(program.c_str(), "h100-sxm");
    const LaunchReport* attention = nullptr;
    for (const LaunchReport& launch : report.schedule)
      if (launch.kind == "attention") attention = &launch;
    REQUIRE(attention);
    const Device& d = report.device->device;
    const double pairs = 16.0 * 12 * 512 * 512, flops = 4 * head * pairs, mma = flops / 4096, clocks = 132 * d.clock;
    REQUIRE(static_cast<double>(attention->traffic.work.contraction) == flops);
    // mma.sync: keys and values, two bytes each, once for 16 rows; 11 instructions for 32 pairs, and two for each of the tensor cores'.
    double products = pairs * 2 * head * 2 / 16 / (128 * clocks), issue = (11 * pairs / 32 + 2 * mma) / (4 * clocks);
    // wgmma: as a library multiplies; 15 instructions for 32 pairs, each of which takes 1.1 slots.
    if (head == 64) products = flops / (d.bf16 * d.sustained_products), issue = 1.1 * 15 * pairs / 32 / (4 * clocks);
    CHECK(*attention->time_s == near_seconds((products + issue) / d.sustained_clock + d.launch_s, 0.001));
  }
}

TEST_CASE("without a loss a step is a run, and takes what that takes") {
  const char* const text = "input x: f32[n=1024]\nstate s: f32[n] ~ zeros\ns <- s * 0.9 + tanh(x)\noutput y = s + x\n";
  for (const char* device : {"cpu", "a100-80gb"}) {
    CAPTURE(device);
    const Report report = report_of(text, device);
    CHECK(*report.memory.peak_training.value == *report.memory.peak_inference.value);
  }
}
