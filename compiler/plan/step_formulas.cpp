// SPDX-License-Identifier: Apache-2.0
#include "compiler/plan/step_formulas.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "compiler/cost/memory.h"
#include "compiler/cost/op_cost.h"
#include "compiler/cost/roofline.h"
#include "compiler/cost/sum.h"
#include "compiler/partition/collectives.h"
#include "compiler/report/ring.h"

namespace einc {
namespace {

using OriginKey = std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t>;
// So that what is just enough is enough when it is added up.
constexpr double kRounded = 1e-9;

// Where a value comes from, in a program and its partitioned graph alike.
OriginKey key_of(const Origin& origin) {
  return {origin.label.id(),    origin.module.id(),     origin.loop_context,
          origin.location.line, origin.location.column, static_cast<uint32_t>(origin.phase)};
}

}  // namespace

class FormulaMaker {
 public:
  FormulaMaker(StepFormulas& out, const Graph& graph, const Partitioned& p, const PlacedWays& placed, const Device& device,
               const Bindings& dims, Name batch)
      : out_(out), graph_(graph), p_(p), placed_(placed.as_is), again_(placed.again), device_(device), dims_(dims) {
    for (const MeshAxis& axis : graph.mesh.axes) variables_.push_back(axis.size.free_names().at(0));
    if (!batch.empty()) variables_.push_back(batch);
    out_.variables_ = variables_.size();
    out_.device_ = &device;
  }

  void run() {
    collectives();
    contractions();
    values();
  }

 private:
  FastFormula fast(const Poly& formula) const { return {formula, variables_, dims_}; }
  Poly share(uint32_t i) const { return local_bytes(graph_.nodes[i].type, p_.layouts[i], graph_.mesh); }

  void collectives() {
    const size_t axes = graph_.mesh.axes.size();
    LoopSum sum(p_.graph, static_cast<int>(4 * axes));
    std::set<std::string> gathered;
    for (const Collective& c : collectives_of(p_)) {
      const Origin& origin = p_.graph[c.node].origin;
      const int channel = 4 * c.mesh_axis + (origin.phase == Phase::optimizer ? 2 : 0);
      sum.add(channel, origin.loop_context, c.bytes);
      sum.add(channel + 1, origin.loop_context, Poly(c.kind == CollectiveKind::all_reduce ? 2 : 1));
      if (c.kind == CollectiveKind::all_gather && origin.phase != Phase::optimizer && gathered.insert(c.bytes.str()).second)
        out_.gathered_.push_back(fast(c.bytes));
    }
    const std::vector<Poly> totals = sum.totals();
    for (size_t a = 0; a < axes; ++a)
      out_.axes_.push_back({{fast(totals[4 * a]), fast(totals[4 * a + 2])}, {fast(totals[4 * a + 1]), fast(totals[4 * a + 3])}});
  }

  Poly devices_of(NodeId id) const {
    Poly devices(1);
    for (const int m : p_.positions[id.index])
      if (m != kNoMesh) devices *= graph_.mesh.axes[static_cast<size_t>(m)].size;
    return devices;
  }

