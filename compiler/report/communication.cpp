// SPDX-License-Identifier: Apache-2.0
#include "compiler/report/communication.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "compiler/cost/evaluate.h"
#include "compiler/cost/modules.h"
#include "compiler/cost/op_cost.h"
#include "compiler/cost/sum.h"
#include "compiler/ir/print.h"
#include "compiler/report/document.h"
#include "compiler/report/ring.h"

namespace einc {
namespace {

std::string moved_value(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  const std::string name = node.origin.label.empty() ? describe_node(graph, id) : node.origin.label.str();
  return node.origin.module.empty() ? name : starred(node.origin.module.str()) + " " + name;
}

std::string reason_of(const Collective& c, const Mesh& mesh) {
  const std::string& axis = mesh.axes[static_cast<size_t>(c.mesh_axis)].name.str();
  switch (c.kind) {
    case CollectiveKind::all_reduce:
      return fmt::format("{} over what {} splits, wanted whole", to_string(c.fn), axis);
    case CollectiveKind::reduce_scatter:
      return fmt::format("{} over what {} splits, wanted in parts", to_string(c.fn), axis);
    case CollectiveKind::all_gather:
      return fmt::format("{} splits it, and it is wanted whole", axis);
    case CollectiveKind::all_to_all:
      return fmt::format("{} splits one axis of it, and is to split another", axis);
    case CollectiveKind::shift:
      return fmt::format("what {} splits goes round: to the next device", axis);
  }
  return "";
}

// A ring's share of a scalar is no whole number of bytes.
std::string sent_bytes(const Amount& bytes) {
  if (!bytes.value) return bytes.formula.str();
  if (bytes.value->is_integer()) return grouped_digits(bytes.value->str());
  return "~" + grouped_digits(fmt::format("{:.0f}", bytes.value->to_double()));
}

// What devices move in a step, as often as they do.
struct Movement {
  CollectiveKind kind = CollectiveKind::all_reduce;
  int mesh_axis = 0;
  Origin origin;
  std::string what, why;
  int64_t times = 1;
  Poly bytes;  // each time
};

class MeshReporter {
 public:
  MeshReporter(const Graph& graph, const Partitioned& p, const Localized& local, const Bindings& given, const Device* device,
               const StagedDevice* staged)
      : graph_(graph),
        p_(p),
        local_(local),
        mesh_(graph.mesh),
        device_(device),
        staged_(staged),
        evaluate_(graph.dims.bind(microbatch_dims(graph, given)).values) {}

  MeshReport run() {
    for (const MeshAxis& axis : mesh_.axes) out_.axes.emplace_back(axis.name, amount(axis.size));
    out_.devices = amount(mesh_.devices());
    collectives();
    if (staged_) {
      stage_shares();
    } else {
      shares();
      flops();
    }
    return std::move(out_);
  }

 private:
  // Layouts are chosen for the dims in use: what divides, and what moves the least.
  Amount amount(const Poly& formula) { return {formula, evaluate_(formula), false, true}; }

  // The place of a kind of movements among the rows.
  size_t row_for(const Movement& m) {
    const SourceLocation& at = m.origin.location;
    const auto [place, fresh] =
        places_.try_emplace({m.kind, m.mesh_axis, m.origin.phase, at.line, at.file.str(), m.what}, out_.rows.size());
    if (fresh) {
      CommunicationRow row;
      row.kind = m.kind, row.axis = mesh_.axes[static_cast<size_t>(m.mesh_axis)].name, row.phase = m.origin.phase;
      row.source = at, row.what = m.what, row.why = m.why;
      out_.rows.push_back(std::move(row));
    }
    out_.rows[place->second].count += m.times;
    return place->second;
  }

  Movement movement_of(const Collective& c) const {
    return {c.kind, c.mesh_axis, p_.graph[c.node].origin, moved_value(p_.graph, c.node), reason_of(c, mesh_), 1, c.bytes};
  }

  void collectives() {
    const std::vector<Collective> list = collectives_of(p_);
    if (staged_)
      stage_movements(list);
    else
      movements(list);
    times(list);
  }

  void movements(const std::vector<Collective>& list) {
    for (const Collective& c : list) out_.row_of.push_back(row_for(movement_of(c)));
    LoopSum sum(p_.graph, static_cast<int>(out_.rows.size()));
    for (size_t i = 0; i < list.size(); ++i)
      sum.add(static_cast<int>(out_.row_of[i]), p_.graph[list[i].node].origin.loop_context, list[i].bytes);
    const std::vector<Poly> totals = sum.totals();
    Poly all;
    for (size_t r = 0; r < out_.rows.size(); ++r) {
      out_.rows[r].bytes = amount(totals[r]);
      all += totals[r];
    }
    out_.bytes = amount(all);
  }

