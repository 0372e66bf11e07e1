// SPDX-License-Identifier: Apache-2.0
// A program over a mesh gives what it gives on one device: its partitioned graph in the interpreter, which knows no meshes, beside the
// whole one. Where sums are exact the bits are equal. Faults that a partition could have are planted and found.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>

#include "compiler/context/partition_for_mesh.h"
#include "compiler/ir/text.h"
#include "compiler/pipeline/mesh_program.h"
#include "compiler/pipeline/pipeline.h"
#include "dsl/render.h"
#include "tests/fuzz/random_program.h"
#include "tests/support/agree.h"
#include "tests/support/mesh_examples.h"
#include "tests/support/random_check.h"
#include "tests/support/zoo.h"

using namespace einc;

namespace {

constexpr double kAllowed = 1e-12;

struct Coverage {
  int programs = 0, moving = 0;  // moving: something crosses devices
  int scans = 0;                 // whose iterations are split
};
Coverage coverage;

std::string wrong_partition(const std::string& text, uint64_t seed) {
  std::string problem;
  std::optional<Wanted> given = interpret_text(text, seed, problem, seed % 4 == 0 ? RunMode::inference : RunMode::training);
  if (!given) return problem;
  given->graph.mesh = random_mesh(given->graph, given->graph.dims.bind({}).values, seed);
  auto made = partition_for_mesh(given->graph, {});
  ++coverage.programs;
  if (std::holds_alternative<NoPartition>(made)) return "no partition";
  coverage.moving += !collective_counts(std::get<Partitioned>(made)).empty();
  for (const auto& [scan, positions] : std::get<Partitioned>(made).bodies)
    coverage.scans +=
        std::ranges::any_of(positions, [](const MeshPositions& at) { return std::ranges::any_of(at, [](int m) { return m != kNoMesh; }); });
  Graph whole = given->graph;
  const Partitioned& parts = std::get<Partitioned>(made);
  given->options.arithmetic = Arithmetic::exact;
  const ProgramData data{{}, given->inputs, given->params, given->states, given->options};
  const std::string d = partition_problem(whole, parts, data, kAllowed);
  if (d.empty() || d.starts_with("verify")) return d;
  // Sums in another order are apart by more where what they go into magnifies it.
  given->tolerance = kAllowed;
  given->elaborated = whole;
  given->exact = interpret(whole, {}, given->inputs, given->params, given->states, given->options);
  const InterpretResult found = interpret(parts.graph, {}, given->inputs, given->params, given->states, given->options);
  given->near = {given->exact};
  const std::string certain = certain_difference(*given, {found.outputs, found.loss, found.params, found.states, found.gradients});
  return certain.empty() ? "" : "value: " + certain;
}

Partitioned over_mesh(const Graph& graph, const Bindings& dims) {
  auto made = partition_for_mesh(graph, dims);
  if (const auto* problem = std::get_if<NoPartition>(&made)) FAIL(to_string(graph[problem->node].op), ": ", problem->why);
  return std::get<Partitioned>(std::move(made));
}

constexpr const char* kSmallGpt = "batch=4 seq=6 vocab=16 layers=2 heads=4 head=3";
constexpr const char* kMegatron = "batch=data; heads,hidden,vocab=model";

}  // namespace

TEST_CASE("GPT-2") {
  for (const char* zero : {"", "; states=data", "; gradients=data", "; params=data"})
    for (const std::string mesh : {"data=2", "data=4", "data=2,model=2", "data=1,model=4", "data=4,model=2"}) {
      const bool one = mesh.find("model") == std::string::npos;
      const std::string shard = std::string(one ? "batch=data" : kMegatron) + zero;
      const MeshExample example{"gpt2.ein", kSmallGpt, mesh.c_str(), shard.c_str()};
      const Compilation c = compiled(example, Roots::step);
      const Bindings dims = dims_of(kSmallGpt);
      const Partitioned parts = over_mesh(*c.graph, dims);
      CAPTURE(mesh);
      CAPTURE(shard);
      CHECK(partition_problem(*c.graph, parts, data_for(*c.graph, dims), kAllowed) == "");
    }
}

