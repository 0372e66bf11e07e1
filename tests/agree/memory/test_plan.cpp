// The memory plan carried out on whole programs: every write takes its interval, every read must still find its own value
// there. Works on owners of 64-byte cells and on nothing that the planner knows about lifetimes.
#include <doctest/doctest.h>

#include <map>

#include "compiler/cost/plan.h"
#include "compiler/elaborate/elaborate.h"
#include "compiler/precision/assign.h"
#include "compiler/report/report.h"
#include "compiler/simplify/simplify.h"

using namespace einc;

namespace {

Graph compiled(const std::string& file, const Bindings& dims, Policy policy) {
  SourceMap sources;
  Diagnostics diagnostics;
  const auto id = sources.load(EINC_SOURCE_DIR "/" + file, diagnostics);
  REQUIRE(id);
  auto graph = elaborate(sources, *id, {.dims = dims, .precision = policy}, diagnostics);
  REQUIRE(graph);
  return assign_precision(simplify(std::move(*graph), Roots::training), policy);
}

class Memory {
 public:
  Memory(const Graph& graph, const MemoryPlan& plan, const Layouts& layouts)
      : graph_(graph),
        plan_(plan),
        layouts_(layouts),
        cells_(static_cast<size_t>(*plan.arena.as_integer() / kArenaAlignment) + 1, kNobody) {}

  // Counts reads that find another value's bytes, and writes outside the arena.
  int run() {
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      if (!plan_.live[i] || layouts_.buffer[i].index != i) continue;
      for (NodeId x : graph_.nodes[i].operands) read(x);
      write(i);
    }
    for (const Output& output : graph_.outputs) read(output.node);
    if (graph_.loss.valid() && plan_.live[graph_.loss.index]) read(graph_.loss);
    for (const Update& update : graph_.updates)
      if (plan_.live[update.value.index]) read(update.value);
    return lost_;
  }

 private:
  static constexpr uint32_t kNobody = UINT32_MAX;

  template <class Visit>
  void each_cell(const Placement& p, Visit visit) {
    for (int64_t c = p.offset / kArenaAlignment; c * kArenaAlignment < p.offset + p.bytes; ++c) {
      if (c >= static_cast<int64_t>(cells_.size()))
        ++lost_;
      else
        visit(cells_[static_cast<size_t>(c)]);
    }
  }
  void read(NodeId x) {
    const uint32_t b = layouts_.buffer[x.index].index;
    const Placement& p = plan_.placements[b];
    bool found = true;
    if (p.region == Region::arena || p.region == Region::shared) each_cell(p, [&](uint32_t owner) { found = found && owner == b; });
    if (p.region == Region::in_place) found = sources_[p.shares.index] == b;
    if (p.region == Region::source) found = !sources_.contains(b);
    if (!found) ++lost_;
  }
  void write(uint32_t i) {
    const Placement& p = plan_.placements[i];
    if (p.region == Region::arena || p.region == Region::shared) each_cell(p, [&](uint32_t& owner) { owner = i; });
    if (p.region == Region::in_place) sources_[p.shares.index] = i;
  }

  const Graph& graph_;
  const MemoryPlan& plan_;
  const Layouts& layouts_;
  std::vector<uint32_t> cells_;           // whose bytes lie in each 64 bytes of the arena
  std::map<uint32_t, uint32_t> sources_;  // params and states that hold a new value already
  int lost_ = 0;
};

void check_plan(const std::string& file, const Bindings& dims) {
  CAPTURE(file);
  for (Policy policy : {Policy::f32, Policy::bf16, Policy::f16, Policy::fp8}) {
    const Graph graph = compiled(file, dims, policy);
    const Layouts layouts = analyse_layouts(graph);
    for (PlanMode mode : {PlanMode::training, PlanMode::inference}) {
      const auto plan = plan_memory(graph, Sizes(graph), layouts, constant_nodes(graph), graph.dims.bind(dims).values, mode);
      REQUIRE(plan);
      CHECK(Memory(graph, *plan, layouts).run() == 0);
    }
    CHECK(peak_training_bytes(graph, dims) ==
          build_report(graph, {.given = dims, .detail = Detail::totals, .device = {}, .training = {}}).memory.peak_training.value);
  }
}

}  // namespace

TEST_CASE("every read finds its value") {
  check_plan("examples/two_layer.ein", {{"batch", 20}, {"width", 7}, {"out", 5}});
  check_plan("examples/gpt2.ein", {{"batch", 2}, {"seq", 9}, {"vocab", 17}, {"layers", 3}, {"heads", 2}, {"head", 5}});
  check_plan("examples/llama.ein",
             {{"batch", 1}, {"seq", 8}, {"vocab", 30}, {"layers", 3}, {"embed", 16}, {"heads", 4}, {"kv_heads", 2}, {"ffn", 24}});
  check_plan("examples/cnn.ein", {{"batch", 2}});
}
