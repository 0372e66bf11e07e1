// SPDX-License-Identifier: Apache-2.0
#include "compiler/context/ring_writer.h"

#include <algorithm>

namespace einc {
namespace {

constexpr double kLowest = -3e38;  // a maximum of keys that are all left out: what is made of it is 0 then, and no NaN

Axis devices_of(const Graph& graph, const SplitAttention& split) {
  const MeshAxis& axis = graph.mesh.axes[static_cast<size_t>(split.mesh_axis)];
  return {axis.name, axis.size};
}

}  // namespace

RingWriter::RingWriter(const Graph& graph, const RingForm& form, const std::vector<bool>& free, RingOrder order, Builder& build,
                       Whole whole)
    : graph_(graph),
      form_(form),
      found_(form.split->attention),
      free_(free),
      order_(order),
      build_(build),
      whole_(std::move(whole)),
      devices_(devices_of(graph, *form.split)),
      positions_(build, devices_, order) {}

std::vector<std::pair<NodeId, NodeId>> RingWriter::forward() {
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
    max = most.with(build_.map(MapFn::maximum, {most.node, other}));
    running_max_ = max;
    const Placed exponentials = step(form_.exponential, c);
    made_[{form_.weight, c, phase_}] = exponentials;  // what it is divided by is taken out of the sum
    const Placed added = folded(form_.sum, exponentials);
    at_origin(form_.sum);
    NodeId scale;
    if (c > 0) scale = build_.map(MapFn::exp, {build_.map(MapFn::sub, {before.node, max.node})});
    sum = added.with(c == 0 ? added.node : build_.map(MapFn::add, {build_.map(MapFn::mul, {sum.node, scale}), added.node}));
    for (size_t r = 0; r < results.size(); ++r) {
      const NodeId id = form_.forward[r];
      const Placed product = contraction(id, c);
      at_origin(id);
      Placed& result = results[r];
      const auto scaled = [&] { return by_row(MapFn::mul, result, axes_of(id), sum.with(scale), rows); };
      result = c == 0 ? product : product.with(build_.map(MapFn::add, {scaled(), product.node}));
    }
  }
  std::vector<std::pair<NodeId, NodeId>> made{{form_.max, merged(form_.max, max)}, {form_.sum, merged(form_.sum, sum)}};
  for (size_t r = 0; r < results.size(); ++r) {
    const NodeId id = form_.forward[r];
    at_origin(id);
    made.emplace_back(id, merged(id, results[r].with(by_row(MapFn::div, results[r], axes_of(id), sum, rows))));
  }
  return made;
}

std::vector<std::pair<NodeId, NodeId>> RingWriter::backward() {
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
      results[r] = c == 0 ? product : product.with(build_.map(MapFn::add, {results[r].node, product.node}));
    }
  }
  send_on();  // home
  std::vector<std::pair<NodeId, NodeId>> made;
  for (size_t r = 0; r < results.size(); ++r) made.emplace_back(form_.backward[r], merged(form_.backward[r], results[r]));
  return made;
}

// ---- axes

int RingWriter::find(const ScoreAxes& axes, int axis) {
  const auto at = std::ranges::find(axes, axis);
  return at == axes.end() ? -1 : static_cast<int>(at - axes.begin());
}

// The axis whose parts tell devices apart.
int RingWriter::ring_of(const ScoreAxes& axes) const { return find(axes, row()) >= 0 ? find(axes, row()) : find(axes, key()); }

// Of members by their axes; of contractions that are none by their operands'.
ScoreAxes RingWriter::axes_of(NodeId id) const {
  if (const auto known = found_.axes.find(id.index); known != found_.axes.end()) return known->second;
  return label_axes(id, graph_.type(id).rank());
}