TEST_CASE("examples") {
  for (const MeshExample& example : mesh_examples()) {
    INFO(example.file, " on ", example.mesh);
    for (const Roots roots : {Roots::training, Roots::inference}) {
      const Compilation c = compiled(example, roots);
      const Bindings dims = dims_of(example.dims);
      const Partitioned parts = over_mesh(*c.graph, dims);
      ProgramData data = data_for(*c.graph, dims);
      if (roots == Roots::inference) data.options.mode = RunMode::inference;
      CHECK(partition_problem(*c.graph, parts, data, kAllowed) == "");
    }
  }
}

// Scales follow from the largest elements of all devices, whose parts of weights are narrowed before they are put together.
TEST_CASE("examples in fp8") {
  for (const char* shard : {"batch=data; params=data", "batch=data; states=data", "batch=data; kv_heads,ffn,vocab=model; params=data"}) {
    CAPTURE(shard);
    const MeshExample example{"llama.ein", "batch=4 seq=4 vocab=12 layers=2 embed=8 heads=2 kv_heads=2 ffn=6", "data=2,model=2", shard, 0,
                              Policy::fp8};
    const Compilation c = compiled(example, Roots::training);
    const Bindings dims = dims_of(example.dims);
    CHECK(partition_problem(*c.graph, over_mesh(*c.graph, dims), data_for(*c.graph, dims), kAllowed) == "");
  }
}

// Terms of products go from device to device in 16 bits, as products lie in memory: also of sums of several, as of queries', keys' and
// values' gradients, and of products of fp8, which are f32 until they have their scales back.
TEST_CASE("what devices add up of products has 16 bits") {
  for (const Policy precision : {Policy::bf16, Policy::fp8}) {
    const MeshExample example{"llama.ein", "batch=4 seq=4 vocab=16 layers=2 embed=8 heads=4 kv_heads=2 ffn=6",
                              "model=2",   "kv_heads,ffn,vocab=model",
                              0,           precision};
    const Compilation c = compiled(example, Roots::step);
    const Partitioned parts = over_mesh(*c.graph, dims_of(example.dims));
    int sums = 0;
    for (const Collective& collective : collectives_of(parts)) {
      const Type& type = parts.graph.type(collective.node);
      if (collective.kind != CollectiveKind::all_reduce || type.rank() < 3) continue;
      CHECK(type.dtype == DType::bf16);
      ++sums;
    }
    CHECK(sums == 2 * 4 + 2);  // of a layer two forward and two backward, of the table's rows and of the head's operand
  }
}

// A table that both ends of the model read is whole in 16 bits alone: in f32 a device has its part.
TEST_CASE("a table that is looked up in parts is put together in 16 bits") {
  for (const char* shard : {"batch=data; states=data", "batch=data; params=data"})
    for (const char* file : {"gpt2.ein", "llama.ein"}) {
      CAPTURE(file);
      const bool tied = std::string_view(file) == "gpt2.ein";
      const char* dims =
          tied ? "batch=4 seq=4 vocab=16 layers=1 heads=2 head=4" : "batch=4 seq=4 vocab=16 layers=1 embed=8 heads=2 kv_heads=2 ffn=8";
      const Compilation c = compiled({file, dims, "data=4", shard, 0, Policy::bf16}, Roots::step);
      const Partitioned parts = over_mesh(*c.graph, dims_of(dims));
      int gathers = 0;
      for (const Collective& collective : collectives_of(parts)) {
        const Type& type = parts.graph.type(collective.node);
        if (collective.kind != CollectiveKind::all_gather || type.axis(0).size != Poly::dim("vocab")) continue;
        CHECK(type.dtype == DType::bf16);
        ++gathers;
      }
      CHECK(gathers >= 1);
      CHECK(partition_problem(*c.graph, parts, data_for(*c.graph, dims_of(dims)), kAllowed) == "");
    }
}