  // Of the stage that is shown: what goes between devices of the stage, and what it sends to others.
  void stage_movements(const std::vector<Collective>& list) {
    std::vector<Rational> totals;
    const auto add = [&](const Movement& m) {
      const size_t row = row_for(m);
      totals.resize(out_.rows.size());
      totals[row] = totals[row] + m.bytes.evaluate(evaluate_.dims()).value() * Rational(m.times);
      return row;
    };
    const int mine = staged_->shown;
    out_.row_of.assign(list.size(), kNoMovement);
    for (size_t i = 0; i < list.size(); ++i) {
      const NodeId node = staged_->whole.collectives[i];
      if (!staged_->has(mine, node)) continue;
      Movement m = movement_of(list[i]);
      m.times = staged_->times_carried_out(node);
      out_.row_of[i] = add(m);
    }
    const Graph& whole = staged_->whole.graph;
    for (const StageSend& send : staged_->cut.sends)
      if (send.from == mine)
        add({CollectiveKind::shift, mesh_.stages.over, whole[send.value].origin, moved_value(whole, send.value),
             fmt::format("stage {} reads it", send.to), staged_->times_moved(send), Poly(staged_->bytes_of(send.value))});
    Rational all(0);
    for (size_t r = 0; r < totals.size(); ++r) out_.rows[r].bytes = amount_here(totals[r]), all = all + totals[r];
    out_.bytes = amount_here(all);
  }

  std::optional<Ring> ring_of(Name axis) {
    double inside = 1, size = 1;
    for (size_t m = mesh_.axes.size(); m-- > 0;) {
      const auto devices = evaluate_(mesh_.axes[m].size);
      if (!devices) return std::nullopt;
      size = devices->to_double();
      if (mesh_.axes[m].name == axis) break;
      inside *= size;
    }
    return device_ ? ring_on(*device_, size, inside) : std::nullopt;
  }

  static CollectiveTime time_alone(const Ring& ring, CollectiveKind kind, double bytes) {
    const double rounds = kind == CollectiveKind::all_reduce ? 2 : 1;
    return {kind == CollectiveKind::shift ? ring.step_s : rounds * ring.latency_s, bytes / ring.bandwidth};
  }

  // Each alone: a ring's steps, then its bytes at its speed.
  void times(const std::vector<Collective>& list) {
    double all = 0;
    bool whole = true;
    for (CommunicationRow& row : out_.rows) {
      const std::optional<Ring> ring = ring_of(row.axis);
      if (ring && row.bytes.value) {
        row.link = ring->link->name;
        const CollectiveTime all_bytes = time_alone(*ring, row.kind, row.bytes.value->to_double());
        row.time_s = static_cast<double>(row.count) * all_bytes.latency + all_bytes.bytes;
        all += *row.time_s;
      }
      whole = whole && row.time_s.has_value();
    }
    if (!whole || !device_) return;
    out_.time_s = all;
    std::vector<std::optional<Ring>> rings;  // by mesh axis
    for (const MeshAxis& axis : mesh_.axes) rings.push_back(ring_of(axis.name));
    for (const Collective& c : list) {
      const std::optional<Ring>& ring = rings[static_cast<size_t>(c.mesh_axis)];
      if (!ring) return out_.collective_times.clear();
      out_.collective_times.push_back(time_alone(*ring, c.kind, evaluate_(c.bytes)->to_double()));
    }
    if (!staged_) return;
    const std::optional<Ring>& between = rings[static_cast<size_t>(mesh_.stages.over)];
    for (const StageSend& send : staged_->cut.sends)
      if (between) {
        const CollectiveTime time = time_alone(*between, CollectiveKind::shift, staged_->bytes_of(send.value).to_double());
        out_.send_s.push_back(time.latency + time.bytes);
      }
  }

  Poly share(uint32_t node) const { return local_bytes(graph_.nodes[node].type, p_.layouts[node], mesh_); }

  void shares() {
    enum : int { parameters, gradients, moments, inputs, channels };
    LoopSum sum(graph_, channels);
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (node.op == Op::param) sum.add(parameters, node.origin.loop_context, share(i));
      if (node.op == Op::input) sum.add(inputs, node.origin.loop_context, share(i));
      if (node.op == Op::state && node.as<StateAttr>().role != StateRole::user) sum.add(moments, node.origin.loop_context, share(i));
    }
    for (const Update& gradient : graph_.gradients)
      if (gradient.value.valid()) sum.add(gradients, graph_[gradient.target].origin.loop_context, share(gradient.value.index));
    const std::vector<Poly> totals = sum.totals();
    out_.parameters = amount(totals[parameters]);
    out_.gradients = amount(totals[gradients]);
    out_.optimizer_state = amount(totals[moments]);
    out_.inputs = amount(totals[inputs]);
  }

