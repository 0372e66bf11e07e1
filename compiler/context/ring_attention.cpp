// SPDX-License-Identifier: Apache-2.0
// All but the attentions is copied node by node; what reads one's result has it written before. Values have the axes that they had, but
// for rows, which are [n, s/n] where they were [s], and keys: [t/n] beside rows, else [n, t/n]. The axis of n stands before that of the
// rows, or of the keys.
#include "compiler/context/ring_attention.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "compiler/context/ring_form.h"
#include "compiler/ir/build.h"
#include "compiler/ir/remap.h"

namespace einc {
namespace {

constexpr double kLowest = -3e38;  // a maximum of keys that are all left out: what is made of it is 0 then, and no NaN

// A value in parts: where the axis of devices stands among its axes. -1: it has neither rows nor keys.
struct Placed {
  NodeId node;
  int ring = -1;
  // Where an axis of the whole value stands.
  int at(int axis) const { return axis + (ring >= 0 && axis >= ring ? 1 : 0); }
};

using ScoreAxes = std::vector<int>;  // of each axis of a value: the scores' axis that it is, or -1

// Writes one attention into the new graph.
class RingWriter {
 public:
  using Whole = std::function<NodeId(NodeId)>;  // a node of the graph given, in the new one

  RingWriter(const Graph& graph, const RingForm& form, const std::vector<bool>& free, Builder& build, Whole whole)
      : graph_(graph), form_(form), found_(form.split->attention), free_(free), build_(build), whole_(std::move(whole)) {
    const MeshAxis& axis = graph.mesh.axes[static_cast<size_t>(form.split->mesh_axis)];
    devices_ = {axis.name, axis.size};
  }

  // What stands for the forward's folds and results; each by its node given.
  std::vector<std::pair<NodeId, NodeId>> forward() {
    phase_ = Phase::forward;
    const ScoreAxes rows = axes_of(form_.max);
    Placed max, sum;
    std::vector<Placed> results(form_.forward.size());
    for (int c = 0; c < form_.devices; ++c) {
      const Placed before = max;
      meet(c);
      const Placed logits = step(graph_[form_.max].operands[0], c);
      const Placed most = folded(form_.max, logits);
      at_origin(form_.max);
      const NodeId other = c == 0 ? build_.constant(kLowest, build_.type(most.node).dtype) : before.node;
      max = {build_.map(MapFn::maximum, {most.node, other}), most.ring};
      running_max_ = max;
      const Placed exponentials = step(form_.exponential, c);
      made_[{form_.weight, c, phase_}] = exponentials;  // what it is divided by is taken out of the sum
      const Placed added = folded(form_.sum, exponentials);
      at_origin(form_.sum);
      NodeId scale;
      if (c > 0) scale = build_.map(MapFn::exp, {build_.map(MapFn::sub, {before.node, max.node})});
      sum = {c == 0 ? added.node : build_.map(MapFn::add, {build_.map(MapFn::mul, {sum.node, scale}), added.node}), added.ring};
      for (size_t r = 0; r < results.size(); ++r) {
        const NodeId id = form_.forward[r];
        const Placed product = contraction(id, c);
        at_origin(id);
        Placed& result = results[r];
        result = c == 0 ? product
                        : Placed{build_.map(MapFn::add, {by_row(MapFn::mul, result, axes_of(id), {scale, sum.ring}, rows), product.node}),
                                 product.ring};
      }
    }
    std::vector<std::pair<NodeId, NodeId>> made{{form_.max, merged(form_.max, max)}, {form_.sum, merged(form_.sum, sum)}};
    for (size_t r = 0; r < results.size(); ++r) {
      const NodeId id = form_.forward[r];
      at_origin(id);
      made.emplace_back(id, merged(id, {by_row(MapFn::div, results[r], axes_of(id), sum, rows), results[r].ring}));
    }
    return made;
  }

  std::vector<std::pair<NodeId, NodeId>> backward() {
    phase_ = Phase::backward;
    std::vector<Placed> results(form_.backward.size());
    const auto send_on = [&] {
      for (size_t r = 0; r < results.size(); ++r) {
        if (!goes_round(form_.backward[r])) continue;
        at_origin(form_.backward[r]);
        results[r].node = build_.shift(results[r].node, results[r].ring, 1);
      }
    };
    for (int c = 0; c < form_.devices; ++c) {
      meet(c);
      if (c > 0) send_on();
      for (size_t r = 0; r < results.size(); ++r) {
        const NodeId id = form_.backward[r];
        const Placed product = contraction(id, c);
        at_origin(id);
        results[r] = {c == 0 ? product.node : build_.map(MapFn::add, {results[r].node, product.node}), product.ring};
      }
    }
    send_on();  // home
    std::vector<std::pair<NodeId, NodeId>> made;
    for (size_t r = 0; r < results.size(); ++r) made.emplace_back(form_.backward[r], merged(form_.backward[r], results[r]));
    return made;
  }