namespace {

// Bytes that one device sends over a mesh axis, scalars left out, in elements of f32.
double sent_elements(const Partitioned& p, const Bindings& dims, std::string_view axis, std::optional<CollectiveKind> kind = std::nullopt) {
  double bytes = 0;
  const Bindings values = p.graph.dims.bind(dims).values;
  for (const Collective& c : collectives_of(p))
    if (p.graph.mesh.axes[static_cast<size_t>(c.mesh_axis)].name.str() == axis && (!kind || c.kind == *kind) &&
        p.graph.type(c.node).rank() > 0)
      bytes += *c.bytes.to_double(values);
  return bytes / 4;
}

double parameters_of(const Graph& graph, const Bindings& dims) {
  double count = 0;
  const Bindings values = graph.dims.bind(dims).values;
  for (const Node& node : graph.nodes)
    if (node.op == Op::param) count += *node.type.count().to_double(values);
  return count;
}

}  // namespace

// Rajbhandari et al. 2020, section 7: 2 P elements a step for plain data parallelism and for stages 1 and 2, 3 P for stage 3.
TEST_CASE("ZeRO: the volumes of its stages") {
  const char* dims_text = "batch=8 seq=4 vocab=16 layers=2 heads=4 head=4";
  const Bindings dims = dims_of(dims_text);
  const auto parts = [&](const char* shard) {
    const Compilation c = compiled({"gpt2.ein", dims_text, "data=4", shard}, Roots::step);
    return over_mesh(*c.graph, dims);
  };
  const Compilation whole = compiled({"gpt2.ein", dims_text, "data=4", "batch=data"}, Roots::step);
  const double share = parameters_of(*whole.graph, dims) * 3 / 4;  // (n - 1)/n of all elements
  const auto plain = parts("batch=data"), one = parts("batch=data; states=data"), two = parts("batch=data; gradients=data"),
             three = parts("batch=data; params=data");
  CHECK(sent_elements(plain, dims, "data") == 2 * share);
  CHECK(sent_elements(plain, dims, "data", CollectiveKind::all_reduce) == 2 * share);
  for (const Partitioned* stage : {&one, &two}) {
    CHECK(sent_elements(*stage, dims, "data", CollectiveKind::reduce_scatter) == share);
    CHECK(sent_elements(*stage, dims, "data", CollectiveKind::all_gather) == share);
    CHECK(sent_elements(*stage, dims, "data") == 2 * share);
  }
  CHECK(sent_elements(three, dims, "data", CollectiveKind::reduce_scatter) == share);
  // Biases and the shifts of norms are not read by the backward: they are put together once.
  const double gathered = sent_elements(three, dims, "data", CollectiveKind::all_gather);
  CHECK(gathered > 1.9 * share);
  CHECK(gathered < 2 * share);
  CHECK(collective_counts(three, Phase::optimizer) == "all_reduce data 1");
}

// Shoeybi et al. 2019: two sums a layer forward and two backward, of [batch seq embed]. Besides, for a vocabulary in parts: the looked-up
// rows, their gradient's counterpart, and three numbers a token.
TEST_CASE("Megatron's sums") {
  for (const int64_t layers : {1, 2, 5}) {
    const std::string dims_text = fmt::format("batch=4 seq=6 vocab=16 layers={} heads=4 head=3", layers);
    const Bindings dims = dims_of(dims_text);
    const Compilation c = compiled({"gpt2.ein", dims_text.c_str(), "model=2", "heads,hidden,vocab=model"}, Roots::step);
    const Partitioned p = over_mesh(*c.graph, dims);
    CHECK(collective_counts(p, Phase::forward) == fmt::format("all_reduce model {}", 2 * layers + 4));
    CHECK(collective_counts(p, Phase::backward) == fmt::format("all_reduce model {}", 2 * layers + 1));
    CHECK(collective_counts(p, Phase::optimizer) == "all_reduce model 1");
    const double tokens = 4 * 6, activations = tokens * 12;  // all_reduce on two devices: 2 (n - 1)/n is 1
    CHECK(sent_elements(p, dims, "model") == static_cast<double>(4 * layers + 2) * activations + 3 * tokens);
  }
}

// Gradients that meet in one place are added before they are summed over devices: of queries, keys and values one sum, of gate and up one.
TEST_CASE("sums are joined, in bf16 too") {
  for (const char* precision : {"bf16", "f32"}) {
    const char* dims_text = "batch=4 seq=4 vocab=12 layers=2 embed=8 heads=4 kv_heads=2 ffn=6";
    const Bindings dims = dims_of(dims_text);
    PipelineOptions options;
    options.dims = dims;
    options.mesh = "model=2", options.shard = "kv_heads,ffn,vocab=model";
    options.precision = *parse_policy(precision);
    options.roots = Roots::step;
    const Compilation c = compile_file("examples/llama.ein", options);
    REQUIRE(c.graph);
    const Partitioned p = over_mesh(*c.graph, dims);
    CAPTURE(precision);
    CHECK(collective_counts(p, Phase::backward) == "all_reduce model 5");
    CHECK(partition_problem(*c.graph, p, data_for(*c.graph, dims), kAllowed) == "");
  }
}

