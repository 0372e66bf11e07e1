// SPDX-License-Identifier: Apache-2.0
// The search for a mesh beside brute force: every factorisation, every assignment of names, spread and micro-batch, each compiled from the
// lines that ask for it, partitioned at its own sizes and estimated by the same formulas.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <span>

#include <algorithm>
#include <limits>
#include <numeric>

#include "compiler/context/partition_for_mesh.h"
#include "compiler/pipeline/mesh_program.h"
#include "compiler/report/communication.h"
#include "compiler/report/mesh_step.h"
#include "dsl/render.h"
#include "tests/support/near_seconds.h"
#include "tests/unit/plan/planned.h"

namespace einc {
namespace {

constexpr PlanCase kCases[] = {{"gpt2.ein", kTinyGpt, 4, 80e9},
                               {"gpt2.ein", kTinyGpt, 8, 400e3},
                               {"gpt2.ein", kTinyGpt, 6, 500e3},
                               {"llama.ein", kTinyLlama, 8, 500e3},
                               {"mlp.ein", "batch=64 features=32 hidden=48 classes=8", 16, 80e9},
                               {"attention.ein", "batch=4 seq=8 heads=2 head=4", 4, 80e9},
                               {"deep_linear.ein", "batch=12 width=6 layers=6", 6, 80e9},
                               {"deep_linear.ein", "batch=12 width=5 layers=6", 6, 6600},
                               {"two_layer.ein", "batch=12 width=6 out=12", 12, 80e9}};

void factorise(int64_t devices, size_t axes, std::vector<int64_t> sizes, std::vector<std::vector<int64_t>>& all) {
  if (axes == 0) {
    if (devices == 1) all.push_back(sizes);
    return;
  }
  for (int64_t size = 2; size <= devices; ++size) {
    if (devices % size != 0) continue;
    sizes.push_back(size);
    factorise(devices / size, axes - 1, sizes, all);
    sizes.pop_back();
  }
}

// Names that one axis may split: one of the data, or a maximal set of the others. Found by trying all subsets.
std::vector<std::vector<Name>> splittable(const std::vector<SplitName>& names) {
  const auto share = [&](const SplitName& a, const SplitName& b) {
    for (const SplitPlace& p : a.places)
      for (const SplitPlace& q : b.places)
        if (p.declared == q.declared && p.path == q.path) return true;
    return false;
  };
  std::vector<uint32_t> sets;
  std::vector<std::vector<Name>> result;
  for (uint32_t set = 1; set < (1u << names.size()); ++set) {
    bool good = true;
    for (size_t i = 0; i < names.size(); ++i)
      for (size_t k = 0; k < names.size(); ++k)
        if (set >> i & 1 && set >> k & 1 && (names[i].of_data || (i != k && share(names[i], names[k])))) good = false;
    if (good) sets.push_back(set);
  }
  for (const SplitName& name : names)
    if (name.of_data) result.push_back({name.name});
  for (const uint32_t set : sets) {
    const bool maximal = std::ranges::none_of(sets, [&](uint32_t other) { return other != set && (other & set) == set; });
    if (!maximal) continue;
    std::vector<Name>& made = result.emplace_back();
    for (size_t i = 0; i < names.size(); ++i)
      if (set >> i & 1) made.push_back(names[i].name);
  }
  return result;
}

class BruteForce {
 public:
  explicit BruteForce(const Planned& p)
      : p_(p), names_(split_names(*p.whole.graph, p.declared)), few_(p.whole, p.options, p.dims()), splittable_(splittable(names_)) {
    PipelineOptions options = p_.options;
    const Compilation one = compile_again(p_.whole, options, few_.folding());
    Bindings dims = few_.folding();
    dims[batch()] = std::max<int64_t>(1, p_.dims().at(batch()) / p_.given.devices);
    placed_ = placed_ways(*one.graph, dims, plans_for(p_.device), loop());
  }

  void run() {
    const int64_t devices = p_.given.devices;
    for (int64_t stages = 1; stages <= devices; ++stages) {
      if (devices % stages != 0 || (stages > 1 && (loop().empty() || stages > p_.dims().at(loop())))) continue;
      stages_ = stages;
      for (size_t axes = 0; axes <= 3; ++axes) {
        std::vector<std::vector<int64_t>> sizes;
        factorise(devices / stages, axes, {}, sizes);
        for (const auto& chosen : sizes) assign(chosen, {});
      }
    }
  }
  double best = std::numeric_limits<double>::infinity(), least = std::numeric_limits<double>::infinity();
  std::string fastest, smallest;
  size_t tried = 0;