 private:
  // ---- axes

  int row() const { return form_.split->row; }
  int key() const { return found_.key; }
  static int find(const ScoreAxes& axes, int axis) {
    const auto at = std::ranges::find(axes, axis);
    return at == axes.end() ? -1 : static_cast<int>(at - axes.begin());
  }
  // Where the axis of devices is to stand.
  int ring_of(const ScoreAxes& axes) const { return find(axes, row()) >= 0 ? find(axes, row()) : find(axes, key()); }
  bool is_pair(const ScoreAxes& axes) const { return find(axes, row()) >= 0 && find(axes, key()) >= 0; }
  // Gradients of keys and values: those are elsewhere at the next step.
  bool goes_round(NodeId id) const { return find(axes_of(id), row()) < 0; }

  // Of members by their axes; of contractions that are none by their operands'.
  ScoreAxes axes_of(NodeId id) const {
    if (const auto known = found_.axes.find(id.index); known != found_.axes.end()) return known->second;
    return label_axes(id, graph_.type(id).rank());
  }

  // Of a contraction's labels, results first.
  ScoreAxes label_axes(NodeId id, int count) const {
    const Node& node = graph_[id];
    const ContractAttr& attr = node.as<ContractAttr>();
    ScoreAxes axes(256, -1);
    if (const auto known = found_.axes.find(id.index); known != found_.axes.end()) std::ranges::copy(known->second, axes.begin());
    for (const size_t k : {size_t{0}, size_t{1}}) {
      const auto known = found_.axes.find(node.operands[k].index);
      const AxisList& labels = k == 0 ? attr.left : attr.right;
      if (known == found_.axes.end()) continue;
      for (int i = 0; i < labels.size(); ++i) axes[static_cast<size_t>(labels[i])] = known->second[static_cast<size_t>(i)];
    }
    axes.resize(static_cast<size_t>(count));
    return axes;
  }

  Axis part(const Axis& axis) const { return {axis.name, divide(axis.size, devices_.size)}; }

  std::vector<Axis> axes_in_parts(const Type& type, const ScoreAxes& axes) const {
    std::vector<Axis> out;
    const int ring = ring_of(axes);
    for (int i = 0; i < type.rank(); ++i) {
      const int of = axes[static_cast<size_t>(i)];
      if (i == ring) out.push_back(devices_);
      out.push_back(of == row() || of == key() ? part(type.axis(i)) : type.axis(i));
    }
    return out;
  }

  void at_origin(NodeId id) {
    build_.origin = graph_[id].origin;
    if (build_.origin.phase == Phase::forward) build_.origin.phase = phase_;
  }

  // ---- values of a step

  // Of a value with these axes, what a step reads of it.
  Placed operand(NodeId id, const ScoreAxes& axes, int c) {
    if (id == form_.max) return running_max_;
    const bool rows = find(axes, row()) >= 0, keys = find(axes, key()) >= 0;
    if (!rows && !keys) return {whole_(id), -1};
    if (rows && keys && std::ranges::binary_search(found_.pairs, id)) return step(id, c);
    const int at = ring_of(axes);
    // What follows from indices alone is the same in both phases, and nothing of it moves.
    const std::tuple known{id, at, find(axes, key()), free_[id.index] || !keys ? Phase::forward : phase_, keys ? c : 0};
    if (const auto made = parts_.find(known); made != parts_.end()) return made->second;
    const Placed placed = free_[id.index] ? of_indices(id, axes, c)
                          : rows && keys  ? taken(id, axes, c)
                          : keys          ? met(id, axes, c)
                                          : divided(id, at);
    return parts_[known] = placed;
  }

  // A value per row and key.
  Placed step(NodeId id, int c) {
    const std::tuple known{id, c, phase_};
    if (const auto made = made_.find(known); made != made_.end()) return made->second;
    const Placed placed = graph_[id].op == Op::contract ? contraction(id, c) : elementwise(id, axes_of(id), c);
    return made_[known] = placed;
  }

