// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/guard_updates.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "compiler/fuse/bound_updates.h"
#include "compiler/fuse/bounded_products.h"
#include "compiler/fuse/update_expressions.h"
#include "compiler/ir/build.h"
#include "runtime/base/training_names.h"

namespace einc {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr uint32_t kNone = UINT32_MAX;

class Guard {
 public:
  Guard(const BoundGraph& given, RunMode mode, GradientLooks looks)
      : given_(given),
        mode_(mode),
        looks_(looks),
        graph_(std::make_unique<Graph>(given.graph)),
        build_(*graph_),
        expressions_(given),
        bounded_products_(given, expressions_),
        constant_(constant_nodes(given.graph)),
        skips_(has_state(given.graph, kLossScale)),
        of_device_(given.graph.mesh.of_device),
        bounds_(given, expressions_, [this](NodeId value) { return magnitude_of(value); }),
        products_(given.graph.size(), false) {}

  GuardedGraph run() {
    build_.origin.phase = Phase::optimizer;
    if (mode_ == RunMode::training && graph_->loss.valid()) guard_.checks.push_back({NonFinite::loss, graph_->loss});
    find_gradients();
    sort_updates();
    if (largest_.valid() && !skips_) guard_.checks.push_back({NonFinite::gradient, largest_});
    for (size_t update : others_) keep_finite(graph_->updates[update]);
    for (const Update& update : replaced_) look_before(update);
    if (fault_.valid()) guard_.checks.push_back({NonFinite::state, fault_});
    guard_.numbers = bounds_.numbers();
    guard_.numbers.insert(guard_.numbers.end(), magnitudes_.begin(), magnitudes_.end());
    if (largest_.valid() && skips_) guard_.numbers.push_back(largest_);
    make_dry();
    guard_.bounds = bounds_.ops();
    guard_.dry.resize(graph_->size(), 0);
    guard_.guarded.resize(graph_->size(), false);
    for (uint32_t i = 0; i < late_.size(); ++i) guard_.guarded[i] = late_[i];
    for (NodeId id : stored_) guard_.guarded[id.index] = true;
    return {std::move(graph_), std::move(guard_)};
  }

 private:
  NodeId number(double value, DType dtype) { return build_.constant(value, dtype); }
  NodeId as_f64(NodeId x) { return build_.type(x).dtype == DType::f64 ? x : build_.cast(x, DType::f64); }
  NodeId is_finite(NodeId x) { return build_.map(MapFn::less, {build_.map(MapFn::abs, {x}), number(kInfinity, build_.type(x).dtype)}); }
  NodeId reduced(ReduceFn fn, NodeId x) {
    const Type& type = build_.type(x);
    if (is_floating(type.dtype) && bytes_of(type.dtype) < 4) x = build_.cast(x, DType::f32);
    if (const int rank = build_.type(x).rank(); rank > 0) x = build_.reduce(fn, x, AxisList::range(rank));
    return as_f64(x);
  }
  NodeId largest_magnitude(NodeId x) { return reduced(ReduceFn::max, build_.map(MapFn::abs, {x})); }
  // The larger; NaN where one is.
  void join(NodeId& all, NodeId x) { all = all.valid() ? build_.map(MapFn::maximum, {all, x}) : x; }

  void stand_for(NodeId value, const std::string& label) {
    const Origin& origin = (*graph_)[value].origin;
    build_.origin.location = origin.location;
    build_.origin.module = origin.module;
    build_.origin.label = Name(label);
  }
  std::string name_of(NodeId target) const {
    const Node& node = given_[target];
    return node.op == Op::param ? node.as<ParamAttr>().path.str() : node.as<StateAttr>().path.str();
  }

  // ---- gradients

  // The sum of a gradient's squares, as clipping takes it.
  NodeId square_sum(NodeId gradient) const {
    for (NodeId square : expressions_.readers(gradient)) {
      const Node& node = given_[square];
      if (node.op != Op::map || node.as<MapAttr>().fn != MapFn::mul || node.operands[0] != gradient || node.operands[1] != gradient)
        continue;
      if (node.type.rank() == 0) return square;
      for (NodeId sum : expressions_.readers(square))
        if (is_reduce(given_[sum], ReduceFn::sum) && given_[sum].type.rank() == 0) return sum;
    }
    return {};
  }