// Of a contraction's labels, results first.
ScoreAxes RingWriter::label_axes(NodeId id, int count) const {
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

// Of what has all parts.
Placed RingWriter::place_of(const ScoreAxes& axes) const {
  const bool rows = find(axes, row()) >= 0;
  return {{}, ring_of(axes), true, rows && order_ == RingOrder::zigzag};
}

std::vector<Axis> RingWriter::axes_in_parts(const Type& type, const ScoreAxes& axes, const Placed& place) const {
  std::vector<Axis> out;
  for (int i = 0; i < type.rank(); ++i) {
    const int of = axes[static_cast<size_t>(i)];
    if (i == place.ring && place.devices) out.push_back(devices_);
    if (i == place.ring && place.halves) out.push_back(ring_halves());
    if (i == place.ring && !place.own) continue;
    const int64_t halves = of == row() && order_ == RingOrder::zigzag ? 2 : 1;
    out.push_back(type.axis(i));
    if (of == row() || of == key()) out.back().size = divide(type.axis(i).size, devices_.size * Poly(halves));
  }
  return out;
}

void RingWriter::at_origin(NodeId id) {
  build_.origin = graph_[id].origin;
  if (build_.origin.phase == Phase::forward) build_.origin.phase = phase_;
}

// ---- values of a step

// Of a value with these axes, what a step reads of it.
Placed RingWriter::operand(NodeId id, const ScoreAxes& axes, int c) {
  if (id == form_.max) return running_max_;
  const bool rows = find(axes, row()) >= 0, keys = find(axes, key()) >= 0;
  if (!rows && !keys) return {whole_(id)};
  if (rows && keys && std::ranges::binary_search(found_.pairs, id)) return step(id, c);
  // What follows from indices alone is the same in both phases, and nothing of it moves.
  const std::tuple known{id, ring_of(axes), find(axes, key()), free_[id.index] || !keys ? Phase::forward : phase_, keys ? c : 0};
  if (const auto made = parts_.find(known); made != parts_.end()) return made->second;
  const Placed placed = free_[id.index] ? of_indices(id, axes, c)
                        : rows && keys  ? taken(id, axes, c)
                        : keys          ? met(id, axes, c)
                                        : divided(id, axes);
  return parts_[known] = placed;
}

// A value per row and key.
Placed RingWriter::step(NodeId id, int c) {
  const std::tuple known{id, c, phase_};
  if (const auto made = made_.find(known); made != made_.end()) return made->second;
  const Placed placed = graph_[id].op == Op::contract ? contraction(id, c) : elementwise(id, axes_of(id), c);
  return made_[known] = placed;
}

Placed RingWriter::append(NodeId id, Node node, const ScoreAxes& axes, const Placed& place, std::span<const Placed> operands) {
  node.type.axes = axes_in_parts(graph_.type(id), axes, place);
  node.operands.clear();
  for (const Placed& operand : operands) node.operands.push_back(operand.node);
  if (node.origin.phase == Phase::forward) node.origin.phase = phase_;
  return place.with(build_.append(std::move(node)));
}

// It has the parts that some operand has.
Placed RingWriter::elementwise(NodeId id, const ScoreAxes& axes, int c) {
  Node node = graph_[id];
  if (node.op == Op::permute) return permuted(id, std::move(node), axes, c);
  auto* map = std::get_if<MapAttr>(&node.attr);
  std::vector<Placed> operands;
  Placed place{{}, ring_of(axes), false, false, false};
  for (size_t k = 0; k < node.operands.size(); ++k) {
    ScoreAxes from = axes;
    if (map) {
      from.clear();
      for (const int to : map->maps[k]) from.push_back(axes[static_cast<size_t>(to)]);
    }
    operands.push_back(operand(node.operands[k], from, c));
    place.join(operands.back(), find(from, axes[static_cast<size_t>(place.ring)]) >= 0);
  }
  if (map)
    for (size_t k = 0; k < operands.size(); ++k) map->maps[k] = axes_in(map->maps[k], operands[k], place);
  return append(id, std::move(node), axes, place, operands);
}

Placed RingWriter::permuted(NodeId id, Node node, const ScoreAxes& axes, int c) {
  AxisList& order = std::get<PermuteAttr>(node.attr).order;
  ScoreAxes from(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) from[static_cast<size_t>(order[static_cast<int>(i)])] = axes[i];
  const Placed given = operand(node.operands[0], from, c);
  Placed place = given;
  place.ring = ring_of(axes);
  order = axes_in(order, place, given);
  return append(id, std::move(node), axes, place, {&given, 1});
}

// Sums over this step's keys, or over a device's rows, are f32 at least: more are added to them.
Placed RingWriter::contraction(NodeId id, int c) {
  Node node = graph_[id];
  ContractAttr& attr = std::get<ContractAttr>(node.attr);
  const ScoreAxes labels = label_axes(id, 256);
  const int rank = node.type.rank();
  const ScoreAxes axes(labels.begin(), labels.begin() + rank);
  const Placed place = place_of(axes);
  const auto label_of = [&](int label) { return label >= rank ? label + place.width() - 1 : place.at(label); };
  int halves = place.ring + 1;  // the label of a row's half; where rows are summed, one behind all others
  if (!place.halves)
    for (const AxisList* list : {&attr.left, &attr.right})
      for (const int label : *list) halves = std::max(halves, label_of(label) + 1);
  std::vector<Placed> operands;
  for (const size_t k : {size_t{0}, size_t{1}}) {
    AxisList& list = k == 0 ? attr.left : attr.right;
    ScoreAxes from;
    for (const int label : list) from.push_back(labels[static_cast<size_t>(label)]);
    const Placed& value = operands.emplace_back(operand(node.operands[k], from, c));
    AxisList out;
    for (int i = 0; i < list.size(); ++i) {
      if (i == value.ring) out.push_back(place.ring);
      if (i == value.ring && value.halves) out.push_back(halves);
      out.push_back(label_of(list[i]));
    }
    list = out;
  }
  if (!is_pair(axes) && bytes_of(node.type.dtype) < 4) node.type.dtype = DType::f32;
  return append(id, std::move(node), axes, place, operands);
}

// A fold of the forward, of the step's values alone.
Placed RingWriter::folded(NodeId id, const Placed& values) {
  Node node = graph_[id];
  ReduceAttr& attr = std::get<ReduceAttr>(node.attr);
  attr.axes = {values.at(attr.axes[0])};
  return append(id, std::move(node), axes_of(id), place_of(axes_of(id)), {&values, 1});
}

// ---- values that are not of the attention

// One axis of a whole value in its parts.
NodeId RingWriter::split(NodeId whole, const Placed& place) {
  std::vector<Axis> axes = build_.type(whole).axes;
  const AxisList counts = counts_of(place, static_cast<int>(axes.size()));
  const auto at = axes.begin() + place.ring;
  at->size = divide(at->size, devices_.size * Poly(place.halves ? 2 : 1));
  std::vector<Axis> before{devices_};
  if (place.halves) before.push_back(ring_halves());
  axes.insert(at, before.begin(), before.end());
  return build_.split(whole, counts, std::move(axes));
}

Placed RingWriter::divided(NodeId id, const ScoreAxes& axes) {
  const NodeId whole = whole_(id);
  build_.origin = graph_[id].origin;
  const Placed place = place_of(axes);
  return place.with(split(whole, place));
}

// Of keys or values: the block that a device has after c steps from neighbour to neighbour.
Placed RingWriter::met(NodeId id, const ScoreAxes& axes, int c) {
  if (c == 0) {
    met_.emplace_back(id, axes, phase_);
    return divided(id, axes);
  }
  const Placed before = operand(id, axes, c - 1);
  at_origin(id);
  return before.with(build_.shift(before.node, before.ring, 1));
}

// What each step reads of others stands before the step, so that it comes beside the one before.
void RingWriter::meet(int c) {
  if (c == 0) return;
  for (size_t i = 0; i < met_.size(); ++i)
    if (const auto [id, axes, phase] = met_[i]; phase == phase_) operand(id, axes, c);
}

// Of what a device has for all keys: those that it meets.
Placed RingWriter::taken(NodeId id, const ScoreAxes& axes, int c) {
  const NodeId whole = whole_(id);
  build_.origin = graph_[id].origin;
  Placed place = place_of(axes);
  int keys = find(axes, key());
  const bool rows = find(axes, row()) >= 0;
  NodeId x = whole;
  if (rows) {
    x = split(x, place);
    keys = place.at(keys);
  }
  x = split(x, {{}, keys, true});
  std::vector<Axis> out = build_.type(x).axes;
  out.erase(out.begin() + keys);
  GatherAttr attr{keys, {}, {place.ring}};
  if (!rows) out.insert(out.begin() + place.ring, devices_);
  for (int i = 0, next = 0; i < build_.type(x).rank(); ++i) {
    if (!rows && next == place.ring) ++next;
    attr.table_map.push_back(i == keys ? kNoAxis : next++);
  }
  return place.with(build_.gather(x, positions_.owners(c), attr, std::move(out)));
}

// Of indices and constants: positions of a device's rows, and of the keys that it meets.
Placed RingWriter::of_indices(NodeId id, const ScoreAxes& axes, int c) {
  const Node& node = graph_[id];
  if (order_ == RingOrder::zigzag && compares_places(id, axes)) return compared(id, axes, c);
  if (node.op == Op::map || node.op == Op::cast) return elementwise(id, axes, c);
  if (node.op != Op::iota) return find(axes, key()) >= 0 ? taken(id, axes, c) : divided(id, axes);
  build_.origin = node.origin;
  return axes[0] == key() ? positions_.keys(node.type, c) : positions_.rows(node.type);
}

// Whether the order of a row's number and a key's is asked for.
bool RingWriter::compares_places(NodeId id, const ScoreAxes& axes) const {
  const Node& node = graph_[id];
  if (!compares_order(node)) return false;
  const auto& maps = node.as<MapAttr>().maps;
  int rows = 0, keys = 0;
  for (size_t k = 0; k < 2; ++k) {
    if (graph_[node.operands[k]].op != Op::iota) return false;
    const int of = axes[static_cast<size_t>(maps[k][0])];
    rows += of == row() ? 1 : 0, keys += of == key() ? 1 : 0;
  }
  return rows == 1 && keys == 1;
}

// A row sees a first run of the places of keys: with `key <= row` up to the last of them, with `key < row` what is before the one behind.
Placed RingWriter::compared(NodeId id, const ScoreAxes& axes, int c) {
  Node node = graph_[id];
  auto& [fn, maps] = std::get<MapAttr>(node.attr);
  build_.origin = node.origin;
  const size_t k = axes[static_cast<size_t>(maps[0][0])] == key() ? 0 : 1;
  const bool key_first = (k == 0) == (fn == MapFn::less || fn == MapFn::less_equal);
  const bool or_equal = fn == MapFn::less_equal || fn == MapFn::greater_equal;
  Placed operands[2];
  operands[k] = positions_.key_place(graph_.type(node.operands[k]));
  operands[1 - k] = positions_.row_place(graph_.type(node.operands[1 - k]), c, key_first == or_equal);
  Placed place = operands[1 - k];
  place.ring = ring_of(axes);
  for (size_t i = 0; i < 2; ++i) maps[i] = axes_in(maps[i], operands[i], place);
  return append(id, std::move(node), axes, place, operands);
}

// ---- results

// fn(value, number of its row)
NodeId RingWriter::by_row(MapFn fn, const Placed& value, const ScoreAxes& axes, const Placed& number, const ScoreAxes& rows) {
  AxisList to;
  for (const int axis : rows) to.push_back(find(axes, axis));
  const Type type = build_.type(value.node);
  const NodeId operands[] = {value.node, number.node};
  const AxisList maps[] = {AxisList::range(type.rank()), axes_in(to, number, value)};
  return build_.map(fn, operands, maps, type.axes, type.dtype);
}

NodeId RingWriter::merged(NodeId id, const Placed& value) {
  at_origin(id);
  const Type& type = graph_.type(id);
  const NodeId x = build_.type(value.node).dtype == type.dtype ? value.node : build_.cast(value.node, type.dtype);
  return build_.merge(x, counts_of(value, type.rank()), type.axes);
}

}  // namespace einc
