// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/recompute.h"

#ifndef __clang__                                       // which does not know the warning
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // g++ 12 of Boost's iterators over edges, which are optional
#endif

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>
#include <limits>
#include <set>

#include "runtime/base/dtype.h"

namespace einc {
namespace {

constexpr size_t kMostReaders = 4;
constexpr uint32_t kNotCut = UINT32_MAX;

bool maps_elements(Op op) { return op == Op::map || op == Op::cast; }

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
using Flow = boost::adjacency_list<
    boost::vecS, boost::vecS, boost::directedS,
    boost::property<boost::vertex_color_t, boost::default_color_type,
                    boost::property<boost::vertex_distance_t, long, boost::property<boost::vertex_predecessor_t, Traits::edge_descriptor>>>,
    boost::property<
        boost::edge_capacity_t, int64_t,
        boost::property<boost::edge_residual_capacity_t, int64_t, boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;

class Cutter {
 public:
  Cutter(const BoundGraph& graph, const std::vector<bool>& stored, const std::vector<bool>& free, const ReaderLists& readers,
         const RecomputeLimits& limits)
      : graph_(graph), stored_(stored), free_(free), readers_(readers), limits_(limits) {}

  std::vector<bool> run() {
    const auto count = static_cast<uint32_t>(graph_.graph.size());
    std::vector<bool> recomputed(count, false);
    find_early();
    if (!find_wanted()) return recomputed;
    const size_t cut = number_early();
    flow_ = Flow(2 * cut + 2);
    source_ = 2 * cut, sink_ = source_ + 1;
    for (uint32_t i = 0; i < count; ++i)
      if (is_cut(NodeId{i})) add(NodeId{i});
    boost::boykov_kolmogorov_max_flow(flow_, source_, sink_);
    const auto color = boost::get(boost::vertex_color, flow_);
    for (uint32_t i = 0; i < count; ++i)
      recomputed[i] =
          early_[i] && again_[i] && boost::get(color, place_before({i})) == boost::color_traits<boost::default_color_type>::white();
    return recomputed;
  }

 private:
  // What is known when the forward is over, or follows from that element by element.
  void find_early() {
    early_.assign(graph_.graph.size(), false);
    again_.assign(graph_.graph.size(), false);
    for (uint32_t i = 0; i < early_.size(); ++i) {
      const Node& node = graph_.graph.nodes[i];
      if (!graph_.live[i] || free_[i]) continue;
      const bool follows = maps_elements(node.op) || kind_of(node.op) == OpKind::view;
      early_[i] = is_source(node.op) || node.origin.phase == Phase::forward || (node.origin.phase == Phase::backward && follows);
      for (NodeId x : node.operands) early_[i] = early_[i] && (free_[x.index] || early_[x.index]);
      again_[i] = early_[i] && may_be_made_again(NodeId{i});
    }
  }

  // What the backward reads of it. False when nothing could be saved.
  bool find_wanted() {
    wanted_.assign(graph_.graph.size(), false);
    bool any = false;
    for (uint32_t i = 0; i < wanted_.size(); ++i) {
      if (!early_[i] || kind_of(graph_.graph.nodes[i].op) == OpKind::view) continue;
      wanted_[i] = std::ranges::any_of(readers_[NodeId{i}], [&](NodeId r) { return !early_[r.index]; });
      any = any || (wanted_[i] && again_[i]);
    }
    return any;
  }

  int64_t bytes(NodeId id) const {
    const DType dtype = graph_[id].type.dtype;
    return graph_.count(id) * bytes_of(dtype == DType::real ? DType::f32 : dtype);
  }

  bool may_be_made_again(NodeId id) const {
    const Node& node = graph_[id];
    const std::span<const NodeId> readers = readers_[id];
    if (!maps_elements(node.op) || !is_floating(node.type.dtype) || node.type.dtype == DType::f64 || stored_[id.index]) return false;
    if (bytes(id) < limits_.bytes || std::set(readers.begin(), readers.end()).size() > kMostReaders) return false;
    if (!std::all_of(node.operands.begin(), node.operands.end(), [&](NodeId x) { return reads_each_once(x); })) return false;
    return std::all_of(readers.begin(), readers.end(), [&](NodeId r) { return reads_each_once(r, id); });
  }

  // Views between the operand and what is computed lead to each element at most once.
  bool reads_each_once(NodeId operand) const {
    while (kind_of(graph_[operand].op) == OpKind::view) {
      const Op op = graph_[operand].op;
      if (op != Op::permute && op != Op::split && op != Op::merge && op != Op::slice && op != Op::stop_gradient) return false;
      operand = graph_[operand].operands[0];
    }
    return true;
  }