  // A loss scale skips steps by the gradients' own elements.
  NodeId magnitude_of_gradient(NodeId gradient) {
    const double factor = looks_ == GradientLooks::products && !skips_ ? bounded_products_.factor(gradient) : 0;
    if (factor == 0) return largest_magnitude(gradient);
    products_[gradient.index] = true;
    const auto operands = given_[gradient].operands;
    const NodeId largest = build_.map(MapFn::mul, {magnitude_of_operand(operands[0]), magnitude_of_operand(operands[1])});
    return build_.map(MapFn::mul, {largest, number(factor, DType::f64)});
  }

  NodeId magnitude_of_operand(NodeId operand) {
    const auto [known, is_new] = operands_.try_emplace(operand.index);
    if (is_new) known->second = largest_magnitude(operand);
    return known->second;
  }

  void find_gradients() {
    if (mode_ != RunMode::training) return;
    NodeId squares;
    for (const Update& gradient : graph_->gradients) {
      if (!gradient.value.valid() || !given_.live[gradient.value.index]) continue;
      stand_for(gradient.value, "gradient of " + name_of(gradient.target));
      if (const NodeId sum = square_sum(gradient.value); sum.valid())
        join(squares, as_f64(sum));
      else
        join(largest_, magnitude_of_gradient(gradient.value));
    }
    if (squares.valid()) {
      // Of a sum of squares that rounding made too small by less than three quarters, and that left out squares below 1e-45.
      const NodeId root = build_.map(MapFn::mul, {build_.map(MapFn::sqrt, {squares}), number(2, DType::f64)});
      join(largest_, build_.map(MapFn::add, {root, number(1e-18, DType::f64)}));
    }
  }

  NodeId magnitude_of(NodeId value) {
    if (expressions_.is_gradient(value)) return largest_;
    stand_for(value, (*graph_)[value].origin.label.str());
    magnitudes_.push_back(largest_magnitude(value));
    return magnitudes_.back();
  }

  // ---- which way each update is guarded

  bool is_wanted(const Update& update) const {
    if (update.value == update.target || !given_.live[update.value.index]) return false;
    const auto* state = std::get_if<StateAttr>(&given_[update.target].attr);
    return mode_ == RunMode::training || (state && state->role == StateRole::user);
  }

  // Of micro-batches, to which the step adds another.
  bool is_gradient_sum(const Update& update) const {
    const auto* state = std::get_if<StateAttr>(&given_[update.target].attr);
    return state && state->role != StateRole::user && given_[update.value].origin.phase == Phase::backward;
  }

  bool begins_infinite(NodeId target) const {
    const Node& node = given_[target];
    const Init& init = node.op == Op::param ? node.as<ParamAttr>().init : node.as<StateAttr>().init;
    return std::ranges::any_of(init.args, [](const ScalarValue& value) {
      const double* number = std::get_if<double>(&value);
      return number && !std::isfinite(*number);
    });
  }

  bool is_replaced(const Update& update) const {
    const Node& node = given_[update.value];
    return node.op == Op::scatter_set && node.operands[0] == update.target && !begins_infinite(update.target);
  }

  // What is put together of an update: the device's part. Else the value itself.
  NodeId part_of(NodeId value) const {
    while (given_[value].op == Op::all_gather) value = given_[value].operands[0];
    return value;
  }

  void sort_updates() {
    struct Candidate {
      size_t update;
      uint32_t bound;
    };
    std::vector<Candidate> candidates;
    std::vector<size_t> counters;
    std::vector<NodeId> values;
    for (size_t i = 0; i < graph_->updates.size(); ++i) {
      const Update update = graph_->updates[i];
      if (!is_wanted(update)) continue;
      const bool elementwise = expressions_.is_expression(part_of(update.value));
      if (!is_floating(given_[update.target].type.dtype)) {
        if (elementwise) counters.push_back(i), values.push_back(update.value);
      } else if (is_gradient_sum(update)) {
        look_at_sum(update);
      } else if (is_replaced(update)) {
        replaced_.push_back(update);
      } else if (elementwise && !begins_infinite(update.target)) {
        candidates.push_back({i, bounds_.bound_of(part_of(update.value))});
      } else if (!is_constant(update.value)) {
        others_.push_back(i);
      }
    }
    const std::vector<bool> known = bounds_.known();
    for (const Candidate& c : candidates)
      if (known[c.bound]) values.push_back(graph_->updates[c.update].value);
    find_late(values);
    for (size_t counter : counters) put_off(graph_->updates[counter]);
    for (const Candidate& c : candidates) {
      const Update update = graph_->updates[c.update];
      if (bounds_.is_constant(c.bound) && known[c.bound]) continue;
      if (known[c.bound] && late_[update.value.index])
        bounded_.push_back({{update.target, part_of(update.value)}, c.bound});
      else
        others_.push_back(c.update);
    }
    if (of_device_)
      for (size_t i = 0; i < graph_->updates.size(); ++i) wait_for_all(i);
  }

