// SPDX-License-Identifier: Apache-2.0
// Causal attention in zigzag order: as much work on each device, results of the whole program whatever else reads the sequence, and faults
// that such an order could have.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <set>
#include <string>

#include "compiler/fuse/form_graph.h"
#include "compiler/lower/attention.h"
#include "compiler/partition/device_program.h"
#include "compiler/partition/zigzag.h"
#include "tests/support/context_programs.h"
#include "tests/support/kernel_text.h"
#include "tests/support/mesh_examples.h"
#include "tests/support/partition_check.h"

using namespace einc;

namespace {

constexpr double kZigzagAllowed = 1e-12;

bool any_zigzag(const Partitioned& p) {
  return std::ranges::any_of(p.zigzag, [](const ZigzagAxes& z) { return !z.axes.empty(); });
}

// Pairs that one device's kernel makes, at all points.
int64_t pairs_of_device(const Kernel& kernel, const PointValues& bases, int64_t device) {
  const Attention& a = *kernel.attention;
  int64_t pairs = 0;
  for (int64_t point = 0; point < bases.points; ++point)
    for (int64_t row = 0; row < kernel.extent(a.row); row += a.block_rows) {
      const int64_t last = std::min(row + a.block_rows, kernel.extent(a.row)) - 1;
      pairs += (last - row + 1) * keys_of(kernel, row, last, bases.at(device, point)).count();
    }
  return pairs * trips(kernel, (bits(a.batch) | bits(a.turns)) & ~bases.axes);
}

}  // namespace

TEST_CASE("zigzag: every device makes as many pairs, and little more than the mask lets through") {
  for (const size_t p : {1, 2, 5})  // causal, keys first, grouped heads
    for (const int n : {2, 4}) {
      CAPTURE(context_programs()[p].name);
      CAPTURE(n);
      const Compilation c =
          compiled_text(with_length(text_of(context_programs()[p], fmt::format("context = {}", n), shard_lines("", false)), 192));
      const Localized local = localize(parts_of(*c.graph));
      const DeviceProgram program = device_program(local);
      const FormedGraph formed = form_graph(program.graph, {}, RunMode::training);
      int attentions = 0;
      for (const GraphKernel& k : formed.list.kernels) {
        if (!k.kernel->attention) continue;
        ++attentions;
        const Kernel& kernel = *k.kernel;
        const Attention& a = *kernel.attention;
        REQUIRE(a.bounds.size() == 1);
        CHECK(kernel_of(to_string(kernel)).attention->bounds == a.bounds);
        const auto bases = bases_of(kernel, a.bounds);
        REQUIRE(bases.has_value());
        CHECK(bases->devices == n);
        std::set<int64_t> pairs;
        for (int64_t device = 0; device < n; ++device) pairs.insert(pairs_of_device(kernel, *bases, device));
        const int64_t all = trips(kernel, bits(a.batch) | bits(a.turns) | bit(a.row) | bit(a.key));
        CHECK(*pairs.rbegin() == pairs_made(kernel));
        // Keys are skipped in whole blocks: by those a device may make more.
        const int64_t edge = all / kernel.extent(a.key) * a.block_keys;
        CHECK(*pairs.rbegin() - *pairs.begin() <= edge);
        CHECK(2 * *pairs.rbegin() <= all + 2 * edge + all / kernel.extent(a.key) * a.block_rows);
      }
      CHECK(attentions == 2);
    }
}

TEST_CASE("zigzag: only where keys are masked by their position, and the sequence has chunks for all") {
  const auto is_zigzag = [](size_t program, int64_t length, const std::string& mesh) {
    const Compilation c = compiled_text(with_length(text_of(context_programs()[program], mesh, shard_lines(mesh, false)), length));
    const Partitioned parts = parts_of(*c.graph);
    CHECK(partition_problem(*c.graph, parts, data_for(*c.graph, {}), kZigzagAllowed) == "");
    return any_zigzag(parts);
  };
  CHECK(is_zigzag(1, 8, "context = 4"));
  CHECK(is_zigzag(4, 16, "data = 2, context = 2"));
  CHECK_FALSE(is_zigzag(0, 8, "context = 4"));   // no mask
  CHECK_FALSE(is_zigzag(1, 12, "context = 4"));  // 12 rows are no 8 chunks
}