 private:
  Name batch() const { return Name("batch"); }
  Name loop() const { return few_.counts().empty() ? Name() : Name("layers"); }
  const SplitName& named(Name name) const { return *std::ranges::find(names_, name, &SplitName::name); }

  void assign(const std::vector<int64_t>& sizes, std::vector<size_t> sets) {
    if (sets.size() < sizes.size()) {
      for (size_t s = 0; s < splittable_.size(); ++s) {
        sets.push_back(s);
        assign(sizes, sets);
        sets.pop_back();
      }
      return;
    }
    MeshWay way;
    if (stages_ > 1) way.stages = WayStages{"steps", stages_, loop()};
    int64_t most = p_.dims().at(batch());  // micro-batches
    bool twice = false, data = false;
    for (size_t k = 0; k < sizes.size(); ++k) {
      const std::vector<Name>& set = splittable_[sets[k]];
      const bool of_data = named(set[0]).of_data;
      data |= of_data;
      int64_t parts = 1;
      bool outer = false;
      for (size_t j = 0; j < sizes.size(); ++j) {
        if (j != k && sets[j] == sets[k]) {
          if (set != std::vector<Name>{batch()}) return;
          twice = true;
          outer |= j > k;
        } else if (j != k) {
          for (const Name name : set)
            if (std::ranges::find(splittable_[sets[j]], name) != splittable_[sets[j]].end()) return;
        }
        if (sets[j] == sets[k]) parts *= sizes[j];
      }
      if (std::ranges::count(sets, sets[k]) > 2) return;
      WayAxis axis{fmt::format("axis{}", k), sizes[k], {}, of_data && !outer};
      for (const Name name : set)
        if (std::ranges::all_of(named(name).places,
                                [&](const SplitPlace& place) { return *place.size.evaluate_integer(p_.dims()) % parts == 0; }))
          axis.split.push_back(name);
      if (axis.split.empty()) return;
      if (axis.split[0] == batch()) most /= axis.size;
      way.axes.push_back(axis);
    }
    if (way.axes.size() == 3 && !data) return;  // three axes of params: not looked through
    for (const Spread spread : kSpreads) {
      if ((spread != Spread::nothing && !data) || (spread == Spread::nothing && twice)) continue;
      for (int64_t micro = 1; micro <= p_.dims().at(batch()); ++micro) {
        if (spread == Spread::states && micro > 1 && stages_ == 1) continue;
        if (stages_ > 1 && micro < std::min(stages_, most)) continue;  // more than half of the step idle, while more would do
        way.spread = spread, way.micro_batches = micro;
        estimate(way);
      }
    }
  }

  // Through the lines that the way asks to paste.
  void estimate(const MeshWay& way) {
    const int64_t batch_size = p_.dims().at(batch());
    if (batch_size % way.micro_batches != 0) return;
    PipelineOptions options = p_.options;
    options.without_mesh = false;
    // The program that formulas are read off has fewer iterations than there may be stages: formulas are the same for any number.
    MeshWay asked = way;
    if (asked.stages) asked.stages->count = 2;
    options.mesh = asked.mesh(), options.shard = asked.shard();
    Bindings dims = few_.folding();
    dims[batch()] = way.stages ? batch_size : batch_size / way.micro_batches;
    const std::string key = fmt::format("{} {} x{}", way.mesh(), way.shard(), way.micro_batches);
    const Compilation c = compile_again(p_.whole, options, dims);
    if (!c.graph) return;  // the micro-batch is not divided
    const auto made = partition_for_mesh(*c.graph, dims);
    if (!std::holds_alternative<Partitioned>(made)) return;
    ++tried;
    Bindings all = c.graph->dims.bind(dims).values;
    for (const auto& [name, value] : p_.dims())
      if (name != batch()) all[name] = value;
    const StepFormulas formulas(*c.graph, std::get<Partitioned>(made), placed_, p_.device, all, batch());
    StepEstimate estimate(formulas, way, batch_size, p_.dims().contains(loop()) ? p_.dims().at(loop()) : 0, p_.device);
    if (const double total = estimate.held().least.total(); total < least) least = total, smallest = key;
    if (!estimate.fit(p_.device.usable_bytes())) return;
    std::vector<int> order(way.axes.size());
    std::iota(order.begin(), order.end(), 0);
    const double seconds = estimate.seconds(order).total();
    if (seconds < best) best = seconds, fastest = key;
  }