  // A product's operands and result are moved where they lie in memory.
  void contractions() {
    std::set<OriginKey> within, stored, again;
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (kind_of(node.op) == OpKind::view || node.op == Op::cast) continue;
      (placed_.in_memory[i] || is_declared(node.op) ? stored : within).insert(key_of(node.origin));
      if (again_.again[i] && node.op == Op::contract) again.insert(key_of(node.origin));
    }
    const Sizes sizes(p_.graph);
    std::map<std::tuple<std::string, std::string, double>, int> classes;
    std::vector<std::tuple<uint32_t, int, bool>> added;
    for (uint32_t i = 0; i < p_.graph.size(); ++i) {
      const Node& node = p_.graph.nodes[i];
      if (node.op != Op::contract) continue;
      const NodeId id{i};
      std::vector<bool> on(graph_.mesh.axes.size(), false);
      Poly devices(1), bytes;
      for (const NodeId value : {node.operands[0], node.operands[1], id}) {
        for (const int m : p_.positions[value.index])
          if (m != kNoMesh && !on[static_cast<size_t>(m)]) on[static_cast<size_t>(m)] = true, devices *= size_of(m);
        const OriginKey key = key_of(p_.graph[value].origin);
        if (!within.contains(key) || stored.contains(key)) bytes += divide(sizes.bytes(value), devices_of(value));
      }
      const Poly flops = divide(flop_cost(p_.graph, sizes, id).flops, devices);
      const auto peak = is_in_tf32(p_.graph, id) ? device_.tf32_peak() : device_.contraction_peak(working_dtype(p_.graph, id));
      const double rate = peak.value_or(0) * device_.sustained_clock * device_.sustained_share(working_dtype(p_.graph, id));
      const auto [at, fresh] = classes.try_emplace({flops.str(), bytes.str(), rate}, static_cast<int>(out_.contractions_.size()));
      if (fresh) out_.contractions_.push_back({{}, {}, fast(flops), fast(bytes), rate});
      added.emplace_back(node.origin.loop_context, at->second, again.contains(key_of(node.origin)));
    }
    if (added.empty()) return;
    LoopSum sum(p_.graph, static_cast<int>(2 * out_.contractions_.size()));
    for (const auto& [context, channel, twice] : added) {
      sum.add(2 * channel, context, Poly(1));
      if (twice) sum.add(2 * channel + 1, context, Poly(1));
    }
    const std::vector<Poly> counts = sum.totals();
    for (size_t c = 0; c < out_.contractions_.size(); ++c)
      out_.contractions_[c].count = fast(counts[2 * c]), out_.contractions_[c].again = fast(counts[2 * c + 1]);
  }
  const Poly& size_of(int m) const { return graph_.mesh.axes[static_cast<size_t>(m)].size; }
  static bool is_declared(Op op) { return op == Op::input || op == Op::param || op == Op::state; }

  void values() {
    enum : int {
      params,
      gradients,
      moments,
      inputs,
      kept,
      beside,
      copies,
      moved,
      launches,
      steps,
      kept_again,
      beside_again,
      moved_again,
      launches_again,
      channels
    };
    LoopSum sum(graph_, channels);
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      const Node& node = graph_.nodes[i];
      const uint32_t context = node.origin.loop_context;
      if (is_declared(node.op)) {
        sum.add(node.op == Op::param ? params : node.op == Op::input ? inputs : moments, context, share(i));
        continue;
      }
      if (placed_.kept[i]) sum.add(kept, context, share(i));
      if (placed_.beside[i]) beside_or_copy(sum, i, beside, copies);
      if (again_.kept[i]) sum.add(kept_again, context, share(i));
      if (again_.beside[i] && !param_behind(graph_, NodeId{i}).valid()) sum.add(beside_again, context, share(i));
      if (again_.again[i] && node.op != Op::contract) sum.add(moved_again, context, Poly(2) * share(i));
      if (again_.again[i]) sum.add(launches_again, context, Poly(1));
      if (!placed_.in_memory[i]) continue;
      const bool optimizes = node.origin.phase == Phase::optimizer;
      sum.add(optimizes ? steps : launches, context, Poly(1));
      if (!optimizes && node.op != Op::contract) sum.add(moved, context, Poly(2) * share(i));
    }
    for (const Update& gradient : graph_.gradients)
      if (gradient.value.valid()) sum.add(gradients, graph_[gradient.target].origin.loop_context, share(gradient.value.index));
    const std::vector<Poly> t = sum.totals();
    out_.params_ = fast(t[params]), out_.gradients_ = fast(t[gradients]), out_.moments_ = fast(t[moments]), out_.inputs_ = fast(t[inputs]);
    const auto scaled = [&](double scale, const Poly& bytes) {
      return fast(Poly(Rational(static_cast<int64_t>(scale * kUnit), kUnit)) * bytes);
    };
    out_.kept_ = scaled(placed_.kept_scale, t[kept]), out_.beside_ = scaled(placed_.beside_scale, t[beside]);
    out_.kept_again_ = scaled(again_.kept_scale, t[kept_again]), out_.beside_again_ = scaled(again_.beside_scale, t[beside_again]);
    out_.moved_again_ = fast(t[moved_again]), out_.launches_again_ = fast(t[launches_again]);
    out_.copies_ = fast(t[copies]);
    // Moments are read and written, params too, gradients read.
    out_.moved_ = {fast(t[moved]), fast(Poly(2) * (t[params] + t[moments]) + t[gradients])};
    out_.launches_ = {fast(t[launches]), fast(t[steps])};
  }

  // A param's copy in a smaller dtype is whole where devices put it together once a step.
  void beside_or_copy(LoopSum& sum, uint32_t i, int beside, int copies) const {
    const NodeId param = param_behind(graph_, NodeId{i});
    if (!param.valid()) return sum.add(beside, graph_.nodes[i].origin.loop_context, share(i));
    Layout layout = p_.layouts[i];
    if (graph_.mesh.params.empty() && graph_.nodes[i].op == Op::cast) {
      layout = Layout(graph_.nodes[i].type.rank());
      for (const ShardRequest& r : graph_.mesh.requests)
        if (r.declared == Op::param && r.path == graph_[param].as<ParamAttr>().path && r.axis < graph_.nodes[i].type.rank())
          layout.over(r.axis) = r.over;
    }
    sum.add(copies, graph_.nodes[i].origin.loop_context, local_bytes(graph_.nodes[i].type, layout, graph_.mesh));
  }

  static constexpr int64_t kUnit = 1 << 20;
  StepFormulas& out_;
  const Graph& graph_;
  const Partitioned& p_;
  const PlacedValues &placed_, &again_;
  const Device& device_;
  const Bindings& dims_;
  std::vector<Name> variables_;
};