TEST_CASE("iterations of a scan are done in parts, and devices do not meet in them") {
  for (const char* lines : kScanMeshes) {
    CAPTURE(lines);
    const Compilation c = compile_text("m.ein", std::string(lines) + kDrawingScan, {});
    REQUIRE_MESSAGE(c.graph, render_text(c.sources, c.diagnostics));
    const Partitioned parts = over_mesh(*c.graph, {});
    CHECK(partition_problem(*c.graph, parts, data_for(*c.graph, {}), kAllowed) == "");
    int split = 0;
    for (const auto& [scan, positions] : parts.bodies)
      split += std::ranges::any_of(positions, [](const MeshPositions& at) { return std::ranges::find(at, 0) != at.end(); });
    CHECK(split == 2);  // forward and backward
  }
}

TEST_CASE("a value that would have more axes than tensors have is named") {
  std::string axes;
  for (int i = 0; i < 29; ++i) axes += fmt::format(" a{}=1", i);
  Compilation c = compile_text(
      "m.ein", "dim batch = 4\nmesh data = 2, model = 1\nshard batch over data\ninput x: f32[batch" + axes + "]\noutput y = 2 * x\n", {});
  REQUIRE(c.graph);
  CHECK(!partition_program(c, {}));
  REQUIRE(c.diagnostics.list().size() == 1);
  const Diagnostic& d = c.diagnostics.list()[0];
  CHECK(info(d.code).code == std::string_view("E1006"));
  CHECK(d.message.ends_with("with those of the mesh it has more than 31 axes"));
  CHECK(c.sources.begin_of(d.span).line == 4);
}

namespace {

using Fault = std::function<bool(Partitioned& p)>;  // false: there is nothing to spoil

Node* find_node(Partitioned& p, const std::function<bool(const Node&, uint32_t)>& wanted) {
  for (uint32_t i = 0; i < p.graph.size(); ++i)
    if (wanted(p.graph.nodes[i], i)) return &p.graph.nodes[i];
  return nullptr;
}

bool is_mesh_sum(const Partitioned& p, const Node& node) {
  if (node.op != Op::reduce || node.as<ReduceAttr>().fn != ReduceFn::sum) return false;
  return p.positions[node.operands[0].index][static_cast<size_t>(node.as<ReduceAttr>().axes[0])] != kNoMesh;
}

// One device's term in place of the sum over all of them.
bool forget_a_sum(Partitioned& p) {
  Node* node = find_node(p, [&](const Node& n, uint32_t i) { return is_mesh_sum(p, n) && n.type.rank() > 0 && i > 0; });
  if (node == nullptr) return false;
  std::get<ReduceAttr>(node->attr).fn = ReduceFn::max;
  return true;
}

// The mean over a device's part in place of all.
bool mean_of_means(Partitioned& p) {
  Node* node = find_node(p, [](const Node& n, uint32_t) {
    const Poly* value = n.op == Op::constant ? std::get_if<Poly>(&n.as<ConstantAttr>().value) : nullptr;
    return value && !value->is_constant() && value->contains(Name("batch"));
  });
  if (node == nullptr) return false;
  Poly& value = std::get<Poly>(std::get<ConstantAttr>(node->attr).value);
  value = value * Poly::dim(Name("data"));
  return true;
}

// A device takes its neighbour's rows for its own.
bool wrong_coordinate(Partitioned& p) {
  for (uint32_t i = 0; i < p.graph.size(); ++i) {
    if (p.graph.nodes[i].op != Op::map || p.graph.nodes[i].as<MapAttr>().fn != MapFn::sub) continue;
    const NodeId start = p.graph.nodes[i].operands[1];
    if (p.positions[start.index].size() != 1 || p.positions[start.index][0] == kNoMesh) continue;
    std::get<MapAttr>(p.graph.nodes[start.index].attr).fn = MapFn::add;  // coordinate + rows
    return true;
  }
  return false;
}

// Two mesh axes exchanged where parts are put together.
bool exchanged_axes(Partitioned& p) {
  for (uint32_t i = 0; i < p.graph.size(); ++i) {
    Node& node = p.graph.nodes[i];
    if (node.op != Op::permute || p.edge[i]) continue;
    AxisList& order = std::get<PermuteAttr>(node.attr).order;
    const MeshPositions& from = p.positions[node.operands[0].index];
    for (int a = 0; a + 1 < order.size(); ++a)
      if (from[static_cast<size_t>(order[a])] != kNoMesh && from[static_cast<size_t>(order[a + 1])] != kNoMesh) {
        const int first = order[a];
        order.set(a, order[a + 1]);
        order.set(a + 1, first);
        return true;
      }
  }
  return false;
}

// A device takes the first of its rows for all that it has.
bool too_few_rows(Partitioned& p) {
  for (uint32_t i = 0; i < p.graph.size(); ++i) {
    Node& node = p.graph.nodes[i];
    if (node.op != Op::map || node.as<MapAttr>().fn != MapFn::less) continue;
    Node& bound = p.graph[node.operands[1]];
    const Poly* rows = bound.op == Op::constant ? std::get_if<Poly>(&bound.as<ConstantAttr>().value) : nullptr;
    if (!rows || !rows->contains(Name("model"))) continue;
    std::get<ConstantAttr>(bound.attr).value = Poly(1);
    return true;
  }
  return false;
}

std::string problem_with(const Fault& fault, const Graph& graph, const Bindings& dims, const ProgramData& data) {
  Partitioned p = over_mesh(graph, dims);
  if (fault && !fault(p)) return "nothing to spoil";
  try {
    return partition_problem(graph, p, data, kAllowed);
  } catch (const std::exception& e) {
    return std::string("stopped: ") + e.what();
  }
}

}  // namespace

