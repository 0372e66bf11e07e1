// SPDX-License-Identifier: Apache-2.0
#include "compiler/autodiff/scan_gradient.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "compiler/autodiff/sweep.h"
#include "compiler/ir/scan.h"
#include "compiler/scan/body_builder.h"

namespace einc {
namespace {

bool saves_some(const Graph& graph, const Node& node) {
  return node.op == Op::scan_result && graph[node.operands[0]].as<ScanAttr>().save_every > 0;
}

// Worth keeping from the forward; other values are made again from those that are.
bool is_dear(const Graph& graph, const Node& node) {
  if (saves_some(graph, node)) return false;  // what a scan inside an iteration is not to keep, its outer one must not either
  if (node.op == Op::map) return is_transcendental(node.as<MapAttr>().fn);
  const OpKind kind = kind_of(node.op);
  return (kind == OpKind::compute && node.op != Op::cast && node.op != Op::pad && node.op != Op::scan) || kind == OpKind::composite ||
         node.op == Op::random;
}

Name axis_name_of(const Graph& graph, NodeId scan) {
  const int carries = graph[scan].as<ScanAttr>().carries;
  for (const Node& node : graph.nodes)
    if (node.op == Op::scan_result && node.operands[0] == scan && node.as<ScanResultAttr>().index >= carries) return node.type.axis(0).name;
  return {};
}

class ScanGradient {
 public:
  ScanGradient(Builder& build, NodeId scan, std::span<const NodeId> results, const std::vector<bool>& wanted, CustomGradients* customs)
      : build_(build),
        customs_(customs),
        scan_(scan),
        node_(build.graph()[scan]),
        attr_(node_.as<ScanAttr>()),
        forward_(*attr_.body),
        results_(results.begin(), results.end()),
        wanted_(wanted),
        axis_{axis_name_of(build.graph(), scan), attr_.length},
        reverse_(build, axis_, attr_.direction == Direction::forward ? Direction::reverse : Direction::forward, attr_.save_every) {
    results_.resize(forward_.updates.size());
  }

  std::vector<NodeId> run(bool* met_custom) {
    repeat_forward();
    seed();
    CustomGradients inside = repeat_customs();
    const size_t repeated = inside.size();
    const Sweep sweep(reverse_.body(), seeds_, wrt_, {.apart = wholes_, .custom = &inside, .met_custom = met_custom});
    const std::vector<CustomGradient> fresh = inside.take_from(repeated);
    for (const CustomGradient& c : fresh) keep(c);
    hand_on(sweep);
    plan_sums(sweep);
    save_values();
    note_sums();
    const std::vector<NodeId> made = reverse_.finish();
    if (customs_) customs_->set_inside(reverse_.shared(), fresh);
    return gradients(made, sweep);
  }

 private:
  size_t first_slice() const { return static_cast<size_t>(whole_operands(node_)); }
  size_t first_initial() const { return first_slice() + static_cast<size_t>(attr_.slices); }
  size_t carries() const { return static_cast<size_t>(attr_.carries); }

  NodeId zeros(const Type& type) {
    const NodeId zero = build_.constant(Poly(0), type.dtype);
    return type.rank() == 0 ? zero : build_.broadcast(zero, {}, type.axes);
  }

  // The forward's iteration inside the reverse one. Carries are what they were at its start.
  void repeat_forward() {
    const ScanSources sources = scan_sources(forward_);
    to_.resize(forward_.size());
    Builder& body = reverse_.body();
    for (size_t k = 0; k < sources.inputs.size(); ++k) {
      if (!sources.inputs[k].valid()) continue;
      const NodeId outer = node_.operands[k];
      to_[sources.inputs[k].index] =
          k < first_slice() ? reverse_.outside(outer) : reverse_.slice(outer, forward_[sources.inputs[k]].origin);
    }
    for (uint32_t i = 0; i < forward_.size(); ++i) {
      Node node = forward_.nodes[i];
      if (node.op == Op::input) continue;
      node.origin.phase = Phase::backward;
      if (node.op == Op::state) {
        body.origin = node.origin;
        to_[i] = body.input(Name(), node.type);
      } else {
        for (NodeId& x : node.operands) x = to_[x.index];
        to_[i] = reverse_.append(std::move(node));
      }
      of_clone_.emplace(to_[i].index, NodeId{i});
    }
    sources_ = sources;
  }