TEST_CASE("zigzag: what needs the program's order has it, results and gradients leave in it") {
  for (const std::string mesh : {"context = 2", "context = 4", "data = 2, context = 2", "context = 2, model = 2"}) {
    CAPTURE(mesh);
    std::string text = "dim batch = 2, seq = 16, embed = 6, heads = 2, head = 4\nmesh " + mesh + "\n" + shard_lines(mesh, false);
    text += R"ein(
input x: f32[batch seq embed]
input ids: i32[batch seq]
param wpe: [seq embed] ~ normal(std = 0.3)
param table: [rows=10, embed] ~ normal(std = 0.3)
param wq: [embed heads head] ~ normal(std = 0.3)
param wk: [embed heads head] ~ normal(std = 0.3)
param wv: [embed heads head] ~ normal(std = 0.3)
param wo: [heads head embed] ~ normal(std = 0.3)
state seen: f32[seq] ~ zeros
h = x + wpe + table[rows = ids] + 0.1 * cumsum(x, seq) + 0.1 * normal(batch, seq, embed)
h = h + 0.5 * flip(h, seq) * cos(0.3 * iota(seq))
q = einsum(h, wq, "batch seq embed, embed heads head -> batch heads seq head") * sin(0.2 * iota(seq) + 1)
k: [batch heads key head] = einsum(h, wk, "batch seq embed, embed heads head -> batch heads seq head")
v: [batch heads key head] = einsum(h, wv, "batch seq embed, embed heads head -> batch heads seq head")
scores = einsum(q, k, "batch heads seq head, batch heads key head -> batch heads seq key")
scores = where(iota(key) <= iota(seq), scores, -inf)
mixed = einsum(softmax(scores, key), v, "batch heads seq key, batch heads key head -> batch seq heads head")
o = h + einsum(mixed, wo, "batch seq heads head, heads head embed -> batch seq embed")
seen <- seen + sum(o, batch, embed)
output o
output last = o[seq = 15]
output turned = rearrange(o, "batch seq embed -> seq (batch embed)")
output places = argmax(o, seq)
loss = mean((o - x)^2)
minimize loss using momentum(lr = 0.1)
)ein";
    const Compilation c = compiled_text(text);
    const Partitioned parts = parts_of(*c.graph);
    CHECK(any_zigzag(parts));
    ProgramData data = data_for(*c.graph, {});
    for (double& id : data.inputs.at(Name("ids")).reals) id = std::fmod(std::fabs(id), 10);
    CHECK(partition_problem(*c.graph, parts, data, kZigzagAllowed) == "");
  }
}

namespace {

using ZigzagFault = std::function<bool(Partitioned& p)>;  // false: there is nothing to spoil

// The two operands of a concat are exchanged: chunks stand in another order.
ZigzagFault exchanged(Phase phase, bool edge) {
  return [=](Partitioned& p) {
    for (uint32_t i = 0; i < p.graph.size(); ++i)
      if (Node& node = p.graph.nodes[i]; node.op == Op::concat && node.origin.phase == phase && p.edge[i] == edge)
        return std::swap(node.operands[0], node.operands[1]), true;
    return false;
  };
}

// Rows of the high chunk stand at the positions of the chunk before.
bool other_position(Partitioned& p) {
  for (Node& node : p.graph.nodes) {
    if (node.op != Op::map || node.as<MapAttr>().fn != MapFn::sub || p.graph[node.operands[1]].op != Op::iota) continue;
    Node& last = p.graph.nodes[node.operands[0].index];
    if (last.op != Op::constant) continue;
    auto& attr = std::get<ConstantAttr>(last.attr);
    return attr.value = std::get<Poly>(attr.value) - Poly(1), true;
  }
  return false;
}

// Keys are read as they were gathered.
bool keys_not_put_back(Partitioned& p) {
  for (uint32_t i = 0; i < p.graph.size(); ++i) {
    if (p.graph.nodes[i].op != Op::concat || p.edge[i] || p.graph.nodes[i].origin.phase != Phase::forward) continue;
    NodeId whole = p.graph.nodes[i].operands[0];
    while (p.graph[whole].op != Op::slice) whole = p.graph[whole].operands[0];
    Node& node = p.graph.nodes[i];
    node.op = Op::merge;
    AxisList counts;
    for (int axis = 0; axis < node.type.rank(); ++axis) counts.push_back(axis == node.as<ConcatAttr>().axis ? 2 : 1);
    node.attr = MergeAttr{counts};
    node.operands = {p.graph[whole].operands[0]};
    return true;
  }
  return false;
}

}  // namespace

TEST_CASE("zigzag: faults are found") {
  const Compilation c = compiled_text(text_of(context_programs()[1], "context = 4", shard_lines("", false)));
  const ProgramData data = data_for(*c.graph, {});
  const auto problem_with = [&](const ZigzagFault& fault) {
    Partitioned p = parts_of(*c.graph);
    return fault && !fault(p) ? "nothing to spoil" : partition_problem(*c.graph, p, data, kZigzagAllowed);
  };
  CHECK(problem_with({}) == "");
  const std::pair<std::string, ZigzagFault> faults[] = {{"an edge cut in another order", exchanged(Phase::forward, true)},
                                                        {"keys in another order", exchanged(Phase::forward, false)},
                                                        {"gradients of keys in another order", exchanged(Phase::backward, false)},
                                                        {"keys as they were gathered", keys_not_put_back},
                                                        {"other positions", other_position}};
  for (const auto& [name, fault] : faults) {
    INFO(name);
    CHECK(problem_with(fault) != "");
    CHECK(problem_with(fault) != "nothing to spoil");
  }
}