TEST_CASE("whole numbers: equal bits on every mesh up to 8 devices") {
  std::string problem;
  for (uint64_t seed = 0; seed < 66; ++seed) {
    std::optional<Wanted> given = interpret_text(kWholeNumbers, seed, problem);
    REQUIRE_MESSAGE(given.has_value(), problem);
    set_whole_numbers(given->inputs, seed);
    set_whole_numbers(given->params, seed);
    set_whole_numbers(given->states, seed);
    given->graph.mesh = random_mesh(given->graph, given->graph.dims.bind({}).values, seed);
    const Partitioned parts = over_mesh(given->graph, {});
    CAPTURE(seed);
    CHECK(partition_problem(given->graph, parts, {{}, given->inputs, given->params, given->states, {}}, 0) == "");
  }
}

TEST_CASE("faults are found") {
  const Bindings dims = dims_of(kSmallGpt);
  const MeshExample example{"gpt2.ein", kSmallGpt, "data=2,model=2", "batch=data; heads,hidden,vocab=model; states=data"};
  const Compilation c = compiled(example, Roots::step);
  const ProgramData data = data_for(*c.graph, dims);
  CHECK(problem_with({}, *c.graph, dims, data) == "");
  const std::pair<std::string, Fault> faults[] = {{"a sum forgotten", forget_a_sum},
                                                  {"mean of means", mean_of_means},
                                                  {"another's rows", wrong_coordinate},
                                                  {"mesh axes exchanged", exchanged_axes},
                                                  {"rows forgotten", too_few_rows}};
  for (const auto& [name, fault] : faults) {
    const std::string problem = problem_with(fault, *c.graph, dims, data);
    INFO(name);
    CHECK(problem != "");
    CHECK(problem != "nothing to spoil");
  }
}

TEST_CASE("random programs on random meshes") {
  coverage = {};
  check_random_programs(1, 600, wrong_partition);
  MESSAGE(coverage.moving, " of ", coverage.programs, " move something, ", coverage.scans, " scans are split");
  CHECK(coverage.moving >= coverage.programs / 4);
}

TEST_CASE("programs that were once compiled wrongly, on random meshes") { check_regress_programs(wrong_partition); }