  Placed append(NodeId id, Node node, const ScoreAxes& axes, std::span<const Placed> operands) {
    node.type.axes = axes_in_parts(graph_.type(id), axes);
    node.operands.clear();
    for (const Placed& operand : operands) node.operands.push_back(operand.node);
    if (node.origin.phase == Phase::forward) node.origin.phase = phase_;
    return {build_.append(std::move(node)), ring_of(axes)};
  }

  Placed elementwise(NodeId id, const ScoreAxes& axes, int c) {
    Node node = graph_[id];
    std::vector<Placed> operands;
    const Placed place{{}, ring_of(axes)};
    if (auto* permute = std::get_if<PermuteAttr>(&node.attr)) {
      ScoreAxes from(axes.size());
      for (size_t i = 0; i < axes.size(); ++i) from[static_cast<size_t>(permute->order[static_cast<int>(i)])] = axes[i];
      operands.push_back(operand(node.operands[0], from, c));
      AxisList order;
      for (int i = 0; i < static_cast<int>(axes.size()); ++i) {
        if (i == place.ring) order.push_back(operands[0].ring);
        order.push_back(operands[0].at(permute->order[i]));
      }
      permute->order = order;
      return append(id, std::move(node), axes, operands);
    }
    auto* map = std::get_if<MapAttr>(&node.attr);
    for (size_t k = 0; k < node.operands.size(); ++k) {
      ScoreAxes from = axes;
      if (map) {
        from.clear();
        for (const int to : map->maps[k]) from.push_back(axes[static_cast<size_t>(to)]);
      }
      operands.push_back(operand(node.operands[k], from, c));
      if (map) map->maps[k] = with_ring(map->maps[k], operands.back(), place);
    }
    return append(id, std::move(node), axes, operands);
  }

  // Where the axes of a value in parts lie, that the whole value's lie at `to` of another one.
  static AxisList with_ring(const AxisList& to, const Placed& value, const Placed& other) {
    AxisList out;
    for (int i = 0; i < to.size(); ++i) {
      if (i == value.ring) out.push_back(other.ring);
      out.push_back(other.at(to[i]));
    }
    return out;
  }

  // Sums over this step's keys, or over a device's rows, are f32 at least: more are added to them.
  Placed contraction(NodeId id, int c) {
    Node node = graph_[id];
    ContractAttr& attr = std::get<ContractAttr>(node.attr);
    const ScoreAxes labels = label_axes(id, 256);
    const ScoreAxes axes(labels.begin(), labels.begin() + node.type.rank());
    const int ring = ring_of(axes), rank = node.type.rank();
    std::vector<Placed> operands;
    for (const size_t k : {size_t{0}, size_t{1}}) {
      AxisList& list = k == 0 ? attr.left : attr.right;
      ScoreAxes from;
      for (const int label : list) from.push_back(labels[static_cast<size_t>(label)]);
      operands.push_back(operand(node.operands[k], from, c));
      AxisList out;
      for (int i = 0; i < list.size(); ++i) {
        if (i == operands.back().ring) out.push_back(ring);
        out.push_back(list[i] >= rank || list[i] >= ring ? list[i] + 1 : list[i]);
      }
      list = out;
    }
    if (!is_pair(axes) && bytes_of(node.type.dtype) < 4) node.type.dtype = DType::f32;
    return append(id, std::move(node), axes, operands);
  }

  // A fold of the forward, of the step's values alone.
  Placed folded(NodeId id, const Placed& values) {
    Node node = graph_[id];
    ReduceAttr& attr = std::get<ReduceAttr>(node.attr);
    attr.axes = {values.at(attr.axes[0])};
    return append(id, std::move(node), axes_of(id), {&values, 1});
  }

  // ---- values that are not of the attention

  // [.. a ..] -> [.. n a/n ..]
  NodeId split(NodeId whole, int axis) {
    std::vector<Axis> axes = build_.type(whole).axes;
    AxisList counts;
    for (int i = 0; i < static_cast<int>(axes.size()); ++i) counts.push_back(i == axis ? 2 : 1);
    const auto at = static_cast<size_t>(axis);
    axes[at] = part(axes[at]);
    axes.insert(axes.begin() + axis, devices_);
    return build_.split(whole, counts, std::move(axes));
  }

  Placed divided(NodeId id, int axis) {
    const NodeId whole = whole_(id);
    build_.origin = graph_[id].origin;
    return {split(whole, axis), axis};
  }

