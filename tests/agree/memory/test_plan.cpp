// The plan of buffers carried out on whole programs: every launch takes the places of what it writes, and must still find
// its operands' values in theirs. Works on owners of 64-byte cells and on nothing that the planner knows about lifetimes.
#include <doctest/doctest.h>

#include <vector>

#include "compiler/elaborate/elaborate.h"
#include "compiler/fuse/form_graph.h"
#include "compiler/precision/assign.h"
#include "compiler/report/report.h"
#include "compiler/simplify/expand.h"
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
  return assign_precision(simplify(expand(std::move(*graph), Roots::training), Roots::training), policy);
}

class Memory {
 public:
  explicit Memory(const FormedGraph& formed)
      : formed_(formed), cells_(static_cast<size_t>(formed.plan.total_bytes / kBufferAlignment) + 1, kNobody) {
    for (uint32_t i = 0; i < formed.plan.buffers.size(); ++i)
      if (formed.plan.buffers[i].place == BufferPlace::source) own(i, i);
  }

  // Reads that find another value's bytes, and places beyond the mapping.
  int run() {
    for (const GraphKernel& k : formed_.list.kernels) {
      for (size_t b = 0; b < k.buffers.size(); ++b)
        if (k.kernel->buffers[b].access == BufferAccess::read && k.buffers[b].valid()) read(k.buffers[b]);
      for (const Parts& parts : k.parts) visit_parts(k.kernel->buffers[parts.buffer], parts.offset);
      for (size_t b = 0; b < k.buffers.size(); ++b)
        if (k.kernel->buffers[b].access != BufferAccess::read && k.buffers[b].valid())
          own(place_of(k.buffers[b].index), k.buffers[b].index);
    }
    const Graph& graph = formed_.bound.graph;
    for (const Output& output : graph.outputs) read(output.node);
    if (graph.loss.valid() && formed_.list.in_memory[graph.loss.index]) read(graph.loss);
    for (const Update& update : graph.updates)
      if (formed_.list.in_memory[update.value.index]) read(update.value);
    return lost_;
  }

 private:
  static constexpr uint32_t kNobody = UINT32_MAX, kParts = uint32_t{1} << 31;

  uint32_t place_of(uint32_t i) const {
    const BufferPlan::Buffer& b = formed_.plan.buffers[i];
    return b.place == BufferPlace::in_target ? b.target.index : i;
  }
  template <class Visit>
  void each_cell(uint32_t place, Visit visit) {
    const BufferPlan::Buffer& b = formed_.plan.buffers[place];
    for (int64_t c = b.offset / kBufferAlignment; c * kBufferAlignment < b.offset + b.bytes; ++c) {
      if (c * kBufferAlignment >= formed_.plan.total_bytes)
        ++lost_;
      else
        visit(cells_[static_cast<size_t>(c)]);
    }
  }
  // Parts of sums belong to the place where they start.
  void visit_parts(const BufferUse& use, int64_t offset) {
    const int64_t begin = formed_.plan.parts_offset + offset, end = begin + use.count * bytes_of(use.dtype);
    for (int64_t c = begin / kBufferAlignment; c * kBufferAlignment < end; ++c) {
      uint32_t& cell = cells_.at(static_cast<size_t>(c));
      const auto owner = kParts + static_cast<uint32_t>(begin / kBufferAlignment);
      if (use.access == BufferAccess::read && cell != owner) ++lost_;
      cell = owner;
    }
  }
  void own(uint32_t place, uint32_t owner) {
    each_cell(place, [&](uint32_t& cell) { cell = owner; });
  }
  void read(NodeId x) {
    bool found = true;
    each_cell(place_of(x.index), [&](uint32_t cell) { found = found && cell == x.index; });
    if (!found) ++lost_;
  }

  const FormedGraph& formed_;
  std::vector<uint32_t> cells_;  // whose bytes lie in each 64 bytes of the mapping
  int lost_ = 0;
};

void check_plan(const std::string& file, const Bindings& dims) {
  CAPTURE(file);
  for (Policy policy : {Policy::f32, Policy::bf16, Policy::f16, Policy::fp8}) {
    const Graph graph = compiled(file, dims, policy);
    for (RunMode mode : {RunMode::training, RunMode::inference})
      for (Fusion fusion : {Fusion::off, Fusion::on}) {
        const FormedGraph formed = form_graph(graph, dims, mode, fusion);
        CHECK(Memory(formed).run() == 0);
      }
    CHECK(peak_training_bytes(graph, dims, Processor()) ==
          build_report(graph, {.given = dims, .detail = Detail::totals, .device = {}, .training = {}}).memory.peak_training.value);
  }
}

}  // namespace

TEST_CASE("the gradients of a table that is read twice are one buffer") {
  const Graph graph =
      compiled("examples/gpt2.ein", {{"batch", 2}, {"seq", 9}, {"vocab", 17}, {"layers", 1}, {"heads", 2}, {"head", 5}}, Policy::f32);
  const FormedGraph formed =
      form_graph(graph, {{"batch", 2}, {"seq", 9}, {"vocab", 17}, {"layers", 1}, {"heads", 2}, {"head", 5}}, RunMode::training);
  REQUIRE(formed.list.continued.size() == 2);  // of the logits too: that of the softmax, then those of the targets
  for (const auto& [base, whole] : formed.list.continued) {
    CHECK(formed.plan.buffers[base.index].place == BufferPlace::in_target);
    CHECK(formed.plan.buffers[base.index].target == whole);
  }
  const auto& [base, whole] = formed.list.continued[1];
  CHECK(graph[base].op == Op::contract);
  CHECK(formed.plan.buffers[whole.index].place == BufferPlace::gradient);
}

TEST_CASE("every read finds its value") {
  check_plan("examples/two_layer.ein", {{"batch", 20}, {"width", 7}, {"out", 5}});
  check_plan("examples/gpt2.ein", {{"batch", 2}, {"seq", 9}, {"vocab", 17}, {"layers", 3}, {"heads", 2}, {"head", 5}});
  check_plan("examples/llama.ein",
             {{"batch", 1}, {"seq", 8}, {"vocab", 30}, {"layers", 3}, {"embed", 16}, {"heads", 4}, {"kv_heads", 2}, {"ffn", 24}});
  check_plan("examples/cnn.ein", {{"batch", 2}});
  check_plan("examples/two_layer.ein", {{"batch", 700}, {"width", 8}, {"out", 192}});  // a loss that is summed in parts
}