  bool reaches(NodeId operand, NodeId id) const {
    while (operand != id && kind_of(graph_[operand].op) == OpKind::view) operand = graph_[operand].operands[0];
    return operand == id;
  }

  bool reads_each_once(NodeId reader, NodeId id) const {
    const Node& node = graph_[reader];
    for (NodeId x : node.operands)
      if (reaches(x, id) && !reads_each_once(x)) return false;
    if (node.op == Op::contract) return limits_.contractions && runs_in_tiles(reader);
    if (node.op == Op::map) return graph_.count(reader) <= graph_.count(id);
    return node.op == Op::cast || node.op == Op::reduce;
  }

  bool runs_in_tiles(NodeId id) const {
    const ContractAttr& attr = graph_[id].as<ContractAttr>();
    const DType dtype = graph_[id].type.dtype;
    if (!is_floating(dtype) || dtype == DType::f64) return false;
    int64_t rows = 1, columns = 1, depth = 1;
    const auto of = [&](const AxisList& labels, size_t operand, int i) {
      return std::pair(labels[i], graph_.shape(graph_[id].operands[operand])[static_cast<size_t>(i)]);
    };
    const auto has = [](const AxisList& labels, int label) {
      for (int i = 0; i < labels.size(); ++i)
        if (labels[i] == label) return true;
      return false;
    };
    for (int i = 0; i < attr.left.size(); ++i) {
      const auto [label, extent] = of(attr.left, 0, i);
      const bool result = label < static_cast<int>(graph_.shape(id).size());
      if (!has(attr.right, label)) rows *= result ? extent : 1;
      if (!result) depth *= extent;
    }
    for (int i = 0; i < attr.right.size(); ++i) {
      const auto [label, extent] = of(attr.right, 1, i);
      if (!has(attr.left, label) && label < static_cast<int>(graph_.shape(id).size())) columns *= extent;
    }
    return rows >= limits_.extent && columns >= limits_.extent && depth >= limits_.extent;
  }

  // A flow passes through each early node but views, whose operands stand for them: most of a training step's nodes are its optimizer's.
  size_t number_early() {
    size_t cut = 0;
    number_.assign(early_.size(), kNotCut);
    for (uint32_t i = 0; i < number_.size(); ++i)
      if (early_[i] && kind_of(graph_.graph.nodes[i].op) != OpKind::view) number_[i] = static_cast<uint32_t>(cut++);
    return cut;
  }
  bool is_cut(NodeId id) const { return number_[id.index] != kNotCut; }
  size_t place_before(NodeId id) const { return 2 * size_t{number_[id.index]}; }
  size_t place_behind(NodeId id) const { return place_before(id) + 1; }

  void add(NodeId id) {
    constexpr int64_t kNoCut = std::numeric_limits<int64_t>::max() / 4;
    const Node& node = graph_[id];
    const size_t in = place_before(id), out = place_behind(id);
    edge(in, out, is_source(node.op) ? 0 : bytes(id));
    if (wanted_[id.index]) edge(out, sink_, kNoCut);
    if (!again_[id.index]) return edge(source_, in, kNoCut);
    for (NodeId x : node.operands) {
      while (kind_of(graph_[x].op) == OpKind::view) x = graph_[x].operands[0];
      if (!free_[x.index]) edge(place_behind(x), in, kNoCut);
    }
  }

  void edge(size_t from, size_t to, int64_t capacity) {
    const auto there = boost::add_edge(from, to, flow_).first, back = boost::add_edge(to, from, flow_).first;
    const auto capacities = boost::get(boost::edge_capacity, flow_);
    const auto reverse = boost::get(boost::edge_reverse, flow_);
    boost::put(capacities, there, capacity);
    boost::put(capacities, back, 0);
    boost::put(reverse, there, back);
    boost::put(reverse, back, there);
  }

  const BoundGraph& graph_;
  const std::vector<bool>&stored_, &free_;
  const ReaderLists& readers_;
  const RecomputeLimits limits_;
  std::vector<bool> early_, again_, wanted_;  // `again_`: may be recomputed
  std::vector<uint32_t> number_;              // by node: its two places in the flow, or kNotCut
  Flow flow_;
  size_t source_ = 0, sink_ = 0;
};

}  // namespace

std::vector<bool> find_recomputed(const BoundGraph& graph, const std::vector<bool>& stored, const std::vector<bool>& free,
                                  const ReaderLists& readers, const RecomputeLimits& limits) {
  return Cutter(graph, stored, free, readers, limits).run();
}

}  // namespace einc