  // What no look is for, and what is stored with none, waits, too: where one device stores nothing, no other does.
  void wait_for_all(size_t update) {
    Update& u = graph_->updates[update];
    if (u.value.index >= late_.size()) return;  // made here, to wait
    const bool looked_at = std::ranges::find(others_, update) != others_.end() || is_gradient_sum(u);
    if (!is_wanted(u) || looked_at || late_[u.value.index]) return;
    u.value = build_.cast(u.value, build_.type(u.value).dtype);
    stored_.push_back(u.value);
  }

  // What only the values of updates read, through elementwise expressions: it can wait until all is looked at.
  void find_late(const std::vector<NodeId>& values) {
    std::vector<bool> part(given_.graph.size(), false);
    for (NodeId value : values) part[value.index] = true;
    late_.assign(given_.graph.size(), false);
    for (uint32_t i = given_.graph.size(); i-- > 0;) {
      if (!part[i] || !expressions_.is_only_updated(NodeId{i})) continue;
      const auto& readers = expressions_.readers(NodeId{i});
      late_[i] = std::ranges::all_of(readers, [&](NodeId r) { return late_[r.index]; });
      for (NodeId x : given_.graph.nodes[i].operands)
        if (late_[i] && (expressions_.is_expression(x) || given_[x].op == Op::all_gather) && given_[x].type.rank() > 0)
          part[x.index] = true;
    }
  }

  // A number that others read before is counted once more where it is stored.
  void put_off(Update& update) {
    if (late_[update.value.index] || given_[update.value].type.rank() > 0) return;
    update.value = copy(update.value);
    stored_.push_back(update.value);
  }

  // A finite one, as what clears a sum.
  bool is_constant(NodeId value) {
    if (!constant_[value.index] || expressions_.is_leaf(value)) return false;
    const uint32_t bound = bounds_.bound_of(value);
    return bounds_.known()[bound];
  }

  void look_at_sum(const Update& update) {
    if (skips_) return;
    stand_for(update.value, "gradient of " + name_of(update.target));
    join(largest_, largest_magnitude(update.value));
  }

  // ---- their checks

  // `value`, and NaN for elements that the target must not take.
  NodeId storable(NodeId value, NodeId target) {
    const DType dtype = build_.type(value).dtype;
    const NodeId infinite = build_.map(MapFn::equal, {build_.map(MapFn::abs, {value}), number(kInfinity, dtype)});
    const NodeId was = build_.map(MapFn::logical_not, {is_finite(target)});
    const NodeId good = build_.map(MapFn::logical_or, {is_finite(value), build_.map(MapFn::logical_and, {infinite, was})});
    return build_.map(MapFn::where, {good, value, number(std::numeric_limits<double>::quiet_NaN(), dtype)});
  }

  void keep_finite(Update& update) {
    stand_for(update.value, "new " + name_of(update.target));
    const NodeId least = reduced(ReduceFn::min, storable(update.value, update.target));
    join(fault_, least);
    const NodeId good = build_.map(MapFn::equal, {least, least});
    update.value = build_.map(MapFn::where, {good, update.value, update.target});
    stored_.push_back(update.value);
  }

  void look_before(const Update& update) {
    const NodeId elements = given_[update.value].operands[1];
    stand_for(elements, (*graph_)[elements].origin.label.str());
    const NodeId largest = largest_magnitude(elements);
    const NodeId check =
        build_.map(MapFn::where, {is_finite(largest), largest, number(std::numeric_limits<double>::quiet_NaN(), DType::f64)});
    guard_.checks.push_back({NonFinite::state, check});
    guard_.before.emplace_back(check, update.value);
  }

  // The expression made once more, beside the one that is stored.
  NodeId again(NodeId id) {
    const Node& given = given_[id];
    if (products_[id.index]) return product_again(id);
    if (given.operands.empty() || given.type.rank() == 0 || expressions_.is_leaf(id)) return id;
    if (const auto known = again_.find(id.index); known != again_.end()) return known->second;
    Node node = given;
    for (NodeId& x : node.operands) x = again(x);
    node.origin.phase = Phase::optimizer;
    if (node.origin.label.empty()) node.origin.label = build_.origin.label;
    return again_.emplace(id.index, build_.append(std::move(node))).first->second;
  }