  // Calls with gradients of their own, of the iteration inside the reverse one. Their results are kept from the forward, which hides what
  // they were made of in the reverse as it does there.
  CustomGradients repeat_customs() {
    if (!customs_) return {};
    CustomGradients customs = customs_->inside(attr_.body);
    for (CustomGradient c : customs.take_from(0)) {
      for (const NodeId result : c.results) hidden_.insert(to_[result.index].index);
      for (auto* nodes : {&c.results, &c.cotangents, &c.inputs, &c.gradients})
        for (NodeId& id : *nodes) id = to_[id.index];
      uint32_t first = UINT32_MAX, last = 0;
      for (uint32_t i = c.first; i < c.last; ++i)
        if (forward_.nodes[i].op != Op::input) first = std::min(first, to_[i].index), last = std::max(last, to_[i].index + 1);
      c.first = std::min(first, last), c.last = last;
      customs.add(std::move(c));
    }
    return customs;
  }

  // Copied with a block that calls another: the next order differentiates it.
  void keep(const CustomGradient& c) {
    for (const auto* nodes : {&c.results, &c.cotangents, &c.inputs, &c.gradients})
      for (const NodeId id : *nodes) reverse_.keep(id);
  }

  void seed() {
    for (size_t c = 0; c < carries(); ++c) {
      const Type& type = forward_.type(sources_.states[c]);
      if (!is_floating(type.dtype)) continue;
      const NodeId after = results_[c].valid() ? results_[c] : zeros(type);
      const NodeId gradient = reverse_.carry(after);
      carried_.push_back(c);
      seeds_.push_back({to_[forward_.updates[c].value.index], gradient});
      wrt_.push_back(to_[sources_.states[c].index]);
    }
    for (size_t r = carries(); r < forward_.updates.size(); ++r)
      if (results_[r].valid()) {
        const NodeId value = forward_.updates[r].value;
        seeds_.push_back({to_[value.index], reverse_.slice(results_[r], forward_[value].origin)});
      }
    for (size_t k = 0; k < first_initial() && k < sources_.inputs.size(); ++k) {
      if (!wanted_[k] || !sources_.inputs[k].valid()) continue;
      const NodeId input = to_[sources_.inputs[k].index];
      if (operand_of_.contains(input.index)) continue;  // one value given twice
      operand_of_.emplace(input.index, k);
      wrt_.push_back(input);
      (k < first_slice() ? wholes_ : slices_).push_back(input);
    }
  }

  void hand_on(const Sweep& sweep) {
    Builder& body = reverse_.body();
    for (size_t i = 0; i < carried_.size(); ++i) {
      const NodeId state = to_[sources_.states[carried_[i]].index];
      NodeId before = sweep.result(state);
      if (!before.valid()) {
        const Type type = body.type(state);
        const NodeId zero = body.constant(Poly(0), type.dtype);
        before = type.rank() == 0 ? zero : body.broadcast(zero, {}, type.axes);
      }
      reverse_.set_next(i, before);
    }
    for (const NodeId input : slices_)
      if (const NodeId gradient = sweep.result(input); gradient.valid()) collect(gradient);
  }

  size_t collect(NodeId value) {
    const auto [known, fresh] = collected_.try_emplace(value.index, collected_.size());
    if (fresh) reverse_.collect(value);
    return known->second;
  }

  // ---- sums over iterations of what each adds to a value from outside

  bool can_stack(NodeId x) const {
    if (reverse_.stacked(x).valid()) return true;
    const OpKind kind = kind_of(reverse_graph()[x].op);
    return kind == OpKind::compute || kind == OpKind::composite || of_clone_.contains(x.index);
  }
  const Graph& reverse_graph() const { return const_cast<BodyBuilder&>(reverse_).graph(); }
  void stack(NodeId x) {
    if (!reverse_.stacked(x).valid()) collect(x);
  }
  bool is_stacked(NodeId x) const { return reverse_.stacked(x).valid() || collected_.contains(x.index); }

  // Views between the value and what makes it pass on.
  NodeId made_by(NodeId x) const {
    while (reverse_graph()[x].op == Op::permute) x = reverse_graph()[x].operands[0];
    return x;
  }