  void stage_shares() {
    const auto bytes = [&](auto is_one) { return amount_here(staged_->declared_bytes(staged_->shown, is_one)); };
    out_.parameters = bytes([](const Node& node) { return node.op == Op::param; });
    out_.inputs = bytes([](const Node& node) { return node.op == Op::input; });
    out_.optimizer_state = bytes([](const Node& node) { return node.op == Op::state && node.as<StateAttr>().role != StateRole::user; });
    Rational gradients(0);
    for (const DeviceValue& value : staged_->whole.gradients)
      if (value.node.valid() && staged_->has(staged_->shown, value.node)) gradients = gradients + staged_->bytes_of(value.node);
    out_.gradients = amount_here(gradients);
    out_.flops = amount_here(staged_->flops[static_cast<size_t>(staged_->shown)]);
  }

  // Of what a device computes: not of what nobody reads, such as the whole of a value that is made in parts.
  void flops() {
    const Graph& device = local_.graph;
    const Sizes sizes(device);
    const std::vector<bool> constant = constant_nodes(device);
    LoopSum sum(device, 1);
    for (uint32_t i = 0; i < device.size(); ++i) {
      if (constant[i]) continue;
      if (const Poly count = flop_cost(device, sizes, NodeId{i}).flops; !count.is_zero())
        sum.add(0, device.nodes[i].origin.loop_context, count);
    }
    out_.flops = amount(sum.totals()[0]);
  }

  const Graph& graph_;
  const Partitioned& p_;
  const Localized& local_;
  const Mesh& mesh_;
  const Device* device_;
  const StagedDevice* staged_;
  Evaluator evaluate_;
  std::map<std::tuple<CollectiveKind, int, Phase, uint32_t, std::string, std::string>, size_t> places_;  // of rows
  MeshReport out_;
};

}  // namespace

MeshReport mesh_report(const Graph& graph, const Partitioned& partitioned, const Localized& local, const Bindings& given,
                       const Device* device, const StagedDevice* staged) {
  return MeshReporter(graph, partitioned, local, given, device, staged).run();
}

std::string explain_sharding(const Graph& graph, const Partitioned& partitioned, const MeshReport& report, int width) {
  Document w;
  std::string mesh;
  for (const auto& [name, size] : report.axes)
    mesh += fmt::format("{}{} = {}", mesh.empty() ? "" : ", ", name.str(), size.value ? size.value->str() : size.formula.str());
  w.heading("How values lie", "mesh " + mesh + "; axis/mesh axis: in parts; all else is the same on each device");
  Table values({Align::right, Align::left, Align::right, Align::left, Align::left});
  values.add({"times", "value", "line", "kind", "each device's part of"});
  std::map<std::tuple<std::string, std::string, uint32_t>, size_t> seen;
  std::vector<std::vector<std::string>> rows;
  std::vector<int> times;
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph.nodes[i];
    const bool declared = node.op == Op::input || node.op == Op::param || node.op == Op::state;
    if (node.op == Op::constant || (!declared && node.origin.label.empty())) continue;
    const std::string what = declared ? starred(describe_node(graph, NodeId{i})) : moved_value(graph, NodeId{i});
    if (partitioned.layouts[i].axes.size() != node.type.axes.size()) continue;  // a value per row and key of a ring: nowhere whole
    const std::string layout = describe_layout(node.type, partitioned.layouts[i], partitioned.zigzag[i], graph.mesh);
    const auto [at, fresh] = seen.try_emplace({what, layout, node.origin.location.line}, rows.size());
    if (fresh) {
      rows.push_back({"", what, std::to_string(node.origin.location.line),
                      std::string(declared ? to_string(node.op) : to_string(node.origin.phase)), layout});
      times.push_back(0);
    }
    ++times[at->second];
  }
  for (size_t r = 0; r < rows.size(); ++r) {
    rows[r][0] = std::to_string(times[r]);
    values.add(std::move(rows[r]));
  }
  w.table(values, true);
  w.heading("What crosses devices", "bytes that each device sends in a step");
  Table moved({Align::left, Align::left, Align::right, Align::right, Align::left, Align::right, Align::left, Align::left});
  moved.add({"collective", "axis", "times", "bytes", "phase", "line", "value", "why"});
  for (const CommunicationRow& row : report.rows)
    moved.add({std::string(to_string(row.kind)), row.axis.str(), std::to_string(row.count), sent_bytes(row.bytes),
               std::string(to_string(row.phase)), std::to_string(row.source.line), row.what, row.why});
  w.table(moved, true);
  TextStyle style;
  style.width = width;
  return w.text(style);
}

}  // namespace einc
