// SPDX-License-Identifier: Apache-2.0
// Attention whose keys go round in a ring: results of the whole program, blocks to the neighbour and nothing else, and faults that a ring
// could have.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>
#include <map>
#include <string>

#include "compiler/context/partition_for_mesh.h"
#include "tests/support/context_programs.h"
#include "tests/support/mesh_examples.h"

using namespace einc;

namespace {

constexpr double kAllowed = 1e-12;

// Elements of f32 that a device sends from neighbour to neighbour.
double shifted_elements(const Partitioned& p, Phase phase) {
  double bytes = 0;
  for (const Collective& c : collectives_of(p))
    if (c.kind == CollectiveKind::shift && p.graph[c.node].origin.phase == phase) bytes += *c.bytes.to_double(p.graph.dims.bind({}).values);
  return bytes / 4;
}

int count_of(const Partitioned& p, CollectiveKind kind) {
  return static_cast<int>(std::ranges::count(collectives_of(p), kind, &Collective::kind));
}

}  // namespace

TEST_CASE("ring: results are those of the whole program, and blocks alone go from neighbour to neighbour") {
  check_on_meshes({"context = 2", "context = 4", "context = 8", "data = 2, context = 2", "context = 2, model = 2"}, true,
                  [](const ContextProgram& program, const std::string& mesh, Roots roots, const Partitioned& parts) {
                    CHECK(count_of(parts, CollectiveKind::all_gather) == 0);
                    CHECK(count_of(parts, CollectiveKind::reduce_scatter) == 0);
                    const int n = mesh.find('8') != std::string::npos ? 8 : mesh.find('4') != std::string::npos ? 4 : 2;
                    const int apart = mesh.find(',') == std::string::npos ? n : 2 * n;
                    const double block = 2.0 * 2 * 8 * 4 / apart;                               // batch heads seq head
                    if (std::string(program.scores).find("keep") != std::string::npos) return;  // one number of a key besides
                    CHECK(shifted_elements(parts, Phase::forward) == 2 * (n - 1) * block);
                    CHECK(shifted_elements(parts, Phase::backward) == (roots == Roots::training ? (2 * (n - 1) + 2 * n) * block : 0));
                  });
}

namespace {

using Fault = std::function<bool(Graph& g)>;  // false: there is nothing to spoil

bool is_map(const Graph& g, NodeId id, MapFn fn) { return g[id].op == Op::map && g[id].as<MapAttr>().fn == fn; }

// Each device meets the keys of the step before once more.
bool stale_block(Graph& g) {
  for (Node& node : g.nodes)
    if (node.op == Op::shift && g[node.operands[0]].op == Op::shift) return node.operands[0] = g[node.operands[0]].operands[0], true;
  return false;
}

bool other_direction(Graph& g) {
  bool any = false;
  for (Node& node : g.nodes)
    if (node.op == Op::shift && node.origin.phase == Phase::forward) std::get<ShiftAttr>(node.attr).by = 3, any = true;
  return any;
}

bool is_rescaled(const Graph& g, NodeId id) {
  return is_map(g, id, MapFn::mul) && is_map(g, g[id].operands[1], MapFn::exp) && is_map(g, g[g[id].operands[1]].operands[0], MapFn::sub);
}

// What is added to the rescaled result so far is left out.
bool block_left_out(Graph& g) {
  for (uint32_t i = 0; i < g.size(); ++i) {
    const Node& node = g.nodes[i];
    if (!is_map(g, NodeId{i}, MapFn::add) || !is_rescaled(g, node.operands[0]) || g[node.operands[1]].op != Op::contract) continue;
    const NodeId before = node.operands[0];
    for (Node& reader : g.nodes)
      for (NodeId& x : reader.operands)
        if (x == NodeId{i}) x = before;
    return true;
  }
  return false;
}

bool not_rescaled(Graph& g) {
  for (uint32_t i = 0; i < g.size(); ++i) {
    if (!is_rescaled(g, NodeId{i})) continue;
    Node& difference = g[g[g.nodes[i].operands[1]].operands[0]];
    difference.operands[0] = difference.operands[1];  // exp(0)
    return true;
  }
  return false;
}

// A gradient of keys stays one device short of home.
bool gradient_not_home(Graph& g) {
  for (uint32_t i = g.size(); i-- > 0;)
    if (g.nodes[i].op == Op::shift && g.nodes[i].origin.phase == Phase::backward) return std::get<ShiftAttr>(g.nodes[i].attr).by = 0, true;
  return false;
}

}  // namespace