  const Planned& p_;
  const std::vector<SplitName> names_;
  const FewIterations few_;
  const std::vector<std::vector<Name>> splittable_;
  PlacedWays placed_;
  int64_t stages_ = 1;
};

}  // namespace

// Brute force compiles hundreds of programs: the small ones alone but with EINC_ALL_PLANS=1 (80 s), and under AddressSanitizer.
std::span<const PlanCase> cases_tried() {
  const bool all = std::getenv("EINC_ALL_PLANS") != nullptr;
  return all ? std::span(kCases) : std::span(kCases).last(5);
}

TEST_CASE("plans: the best way is that of brute force") {
  for (const PlanCase& c : cases_tried()) {
    CAPTURE(c.file);
    CAPTURE(c.devices);
    const Planned p(c);
    BruteForce brute(p);
    brute.run();
    PlannedWays ways(p, p.dims().at(Name("batch")) / c.devices);
    auto& [programs, placed] = ways;
    const FoundWays found = WaySearch(programs, placed, p.device).search(c.devices, 10);
    REQUIRE(brute.tried > 0);
    INFO("brute force: ", brute.fastest, " of ", brute.tried);
    REQUIRE(!found.best.empty());
    INFO("search: ", found.best[0].way.mesh(), " ", found.best[0].way.shard(), " x", found.best[0].way.micro_batches);
    // Formulas of a kind of way are read off its first sizes: for stages also where others' layouts differ a little.
    CHECK(found.best[0].seconds.total() == near_seconds(brute.best, found.best[0].way.stages ? 1e-4 : 1e-9));
    INFO("smallest by brute force: ", brute.smallest);
    REQUIRE(!found.smallest.empty());
    double least = std::numeric_limits<double>::infinity();
    for (const EstimatedWay& way : found.smallest) least = std::min(least, ways.least_by_formulas(p, way.way, p.device));
    CHECK(least == doctest::Approx(brute.least).epsilon(1e-9));
    for (size_t i = 1; i < found.best.size(); ++i) CHECK(found.best[i - 1].seconds.total() <= found.best[i].seconds.total());
    for (const EstimatedWay& way : found.best) CHECK(way.held.total() <= p.device.usable_bytes());
  }
}

TEST_CASE("plans: names and sets come from the program") {
  const auto sets_of = [](const char* file, const char* dims) {
    const Planned p({file, dims, 2, 80e9});
    const std::vector<SplitName> names = split_names(*p.whole.graph, p.declared);
    std::string text;
    for (const SplitName& name : names)
      if (name.of_data) text += name.name.str() + "; ";
    for (const auto& set : sets_of_params(names)) {
      for (const size_t i : set) text += names[i].name.str() + " ";
      text += "| ";
    }
    return text;
  };
  CHECK(sets_of("gpt2.ein", kTinyGpt) == "batch; seq; vocab heads hidden | vocab head hidden | vocab three hidden | embed | ");
}

// Each of the lines told is of a program that compiles; of one that draws its data they split what is drawn.
TEST_CASE("plans: recurrences, and programs that draw their data") {
  const PlanCase cases[] = {{"../tests/zoo/models/lstm.ein", "batch=8 seq=3 hidden=8 vocab=8", 4, 80e9},
                            {"lstm.ein", "batch=8 hidden=8", 4, 80e9}};
  for (const PlanCase& c : cases) {
    CAPTURE(c.file);
    const Planned p(c);
    const MeshAdvice advice = advise(p.whole, p.options, p.declared, plans_for(p.device), p.device, c.devices);
    const auto splits_batch = [](const AdvisedWay& way) { return way.scheduled.way.shard().find("batch=data") != std::string::npos; };
    CHECK(std::ranges::any_of(advice.ways, splits_batch));
    for (const AdvisedWay& way : advice.ways) {
      PipelineOptions meshed = p.options;
      meshed.without_mesh = false, meshed.mesh = way.scheduled.way.mesh(), meshed.shard = way.scheduled.way.shard();
      const Compilation again = compile_file(std::string("examples/") + c.file, meshed);
      REQUIRE_MESSAGE(again.graph.has_value(), render_text(again.sources, again.diagnostics));
    }
  }
}

TEST_CASE("plans: what a program calls its own is not asked to be spread") {
  const std::string text =
      "dim batch = 8, states = 16, n = 8\ninput x: [batch states]\nparam w: [states gradients=n] ~ normal(std = 0.1)\n"
      "loss = mean(einsum(x, w, \"batch states, states n -> batch n\")^2)\nminimize loss using adam(lr = 0.1)\n";
  PipelineOptions options;
  DeclaredAxes declared;
  options.declared = [&](Op op, Name path, const std::vector<DeclaredAxis>& axes) { declared[{op, path.str()}] = axes; };
  const Compilation c = compile_text("own.ein", text, options);
  REQUIRE_MESSAGE(c.graph.has_value(), render_text(c.sources, c.diagnostics));
  CHECK(spreads_of(*c.graph, declared) == std::vector{Spread::nothing, Spread::params});
  // The lines of a plan mean what it has estimated.
  const Device device = small_device(80e9);
  const MeshAdvice advice = advise(c, {}, declared, plans_for(device), device, 4);
  REQUIRE(!advice.ways.empty());
  for (const AdvisedWay& way : advice.ways) {
    const MeshWay& asked = way.scheduled.way;
    CHECK((asked.spread == Spread::nothing || asked.spread == Spread::params));
    PipelineOptions meshed;
    meshed.mesh = asked.mesh(), meshed.shard = asked.shard();
    const Compilation again = compile_text("own.ein", text, meshed);
    REQUIRE_MESSAGE(again.graph.has_value(), render_text(again.sources, again.diagnostics));
    CHECK(again.graph->mesh.states.empty());
    CHECK(again.graph->mesh.params.empty() == (asked.spread == Spread::nothing));
  }
}

TEST_CASE("plans: few iterations tell of all") {
  const Planned p({"gpt2.ein", kTinyGpt, 4, 80e9});
  PlannedWays ways(p, 8);
  auto& [programs, placed] = ways;
  REQUIRE(programs.count() == 2);
  const PlanStep plan = plan_for_device({}, p.device);
  for (const Spread spread : kSpreads) {
    const MeshWay way{{{"data", 2, {Name("batch")}, true}, {"model", 2, {Name("heads"), Name("hidden"), Name("vocab")}, false}}, spread, 1};
    const auto scheduled = WayScheduler(programs, placed, ways.plans(p.device), p.device).schedule(way);
    REQUIRE(scheduled.has_value());
    const MeshExample example{"gpt2.ein", kTinyGpt, "data=2,model=2", "", 0};
    const std::string shard = way.shard();
    MeshExample asked = example;
    asked.shard = shard.c_str();
    Compilation whole = compiled(asked);
    const auto partitioned = partition_program(whole, dims_of(kTinyGpt));
    REQUIRE(partitioned.has_value());
    const Localized local = localize(*partitioned);
    const MeshReport report = mesh_report(*whole.graph, *partitioned, local, dims_of(kTinyGpt), &p.device);
    CHECK(scheduled->bytes == *report.bytes.value);
    CHECK(scheduled->flops == *report.flops.value);
    CHECK(scheduled->seconds.sent == near_seconds(*report.time_s, 1e-9));
    // Updates of one shape are one launch up to a number: launches of so small a program do not grow evenly with its layers.
    const auto line = mesh_step(local, dims_of(kTinyGpt), plan, {}, &p.device, report.collective_times).line;
    REQUIRE(line.has_value());
    CHECK(scheduled->seconds.work == near_seconds(line->compute_s, 0.03));
    CHECK(scheduled->seconds.total() == near_seconds(line->end_s, 0.03));
    CHECK(scheduled->held.params == doctest::Approx(report.parameters.value->to_double()));
    CHECK(scheduled->held.gradients == doctest::Approx(report.gradients.value->to_double()));
    CHECK(scheduled->held.states == doctest::Approx(report.optimizer_state.value->to_double()));
  }
}

TEST_CASE("plans: of one device, memory is what a plan holds") {
  for (const PlanCase& c : {PlanCase{"gpt2.ein", "batch=8", 8, 80e9}, PlanCase{"llama.ein", "batch=8 layers=6", 8, 80e9}}) {
    const Planned p(c);
    const Device& h100 = *find_device("h100-sxm");
    const PlanStep plan = plan_for_device({}, h100);
    PlannedWays ways(p, 1, h100);
    auto& [programs, placed] = ways;
    WaySearch search(programs, placed, h100);
    const auto estimated = search.estimate({{{"data", 8, {Name("batch")}, true}}, Spread::nothing, 1});
    REQUIRE(estimated.has_value());
    Bindings alone = p.options.dims;
    alone[Name("batch")] = 1;
    const double planned = static_cast<double>(plan(*p.whole.graph, alone, RunMode::training, {}).memory.total());
    CHECK(estimated->held.total() == doctest::Approx(planned).epsilon(0.1));
    // Likewise where the backward makes iterations again.
    Scheduling again;
    again.memory_limit = MemoryLimit{0, 0, 1, MemoryGoal::whole_iterations};
    const double least = static_cast<double>(plan_for_device(again, h100)(*p.whole.graph, alone, RunMode::training, {}).memory.total());
    CHECK(least < planned);
    CHECK(ways.least_by_formulas(p, estimated->way, h100) == doctest::Approx(least).epsilon(0.1));
    Device tight = h100;
    tight.memory_bytes = 0;
    const auto scheduled = WayScheduler(programs, placed, ways.plans(h100), tight).schedule(estimated->way);
    REQUIRE(scheduled.has_value());
    CHECK(!scheduled->fits);
    CHECK(scheduled->held.total() == doctest::Approx(least).epsilon(0.02));
  }
}

// Keys and values of a split sequence are put together once, and the backward reads them.
TEST_CASE("plans: memory of a split sequence is that of its report") {
  const Planned p({"gpt2.ein", "batch=64 vocab=50304 layers=6", 8, 80e9});
  const Device& h100 = *find_device("h100-sxm");
  PlannedWays ways(p, 8, h100);
  const PlanStep plan = plan_for_device({}, h100);
  for (const int64_t parts : {2, 8}) {
    const MeshWay way{{{"context", parts, {Name("seq")}, true}}, Spread::nothing, 1};
    PipelineOptions options = p.options;
    options.without_mesh = false;
    options.mesh = way.mesh(), options.shard = way.shard();
    Compilation c = compile_again(p.whole, options, p.options.dims);
    REQUIRE(c.graph.has_value());
    const auto made = partition_for_mesh(*c.graph, p.options.dims);
    const MeshStep step = mesh_step(localize(std::get<Partitioned>(made)), p.options.dims, plan, {}, nullptr, {});
    const auto scheduled = WayScheduler(ways.programs, ways.placed, ways.plans(h100), h100).schedule(way);
    REQUIRE(scheduled.has_value());
    CHECK(scheduled->held.total() == doctest::Approx(static_cast<double>(step.peak())).epsilon(0.02));
  }
}

TEST_CASE("plans: where no way fits as it is, the backward recomputes, and the lines say so") {
  if (kFewCases) return;
  const auto advice_of = [](double memory) {
    const Planned p({"gpt2.ein", kTinyGpt, 4, memory});
    return advise(p.whole, p.options, p.declared, plans_for(p.device), p.device, 4, {}, 4);
  };
  const MeshAdvice roomy = advice_of(80e9);
  REQUIRE(!roomy.ways.empty());
  for (const AdvisedWay& way : roomy.ways) CHECK(!way.scheduled.way.recomputes);
  double memory = roomy.ways[0].scheduled.held.total();
  for (const AdvisedWay& way : roomy.ways) memory = std::min(memory, way.scheduled.held.total());
  size_t recompute = 0;
  for (int tries = 0; tries < 6 && recompute == 0; ++tries, memory *= 0.9) {
    const MeshAdvice advice = advice_of(memory);
    CAPTURE(memory);
    for (const AdvisedWay& way : advice.ways) {
      const ScheduledWay& s = way.scheduled;
      CHECK(s.held.total() <= advice.device.usable_bytes());
      CHECK((s.again > 0) == s.way.recomputes);
      CHECK((options_of(advice, s.way).find(" --memory-limit ") != std::string::npos) == s.way.recomputes);
      recompute += s.way.recomputes;
    }
  }
  CHECK(recompute > 0);
}

}  // namespace einc