  // Products first: what they collect, others sum as well.
  void plan_sums(const Sweep& sweep) {
    for (const NodeId whole : wholes_)
      for (const Partial& part : sweep.arrived(whole)) {
        const NodeId made = made_by(part.value);
        const Node node = reverse_graph()[made];
        if (node.op != Op::contract || !can_stack(node.operands[0]) || !can_stack(node.operands[1])) continue;
        for (NodeId x : node.operands) stack(x);
        products_.insert(made.index);
      }
    for (const NodeId whole : wholes_)
      for (const Partial& part : sweep.arrived(whole)) {
        const NodeId made = made_by(part.value);
        const Node& node = reverse_graph()[made];
        const bool reduces = is_reduce(node, ReduceFn::sum) && is_stacked(node.operands[0]);
        if (products_.contains(made.index) || reduces || is_stacked(made) || sums_.contains(made.index)) continue;
        add_up(made);
      }
  }

  // A carry that starts at 0.
  void add_up(NodeId value) {
    const NodeId before = reverse_.carry(zeros(reverse_graph().type(value)));
    reverse_.set_next(carried_.size() + sums_.size(), reverse_.body().map(MapFn::add, {before, value}));
    sums_.emplace(value.index, sums_.size());
  }

  // The reverse body as it was before what only products outside read is gone from it.
  void note_sums() {
    whole_ = reverse_graph();
    for (uint32_t i = 0; i < whole_.size(); ++i)
      if (const NodeId outer = reverse_.stacked(NodeId{i}); outer.valid()) slice_of_.emplace(i, outer);
  }

  NodeId stacked(NodeId x, const std::vector<NodeId>& made) const {
    if (const auto slice = slice_of_.find(x.index); slice != slice_of_.end()) return slice->second;
    return made[carried_.size() + sums_.size() + collected_.at(x.index)];
  }

  static AxisList behind_iterations(const AxisList& labels, int rank, int iterations) {
    AxisList out;
    out.push_back(iterations);
    for (int i = 0; i < labels.size(); ++i) out.push_back(labels[i] >= rank ? labels[i] + 1 : labels[i]);
    return out;
  }

  // The sum over all iterations of a value of the reverse body, outside.
  NodeId sum_outside(NodeId x, const std::vector<NodeId>& made) {
    const Node& node = whole_[x];
    if (const auto sum = sums_.find(x.index); sum != sums_.end()) return made[carried_.size() + sum->second];
    if (slice_of_.contains(x.index) || collected_.contains(x.index)) return build_.reduce(ReduceFn::sum, stacked(x, made), {0});
    if (node.op == Op::permute) return build_.permute(sum_outside(node.operands[0], made), node.as<PermuteAttr>().order);
    if (node.op == Op::reduce) {
      AxisList axes{0};
      for (int axis : node.as<ReduceAttr>().axes) axes.push_back(axis + 1);
      return build_.reduce(ReduceFn::sum, stacked(node.operands[0], made), axes);
    }
    EINC_CHECK(node.op == Op::contract, "no sum over iterations of {}", to_string(node.op));
    const ContractAttr& attr = node.as<ContractAttr>();
    const int rank = node.type.rank();
    return build_.contract(stacked(node.operands[0], made), stacked(node.operands[1], made), behind_iterations(attr.left, rank, rank),
                           behind_iterations(attr.right, rank, rank), rank);
  }

  std::vector<NodeId> gradients(const std::vector<NodeId>& made, const Sweep& sweep) {
    std::vector<NodeId> out(node_.operands.size());
    for (size_t i = 0; i < carried_.size(); ++i) {
      const size_t k = first_initial() + carried_[i];
      if (wanted_[k]) out[k] = made[i];
    }
    for (const NodeId input : slices_)
      if (const NodeId gradient = sweep.result(input); gradient.valid())
        out[operand_of_.at(input.index)] = made[carried_.size() + sums_.size() + collected_.at(gradient.index)];
    for (const NodeId whole : wholes_) {
      std::vector<Partial> parts;
      for (const Partial& part : sweep.arrived(whole)) parts.push_back({sum_outside(part.value, made), part.axes});
      if (parts.empty()) continue;
      const size_t k = operand_of_.at(whole.index);
      const std::vector<Axis> frame = build_.type(node_.operands[k]).axes;
      const Partial total = accumulate(build_, std::move(parts), frame);
      const NodeId full =
          total.axes.size() == static_cast<int>(frame.size()) ? total.value : build_.broadcast(total.value, total.axes, frame);
      out[k] = build_.rename(full, frame);
    }
    return out;
  }