TEST_CASE("ring: faults are found") {
  const Compilation c = compiled_text(text_of(context_programs()[1], "context = 4", "shard seq over context\nshard keys over context\n"));
  const ProgramData data = data_for(*c.graph, {});
  const auto problem_with = [&](const Fault& fault) {
    Partitioned p = parts_of(*c.graph);
    return fault && !fault(p.graph) ? "nothing to spoil" : partition_problem(*c.graph, p, data, kAllowed);
  };
  CHECK(problem_with({}) == "");
  const std::pair<std::string, Fault> faults[] = {{"stale keys or values", stale_block},
                                                  {"the other direction", other_direction},
                                                  {"a block left out", block_left_out},
                                                  {"no rescaling", not_rescaled},
                                                  {"a gradient at a neighbour", gradient_not_home}};
  for (const auto& [name, fault] : faults) {
    INFO(name);
    CHECK(problem_with(fault) != "");
    CHECK(problem_with(fault) != "nothing to spoil");
  }
}

// Rows of which all keys in a block are left out, and rows that begin with such a block.
TEST_CASE("ring: a block whose keys are all left out adds nothing") {
  const std::string text = text_of({"windows that end before their rows",
                                    "scores = einsum(q, k, \"batch heads seq head, batch heads key head -> batch heads seq key\")\n"
                                    "scores = where((iota(key) < 2) or (iota(key) == iota(seq) - 3), scores, -inf)\n",
                                    "mixed = einsum(weights, v, \"batch heads seq key, batch heads key head -> batch seq heads head\")\n"},
                                   "context = 4", "shard seq over context\nshard keys over context\n");
  const Compilation c = compiled_text(text);
  const Partitioned parts = parts_of(*c.graph);
  CHECK(count_of(parts, CollectiveKind::shift) > 0);
  CHECK(partition_problem(*c.graph, parts, data_for(*c.graph, {}), kAllowed) == "");
}

namespace {

constexpr const char* kRing = "shard seq over context\nshard keys over context\n";
constexpr const char* kScores = "scores = einsum(q, k, \"batch heads seq head, batch heads key head -> batch heads seq key\")\n";
constexpr const char* kMixed = "mixed = einsum(weights, v, \"batch heads seq key, batch heads key head -> batch seq heads head\")\n";

std::string masked_by(const std::string& choice) {
  const std::string scores = std::string(kScores) + "scores = " + choice + "\n";
  return text_of({"masked", scores.c_str(), kMixed}, "context = 4", kRing);
}

bool in_zigzag(const Partitioned& p) {
  return std::ranges::any_of(p.declared, [](const EdgeValue& v) { return !v.zigzag.axes.empty(); });
}

}  // namespace

// A device has chunks of one row and of two, comparisons that take the row's own key along, and that leave it out, in either direction.
TEST_CASE("ring: in zigzag order every way to ask for a key's place is that of the program") {
  for (const int64_t length : {8, 16})
    for (const char* choice :
         {"where(iota(key) <= iota(seq), scores, -inf)", "where(iota(seq) >= iota(key), scores, -inf)",
          "where((iota(key) < iota(seq)) or (iota(key) == 0), scores, -inf)",
          "where((iota(seq) > iota(key)) or (iota(key) == 0), scores, -inf)", "where(iota(key) > iota(seq), -inf, scores)",
          "where(iota(seq) < iota(key), -inf, scores)", "where((iota(key) >= iota(seq)) and (iota(key) > 0), -inf, scores)",
          "where((iota(seq) <= iota(key)) and (iota(key) > 0), -inf, scores)", "where(iota(key) >= iota(seq), scores, -inf)",
          "where(iota(seq) > iota(key), -inf, scores)", "where((iota(key) <= iota(seq)) and (iota(seq) - iota(key) < 3), scores, -inf)",
          "where(iota(key) <= iota(seq), scores - 0.1 * cast(iota(seq) - iota(key), f32), -inf)"}) {
      CAPTURE(length);
      CAPTURE(choice);
      const Compilation c = compiled_text(with_length(masked_by(choice), length));
      const Partitioned parts = parts_of(*c.graph);
      CHECK(in_zigzag(parts));
      CHECK(count_of(parts, CollectiveKind::all_gather) == 0);
      CHECK(partition_problem(*c.graph, parts, data_for(*c.graph, {}), kAllowed) == "");
    }
}