StepFormulas::StepFormulas(const Graph& graph, const Partitioned& partitioned, const PlacedWays& placed, const Device& device,
                           const Bindings& dims, Name batch) {
  FormulaMaker(*this, graph, partitioned, placed, device, dims, batch).run();
}

double StepFormulas::Contractions::seconds(std::span<const double> at, double memory) const {
  return std::max(peak > 0 ? flops(at) / peak : 0, bytes(at) / memory);
}

double StepFormulas::Twice::operator()(const WaySizes& sizes, size_t count) const {
  const std::span<const double> values(sizes.values.data(), count);
  return static_cast<double>(sizes.micro_batches) * each(values) + once(values);
}

HeldRange StepFormulas::held(const WaySizes& sizes) const {
  const std::span<const double> at(sizes.values.data(), variables_);
  double gathered = 0;
  for (const FastFormula& one : gathered_) gathered = std::max(gathered, one(at));
  const double beside = beside_(at);
  HeldBytes held{params_(at), gradients_(at), moments_(at), inputs_(at), kept_(at), beside + copies_(at) + gathered};
  if (sizes.micro_batches > 1) held.gradients *= 2;  // the sum of those before, and those of this one
  HeldBytes least = held;
  least.kept = kept_again_(at);
  least.workspace += beside_again_(at) - beside;
  return {held, least.total() < held.total() ? least : held};
}

std::optional<FittedStep> StepFormulas::fitted(const HeldRange& range, const WaySizes& sizes, double bytes) const {
  FittedStep step{range.as_is};
  const double whole = step.held.total();
  if (whole <= bytes) return step;
  const HeldBytes& least = range.least;
  if (least.total() > bytes) return std::nullopt;
  const double share = std::min(1.0, (whole - bytes) / (whole - least.total()) + kRounded);
  step.held.kept += share * (least.kept - step.held.kept);
  step.held.workspace += share * (least.workspace - step.held.workspace);
  step.again = share * again(sizes);
  return step;
}

double StepFormulas::again(const WaySizes& sizes) const {
  const std::span<const double> at(sizes.values.data(), variables_);
  const double memory = device_->bandwidth * device_->sustained_bandwidth;
  double seconds = moved_again_(at) / memory + launches_again_(at) * device_->launch_s;
  for (const Contractions& c : contractions_) seconds += c.again(at) * c.seconds(at, memory);
  return static_cast<double>(sizes.micro_batches) * seconds;
}

double StepFormulas::work(const WaySizes& sizes) const {
  const std::span<const double> at(sizes.values.data(), variables_);
  double products = 0;
  const double memory = device_->bandwidth * device_->sustained_bandwidth;
  for (const Contractions& c : contractions_) products += c.count(at) * c.seconds(at, memory);
  return static_cast<double>(sizes.micro_batches) * products + moved_(sizes, variables_) / memory +
         launches_(sizes, variables_) * device_->launch_s;
}

SecondsByAxis StepFormulas::sent(const WaySizes& sizes, std::span<const int> order) const {
  double inside = 1;
  SecondsByAxis seconds{};
  for (size_t k = order.size(); k-- > 0;) {
    const auto axis = static_cast<size_t>(order[k]);
    const auto ring = ring_on(*device_, sizes.values[axis], inside);
    if (!ring) return seconds[axis] = std::numeric_limits<double>::infinity(), seconds;
    seconds[axis] = axes_[axis].bytes(sizes, variables_) / ring->bandwidth + axes_[axis].rounds(sizes, variables_) * ring->latency_s;
    inside *= sizes.values[axis];
  }
  return seconds;
}

}  // namespace einc