  // ---- what the forward collects for the reverse

  void save_values() {
    const std::vector<NodeId> needed = needed_clones();
    if (needed.empty()) return;
    auto body = std::make_shared<Graph>(forward_);
    Builder extend(*body);
    std::vector<int> index;
    for (const NodeId clone : needed) {
      const NodeId value = of_clone_.at(clone.index);
      int found = -1;
      for (size_t r = carries(); r < body->updates.size(); ++r)
        if (body->updates[r].value == value) found = static_cast<int>(r);
      if (found < 0) {
        found = static_cast<int>(body->updates.size());
        extend.origin = forward_[value].origin;
        extend.origin.pinned = false;
        const NodeId state = extend.state(StateAttr{scan_name(body->updates.size()), Init{}, StateRole::user}, forward_.type(value));
        body->updates.push_back({state, value});
      }
      index.push_back(found);
    }
    std::get<ScanAttr>(build_.graph()[scan_].attr).body = body;
    if (customs_) {
      const CustomGradients known = customs_->inside(attr_.body);
      customs_->set_inside(body, {known.list().begin(), known.list().end()});
    }
    const Origin saved = build_.origin;
    for (size_t i = 0; i < needed.size(); ++i) {
      build_.origin = forward_[of_clone_.at(needed[i].index)].origin;
      build_.origin.pinned = false;
      reverse_.replace_by_slice(needed[i], build_.scan_result(scan_, index[i], axis_.name));
    }
    build_.origin = saved;
  }

  // Values of the forward that what stays of the reverse reads and that are not made again.
  std::vector<NodeId> needed_clones() const {
    const Graph& graph = reverse_graph();
    std::vector<bool> seen(graph.size(), false);
    std::vector<NodeId> needed, open = reverse_.roots();
    while (!open.empty()) {
      const NodeId id = open.back();
      open.pop_back();
      if (seen[id.index]) continue;
      seen[id.index] = true;
      const auto clone = of_clone_.find(id.index);
      if (clone != of_clone_.end() &&
          (forward_[clone->second].op == Op::state || hidden_.contains(id.index) || is_dear(forward_, forward_[clone->second]))) {
        needed.push_back(id);
        continue;
      }
      open.insert(open.end(), graph[id].operands.begin(), graph[id].operands.end());
    }
    std::sort(needed.begin(), needed.end());
    return needed;
  }

  Builder& build_;
  CustomGradients* const customs_;
  const NodeId scan_;
  const Node node_;
  const ScanAttr attr_;
  const Graph forward_;
  std::vector<NodeId> results_;
  const std::vector<bool> wanted_;
  const Axis axis_;
  BodyBuilder reverse_;
  ScanSources sources_;
  std::vector<NodeId> to_;                         // of the forward's nodes
  std::unordered_map<uint32_t, NodeId> of_clone_;  // and back, but for inputs
  std::vector<Seed> seeds_;
  std::vector<NodeId> wrt_, wholes_, slices_;        // inputs of the reverse body whose gradients are wanted
  std::unordered_map<uint32_t, size_t> operand_of_;  // of these
  std::vector<size_t> carried_;                      // carries with a gradient
  std::map<uint32_t, size_t> collected_, sums_;      // nodes of the reverse body: numbers among what is collected, and of running sums
  std::set<uint32_t> products_, hidden_;             // hidden: results of calls with gradients of their own
  Graph whole_;                                      // the reverse body before it is finished
  std::unordered_map<uint32_t, NodeId> slice_of_;    // its slices
};

}  // namespace

std::vector<NodeId> gradient_of_scan(Builder& build, NodeId scan, std::span<const NodeId> results, const std::vector<bool>& wanted,
                                     CustomGradients* customs, bool* met_custom) {
  return ScanGradient(build, scan, results, wanted, customs).run(met_custom);
}

}  // namespace einc