// Rows that see all keys alike, and a length without two chunks for each device, have the program's order.
TEST_CASE("ring: in the program's order") {
  const std::string causal = masked_by("where(iota(key) <= iota(seq), scores, -inf)");
  for (const std::string& text : {with_length(causal, 12), masked_by("scores * 0.5")}) {
    const Compilation c = compiled_text(text);
    const Partitioned parts = parts_of(*c.graph);
    CHECK(!in_zigzag(parts));
    CHECK(count_of(parts, CollectiveKind::shift) > 0);
    CHECK(partition_problem(*c.graph, parts, data_for(*c.graph, {}), kAllowed) == "");
  }
}

// In front of causal attention: attention of all keys, which goes round in zigzag order, too, and some that gathers its keys there.
TEST_CASE("ring: several attentions of one sequence") {
  const auto with_first = [](const std::string& weights) {
    const std::string scores = "q = q + einsum(" + weights +
                               ", v, \"batch heads seq key, batch heads key head -> batch heads seq head\")\n" + kScores +
                               "scores = where(iota(key) <= iota(seq), scores, -inf)\n";
    return text_of({"two", scores.c_str(), kMixed}, "context = 4", kRing);
  };
  const std::string first = "softmax(einsum(q, k, \"batch heads seq head, batch heads key head -> batch heads seq key\"), key)";
  for (const auto& [weights, gathers] : {std::pair(first, 0), std::pair("dropout(" + first + ", 0.5)", 2)}) {
    CAPTURE(weights);
    const Compilation c = compiled_text(with_first(weights));
    const Partitioned parts = parts_of(*c.graph);
    CHECK(in_zigzag(parts));
    CHECK(count_of(parts, CollectiveKind::shift) > 0);
    CHECK(count_of(parts, CollectiveKind::all_gather) == gathers);
    CHECK(partition_problem(*c.graph, parts, data_for(*c.graph, {}), kAllowed) == "");
  }
}

// What a ring cannot take apart is computed with gathered keys.
TEST_CASE("ring: attention with dropped weights gathers its keys") {
  const std::string text =
      text_of({"dropout", kScores,
               "mixed = einsum(dropout(weights, 0.5), v, \"batch heads seq key, batch heads key head -> batch seq heads head\")\n"},
              "context = 4", kRing);
  const Compilation c = compiled_text(text);
  const Partitioned parts = parts_of(*c.graph);
  CHECK(count_of(parts, CollectiveKind::shift) == 0);
  CHECK(count_of(parts, CollectiveKind::all_gather) == 2);
  CHECK(partition_problem(*c.graph, parts, data_for(*c.graph, {}), kAllowed) == "");
}

TEST_CASE("ring: GPT-2 and a model in bf16") {
  const MeshExample gpt2{"gpt2.ein", "batch=4 seq=8 vocab=16 layers=2 heads=4 head=3", "data=2,context=4",
                         "batch=data; seq=context; keys=context; params=data"};
  const MeshExample llama{"llama.ein", "batch=4 seq=8 vocab=12 layers=2 embed=8 heads=4 kv_heads=2 ffn=6", "context=4",
                          "seq=context; keys=context"};
  for (const MeshExample* example : {&gpt2, &llama}) {
    const Compilation c = compiled(*example, Roots::step);
    const Bindings dims = dims_of(example->dims);
    auto made = partition_for_mesh(*c.graph, dims);
    REQUIRE(std::holds_alternative<Partitioned>(made));
    const Partitioned& parts = std::get<Partitioned>(made);
    CAPTURE(example->file);
    CHECK(count_of(parts, CollectiveKind::shift) == 2 * (2 * 3 + 2 * 3 + 2 * 4));
    CHECK(partition_problem(*c.graph, parts, data_for(*c.graph, dims), 1e-9) == "");
  }
}