  // Of keys or values: the block that a device has after c steps from neighbour to neighbour.
  Placed met(NodeId id, const ScoreAxes& axes, int c) {
    const int axis = find(axes, key());
    if (c == 0) {
      met_.emplace_back(id, axes, phase_);
      return divided(id, axis);
    }
    const Placed before = operand(id, axes, c - 1);
    at_origin(id);
    return {build_.shift(before.node, axis, 1), axis};
  }

  // What each step reads of others stands before the step, so that it comes beside the one before.
  void meet(int c) {
    if (c == 0) return;
    for (size_t i = 0; i < met_.size(); ++i)
      if (const auto [id, axes, phase] = met_[i]; phase == phase_) operand(id, axes, c);
  }

  // The device whose keys each one meets at step c: (r + c) mod n.
  NodeId owners(int c) {
    const NodeId own = build_.iota(devices_);
    if (c == 0) return own;
    const NodeId past = build_.map(MapFn::add, {own, build_.constant(Poly(c), DType::i32)});
    return build_.map(MapFn::remainder, {past, build_.constant(devices_.size, DType::i32)});
  }

  // Of what a device has for all keys: those that it meets.
  Placed taken(NodeId id, const ScoreAxes& axes, int c) {
    const NodeId whole = whole_(id);
    build_.origin = graph_[id].origin;
    int keys = find(axes, key());
    const int rows = find(axes, row());
    NodeId x = whole;
    if (rows >= 0) {
      x = split(x, rows);
      if (keys > rows) ++keys;
    }
    x = split(x, keys);
    std::vector<Axis> out = build_.type(x).axes;
    out.erase(out.begin() + keys);
    const int ring = rows < 0 ? keys : rows;
    GatherAttr attr{keys, {}, {ring}};
    if (rows < 0) out.insert(out.begin() + ring, devices_);
    for (int i = 0, next = 0; i < build_.type(x).rank(); ++i) {
      if (rows < 0 && next == ring) ++next;
      attr.table_map.push_back(i == keys ? kNoAxis : next++);
    }
    return {build_.gather(x, owners(c), attr, std::move(out)), ring};
  }

  // Of indices and constants: positions of a device's rows, and of the keys that it meets.
  Placed of_indices(NodeId id, const ScoreAxes& axes, int c) {
    const Node& node = graph_[id];
    if (node.op == Op::map || node.op == Op::cast) return elementwise(id, axes, c);
    if (node.op != Op::iota) return find(axes, key()) >= 0 ? taken(id, axes, c) : divided(id, ring_of(axes));
    build_.origin = node.origin;
    const Axis own = part(node.type.axis(0));
    const NodeId operands[] = {first_of_block(own.size, node.type.dtype, axes[0] == key() ? c : 0), build_.iota(own, node.type.dtype)};
    const AxisList maps[] = {{0}, {1}};
    return {build_.map(MapFn::add, operands, maps, {devices_, own}, node.type.dtype), 0};
  }

  // The number of the first element in a device's block. Rows and keys of one device have the same node for it, so that a kernel's bound
  // of keys by rows needs no number of the device (lower/key_bounds).
  NodeId first_of_block(const Poly& size, DType dtype, int c) {
    for (const FirstOfBlock& made : firsts_)
      if (made.size == size && made.dtype == dtype && made.step == c) return made.node;
    NodeId first = build_.map(MapFn::mul, {owners(c), build_.constant(size, DType::i32)});
    if (dtype != DType::i32) first = build_.cast(first, dtype);
    return firsts_.emplace_back(size, dtype, c, first).node;
  }

  // ---- results

  // fn(value, number of its row)
  NodeId by_row(MapFn fn, const Placed& value, const ScoreAxes& axes, const Placed& number, const ScoreAxes& rows) {
    AxisList to;
    for (const int axis : rows) to.push_back(find(axes, axis));
    const Type type = build_.type(value.node);
    const NodeId operands[] = {value.node, number.node};
    const AxisList maps[] = {AxisList::range(type.rank()), with_ring(to, number, value)};
    return build_.map(fn, operands, maps, type.axes, type.dtype);
  }

  NodeId merged(NodeId id, const Placed& value) {
    at_origin(id);
    const Type& type = graph_.type(id);
    const NodeId x = build_.type(value.node).dtype == type.dtype ? value.node : build_.cast(value.node, type.dtype);
    AxisList counts;
    for (int i = 0; i < type.rank(); ++i) counts.push_back(i == value.ring ? 2 : 1);
    return build_.merge(x, counts, type.axes);
  }