  // A product that the update makes where it is stored. Both its reductions read one copy.
  NodeId product_again(NodeId product) {
    const auto [known, is_new] = products_again_.try_emplace(product.index);
    if (!is_new) return known->second;
    known->second = copy(product);
    guard_.dry_products.emplace_back(known->second, product);
    return known->second;
  }

  NodeId dry_copy(NodeId value) {
    const NodeId result = again(value);
    return result == value ? copy(value) : result;
  }

  // Updates share what they are made of: m and v of Adam are parts of its params' new values. No element is stored (ValuePlaces). The
  // magnitudes of one gradient's updates are joined first, so that one kernel may look at them.
  void make_dry() {
    guard_.dry.resize(graph_->size(), 0);
    std::vector<NodeId> largest;
    std::unordered_map<uint32_t, size_t> of_gradient;
    for (const auto& [update, bound] : bounded_) {
      stand_for(update.value, "new " + name_of(update.target));
      const NodeId value = dry_copy(update.value), least = reduced(ReduceFn::min, value), most = reduced(ReduceFn::max, value);
      guard_.bounded.push_back({update.target, bound, least, most});
      const size_t at = of_gradient.try_emplace(gradient_of(update.value), largest.size()).first->second;
      if (at == largest.size()) largest.emplace_back();
      join(largest[at], build_.map(MapFn::maximum, {most, build_.map(MapFn::neg, {least})}));
      guard_.dry.resize(graph_->size(), static_cast<uint32_t>(at) + 1);
    }
    NodeId all;
    for (NodeId magnitude : largest) join(all, magnitude);
    if (!all.valid()) return;
    guard_.verdict = build_.map(MapFn::sub, {all, all});  // NaN unless it is finite
    guard_.checks.push_back({NonFinite::state, guard_.verdict});
    guard_.dry.resize(graph_->size(), static_cast<uint32_t>(largest.size()) + 1);
  }

  // What is no number and no element of params and states, of an expression; of several the first.
  uint32_t gradient_of(NodeId id) {
    if (const auto known = gradient_of_.find(id.index); known != gradient_of_.end()) return known->second;
    const Node& node = given_[id];
    uint32_t found = kNone;
    if (node.type.rank() == 0 || is_source(node.op)) return kNone;
    if (expressions_.is_leaf(id)) return id.index;
    for (NodeId x : node.operands)
      if (found == kNone) found = gradient_of(x);
    return gradient_of_[id.index] = found;
  }

  // Of a single number's new value, whose other kernel runs before the checks or after them.
  NodeId copy(NodeId id) {
    Node node = given_[id];
    return build_.append(std::move(node));
  }

  struct BoundedUpdate {
    Update update;
    uint32_t bound;
  };

  const BoundGraph& given_;
  const RunMode mode_;
  const GradientLooks looks_;
  std::unique_ptr<Graph> graph_;
  Builder build_;
  UpdateExpressions expressions_;
  BoundedProducts bounded_products_;
  const std::vector<bool> constant_;  // per node given
  const bool skips_;                  // steps whose gradients are not finite
  const bool of_device_;              // of a mesh
  BoundUpdates bounds_;
  UpdateGuard guard_;
  NodeId largest_;                  // magnitude of all gradients
  std::vector<NodeId> magnitudes_;  // of other values
  NodeId fault_;                    // NaN where one of `others_` must not be stored
  std::vector<BoundedUpdate> bounded_;
  std::vector<size_t> others_;                                      // updates
  std::vector<Update> replaced_;                                    // whose value replaces elements of the target
  std::vector<NodeId> stored_;                                      // values that wait for all checks, besides those given
  std::vector<bool> late_;                                          // of the nodes given
  std::vector<bool> products_;                                      // of the nodes given: gradients that are bounded by their operands
  std::unordered_map<uint32_t, NodeId> operands_, products_again_;  // by node given: magnitudes; copies that dry kernels make
  std::unordered_map<uint32_t, NodeId> again_;                      // by node given: the same of expressions
  std::unordered_map<uint32_t, uint32_t> gradient_of_;              // by node given
};

}  // namespace

std::optional<GuardedGraph> guard_updates(const BoundGraph& graph, RunMode mode, GradientLooks looks) {
  const bool updates = std::ranges::any_of(graph.graph.updates, [&](const Update& u) { return graph.live[u.value.index]; });
  if (!updates) return std::nullopt;
  return Guard(graph, mode, looks).run();
}

}  // namespace einc