  const Graph& graph_;
  const RingForm& form_;
  const FoundAttention& found_;
  const std::vector<bool>& free_;
  Builder& build_;
  const Whole whole_;
  Axis devices_;
  Phase phase_ = Phase::forward;
  Placed running_max_;
  struct FirstOfBlock {
    Poly size;
    DType dtype;
    int step;
    NodeId node;
  };
  std::vector<FirstOfBlock> firsts_;
  std::vector<std::tuple<NodeId, ScoreAxes, Phase>> met_;             // what goes round
  std::map<std::tuple<NodeId, int, Phase>, Placed> made_;             // of pairs, by step
  std::map<std::tuple<NodeId, int, int, Phase, int>, Placed> parts_;  // of others, by where rows and keys lie
};

class RingCopier {
 public:
  RingCopier(const Graph& graph, const std::vector<SplitAttention>& found, const Bindings& given)
      : graph_(graph), free_(free_nodes(graph)), build_(out_.graph) {
    const Bindings values = graph.dims.bind(given).values;
    for (const SplitAttention& split : found) {
      if (!graph.mesh.keys.contains(split.mesh_axis)) continue;
      const Poly& devices = graph.mesh.axes[static_cast<size_t>(split.mesh_axis)].size;
      auto form = ring_form(graph, split, devices.evaluate_integer(values).value_or(INT64_MAX));
      if (auto* refusal = std::get_if<FusionRefusal>(&form))
        out_.gathered.push_back(std::move(*refusal));
      else
        forms_.push_back(std::move(std::get<RingForm>(form)));
    }
  }

  RingGraph run() {
    Graph& g = out_.graph;
    g = graph_;
    g.nodes.clear();
    out_.at.assign(graph_.size(), NodeId{});
    writers_.reserve(forms_.size());
    for (const RingForm& form : forms_) writers_.emplace_back(graph_, form, free_, build_, [this](NodeId id) { return whole(id); });
    for (uint32_t i = 0; i < forms_.size(); ++i) claim(i);
    for (uint32_t i = 0; i < graph_.size(); ++i)
      if (is_source(graph_.nodes[i].op)) whole(NodeId{i});
    for (uint32_t i = 0; i < graph_.size(); ++i)
      if (stays_whole(i)) whole(NodeId{i});
    for_each_root(g, [&](NodeId& id) {
      if (id.valid()) id = whole(id);
    });
    return std::move(out_);
  }

 private:
  struct Source {
    uint32_t form = 0;
    Phase phase = Phase::forward;
  };

  void claim(uint32_t form) {
    const RingForm& f = forms_[form];
    for (const NodeId id : {f.max, f.sum}) source_[id] = {form, Phase::forward};
    for (const NodeId id : f.forward) source_[id] = {form, Phase::forward};
    for (const NodeId id : f.backward) source_[id] = {form, Phase::backward};
  }

  // Needed, and not of an attention: in the order of the graph, so that nothing is copied at a great depth.
  bool stays_whole(uint32_t i) {
    if (needed_.empty()) {
      needed_.assign(graph_.size(), false);
      for_each_root(graph_, [&](NodeId id) {
        if (id.valid()) needed_[id.index] = true;
      });
      for (const RingForm& form : forms_)
        for (const NodeId id : form.split->attention.pairs) inside_.insert(id);
      for (uint32_t n = graph_.size(); n-- > 0;)
        if (needed_[n])
          for (const NodeId operand : graph_.nodes[n].operands) needed_[operand.index] = true;
    }
    return needed_[i] && !inside_.contains(NodeId{i}) && !source_.contains(NodeId{i});
  }

  NodeId whole(NodeId id) {
    NodeId& at = out_.at[id.index];
    if (at.valid()) return at;
    if (const auto source = source_.find(id); source != source_.end()) {
      RingWriter& writer = writers_[source->second.form];
      const auto made = source->second.phase == Phase::forward ? writer.forward() : writer.backward();
      for (const auto& [given, node] : made) out_.at[given.index] = node;
      return at;
    }
    Node node = graph_[id];
    for (NodeId& operand : node.operands) operand = whole(operand);
    return at = build_.append(std::move(node));
  }

  const Graph& graph_;
  const std::vector<bool> free_;
  RingGraph out_;
  Builder build_;
  std::vector<RingForm> forms_;
  std::vector<RingWriter> writers_;
  std::map<NodeId, Source> source_;  // what attentions make
  std::set<NodeId> inside_;          // values per row and key
  std::vector<bool> needed_;
};

}  // namespace

RingGraph ring_attention(const Graph& graph, const std::vector<SplitAttention>& found, const Bindings& given) {
  return RingCopier(graph, found, given).run();
}

}  // namespace einc
