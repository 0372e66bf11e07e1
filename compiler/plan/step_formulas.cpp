// SPDX-License-Identifier: Apache-2.0
#include "compiler/plan/step_formulas.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

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

// What of a program a stage has: iterations, or what stands before or behind the loop. What every stage makes for itself is the first's.
enum StagePart : int { of_iterations, of_first, of_last, stage_parts };

// Whether a loop's iteration has a node.
bool is_of_loop(const Graph& graph, uint32_t context, Name loop) {
  for (; context != 0; context = graph.loop_contexts[context].parent)
    if (graph.loops[graph.loop_contexts[context].loop].trip_count == Poly::dim(loop)) return true;
  return false;
}

// Sums over a graph's loops, of each channel in the parts that stages have.
class PartSums {
 public:
  PartSums(const Graph& graph, Name loop, const StagePlaces& places, size_t channels)
      : graph_(graph), places_(places), sum_(graph, static_cast<int>(channels * stage_parts)) {
    for (uint32_t c = 0; c < graph.loop_contexts.size(); ++c) is_of_loop_.push_back(!loop.empty() && is_of_loop(graph, c, loop));
  }
  void add(size_t channel, uint32_t node, const Poly& amount) {
    const uint32_t context = graph_.nodes[node].origin.loop_context;
    const StagePart part = is_of_loop_[context] ? of_iterations : places_.of.empty() || places_.of[node] <= 0 ? of_first : of_last;
    sum_.add(static_cast<int>(channel * stage_parts) + part, context, amount);
  }
  // Of each channel its parts, one behind the other.
  std::vector<Poly> totals() const { return sum_.totals(); }

 private:
  const Graph& graph_;
  const StagePlaces& places_;
  std::vector<bool> is_of_loop_;  // by context
  LoopSum sum_;
};

}  // namespace

class FormulaMaker {
 public:
  FormulaMaker(StepFormulas& out, const Graph& graph, const Partitioned& p, const PlacedWays& placed, const Device& device,
               const Bindings& dims, Name batch)
      : out_(out), graph_(graph), p_(p), all_(placed), placed_(placed.as_is), again_(placed.again), device_(device), dims_(dims) {
    first_axis_ = graph.mesh.stages.any() ? 1 : 0;
    for (size_t m = first_axis_; m < graph.mesh.axes.size(); ++m) variables_.push_back(graph.mesh.axes[m].size.free_names().at(0));
    if (!batch.empty()) variables_.push_back(batch);
    out_.variables_ = variables_.size();
    out_.device_ = &device;
    if (!placed.loop.empty()) places_ = place_stages(p.graph, placed.loop, placed.firsts);
  }

  void run() {
    collectives();
    contractions();
    values();
    received();
  }

 private:
  using InStages = StepFormulas::InStages;
  using Often = StepFormulas::Often;
  static constexpr size_t each = 0, shared = 1, once = 2, how_often = 3;  // channels of Often

  FastFormula fast(const Poly& formula) const { return {formula, variables_, dims_}; }
  // Of a channel's parts. Iterations that differ from the others are the first and the last.
  InStages in_stages(std::span<const Poly> parts, const Rational& scale = Rational(1)) const {
    if (all_.loop.empty() || parts[of_iterations].is_zero())
      return {{}, fast(Poly(scale) * parts[of_first]), fast(Poly(scale) * parts[of_last])};
    Substitution none, one;
    none.emplace(all_.loop, Poly(0)), one.emplace(all_.loop, Poly(1));
    const Poly fixed = parts[of_iterations].substitute(none), iteration = parts[of_iterations].substitute(one) - fixed;
    const Poly half = Poly(Rational(1, 2)) * fixed;
    return {fast(Poly(scale) * iteration), fast(Poly(scale) * (parts[of_first] + half)), fast(Poly(scale) * (parts[of_last] + half))};
  }
  static std::span<const Poly> parts_of(const std::vector<Poly>& totals, size_t channel) {
    return std::span(totals).subspan(channel * stage_parts, stage_parts);
  }
  Often often(const std::vector<Poly>& totals, size_t channel) const {
    return {in_stages(parts_of(totals, channel + each)), in_stages(parts_of(totals, channel + shared)),
            in_stages(parts_of(totals, channel + once))};
  }
  Poly share(uint32_t i) const { return local_bytes(graph_.nodes[i].type, p_.layouts[i], graph_.mesh); }

  // As a report of stages has it (report/staged_device.h); what gradients and params that are spread need besides is known of a way.
  size_t how_often_moved(const Collective& c) const {
    if (p_.graph[c.node].origin.phase == Phase::optimizer) return once;
    if (places_.of.empty()) return each;
    if (places_.of_weights[c.node.index]) return c.kind == CollectiveKind::all_gather && !graph_.mesh.params.empty() ? each : shared;
    return places_.for_update[c.node.index] ? shared : each;
  }

  void collectives() {
    const size_t axes = graph_.mesh.axes.size() - first_axis_;
    PartSums sum(p_.graph, all_.loop, places_, 2 * how_often * axes + 2);
    const size_t whole_sums = 2 * how_often * axes, gathered_kept = whole_sums + 1;
    const std::vector<bool> kept = forward_values_read_later();
    const Sizes sizes(p_.graph);
    std::unordered_set<Poly> gathered;
    for (const Collective& c : collectives_of(p_)) {
      const Origin& origin = p_.graph[c.node].origin;
      const size_t often = how_often_moved(c);
      const size_t channel = 2 * how_often * (static_cast<size_t>(c.mesh_axis) - first_axis_) + often;
      sum.add(channel, c.node.index, c.bytes);
      sum.add(channel + how_often, c.node.index, Poly(c.kind == CollectiveKind::all_reduce ? 2 : 1));
      // A ring sends of what it sums all that the device does not keep.
      if (c.kind == CollectiveKind::reduce_scatter && often == shared) sum.add(whole_sums, c.node.index, c.bytes);
      if (c.kind == CollectiveKind::all_gather && kept[c.node.index])
        sum.add(gathered_kept, c.node.index, divide(sizes.bytes(c.node), devices_of(c.node)));
      if (c.kind == CollectiveKind::all_gather && origin.phase != Phase::optimizer && gathered.insert(c.bytes).second)
        out_.gathered_.push_back(fast(c.bytes));
    }
    const std::vector<Poly> totals = sum.totals();
    for (size_t a = 0; a < axes; ++a)
      out_.axes_.push_back({often(totals, 2 * how_often * a), often(totals, 2 * how_often * a + how_often)});
    out_.sums_ = in_stages(parts_of(totals, whole_sums));
    out_.gathered_kept_ = in_stages(parts_of(totals, gathered_kept));
  }

  // Values of a forward, weights' aside, that the backward reads as they are, through a view or in another order (zigzag).
  std::vector<bool> forward_values_read_later() const {
    const Graph& graph = p_.graph;
    const std::vector<bool> of_weights = places_.of.empty() ? of_weights_alone(graph) : places_.of_weights;
    std::vector<bool> read_later(graph.size(), false);
    for (uint32_t i = graph.size(); i-- > 0;) {
      const Node& node = graph.nodes[i];
      const bool moves = kind_of(node.op) == OpKind::view || node.op == Op::concat;
      const bool later = node.origin.phase == Phase::backward || (moves && read_later[i]);
      for (const NodeId x : node.operands)
        if (later && graph[x].origin.phase == Phase::forward && !of_weights[x.index]) read_later[x.index] = true;
    }
    return read_later;
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
      (placed_.in_memory[i] || is_declaration(node.op) ? stored : within).insert(key_of(node.origin));
      if (again_.again[i] && node.op == Op::contract) again.insert(key_of(node.origin));
    }
    const Sizes sizes(p_.graph);
    struct Known {
      Poly bytes;
      double rate;
      size_t at;
    };
    std::unordered_map<Poly, std::vector<Known>> classes;  // by FLOPs
    std::vector<std::tuple<uint32_t, size_t, bool>> added;
    for (uint32_t i = 0; i < p_.graph.size(); ++i) {
      const Node& node = p_.graph.nodes[i];
      if (node.op != Op::contract || !p_.needed[i]) continue;
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
      std::vector<Known>& alike = classes[flops];
      auto known = std::ranges::find_if(alike, [&](const Known& k) { return k.rate == rate && k.bytes == bytes; });
      if (known == alike.end()) {
        known = alike.insert(known, {bytes, rate, out_.contractions_.size()});
        out_.contractions_.push_back({{}, {}, fast(flops), fast(bytes), rate});
      }
      added.emplace_back(i, known->at, again.contains(key_of(node.origin)));
    }
    if (added.empty()) return;
    PartSums sum(p_.graph, all_.loop, places_, 2 * out_.contractions_.size());
    for (const auto& [node, channel, twice] : added) {
      sum.add(2 * channel, node, Poly(1));
      if (twice) sum.add(2 * channel + 1, node, Poly(1));
    }
    const std::vector<Poly> counts = sum.totals();
    for (size_t c = 0; c < out_.contractions_.size(); ++c)
      out_.contractions_[c].count = in_stages(parts_of(counts, 2 * c)),
      out_.contractions_[c].again = in_stages(parts_of(counts, 2 * c + 1));
  }
  const Poly& size_of(int m) const { return graph_.mesh.axes[static_cast<size_t>(m)].size; }

  void values() {
    enum : size_t {
      params,
      gradients,
      moments,
      inputs,
      kept,
      beside,
      copies,
      kept_again,
      beside_again,
      moved_again,
      launches_again,
      moved,
      launches = moved + how_often,
      channels = launches + how_often
    };
    const StagePlaces& places = all_.stages;
    PartSums sum(graph_, all_.loop, places, channels);
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (is_declaration(node.op)) {
        sum.add(node.op == Op::param ? params : node.op == Op::input ? inputs : moments, i, share(i));
        continue;
      }
      if (placed_.kept[i]) sum.add(kept, i, share(i));
      if (placed_.beside[i]) beside_or_copy(sum, i, beside, copies);
      if (again_.kept[i]) sum.add(kept_again, i, share(i));
      if (again_.beside[i] && !param_behind(graph_, NodeId{i}).valid()) sum.add(beside_again, i, share(i));
      if (again_.again[i] && node.op != Op::contract) sum.add(moved_again, i, Poly(2) * share(i));
      if (again_.again[i]) sum.add(launches_again, i, Poly(1));
      if (!placed_.in_memory[i]) continue;
      const bool optimizes = node.origin.phase == Phase::optimizer;
      const size_t often = optimizes ? once : !places.of.empty() && places.of_weights[i] ? shared : each;
      sum.add(launches + often, i, Poly(1));
      if (!optimizes && node.op != Op::contract) sum.add(moved + often, i, Poly(2) * share(i));
    }
    for (const Update& gradient : graph_.gradients)
      if (gradient.value.valid()) sum.add(gradients, gradient.target.index, share(gradient.value.index));
    const std::vector<Poly> t = sum.totals();
    const auto of = [&](size_t channel, double scale = 1) {
      return in_stages(parts_of(t, channel), scale == 1 ? Rational(1) : Rational(static_cast<int64_t>(scale * kUnit), kUnit));
    };
    out_.params_ = of(params), out_.gradients_ = of(gradients), out_.moments_ = of(moments), out_.inputs_ = of(inputs);
    out_.kept_ = of(kept, placed_.kept_scale), out_.beside_ = of(beside, placed_.beside_scale);
    out_.kept_again_ = of(kept_again, again_.kept_scale), out_.beside_again_ = of(beside_again, again_.beside_scale);
    out_.moved_again_ = of(moved_again), out_.launches_again_ = of(launches_again), out_.copies_ = of(copies);
    // Moments are read and written, params too, gradients read.
    std::vector<Poly> updated;
    for (size_t part = 0; part < stage_parts; ++part)
      updated.push_back(Poly(2) * (parts_of(t, params)[part] + parts_of(t, moments)[part]) + parts_of(t, gradients)[part]);
    out_.moved_ = {of(moved + each), of(moved + shared), in_stages(updated)};
    out_.launches_ = often(t, launches);
  }

  // A param's copy in a smaller dtype is whole where devices put it together once a step.
  void beside_or_copy(PartSums& sum, uint32_t i, size_t beside, size_t copies) const {
    const NodeId param = param_behind(graph_, NodeId{i});
    if (!param.valid()) return sum.add(beside, i, share(i));
    Layout layout = p_.layouts[i];
    if (graph_.mesh.params.empty() && graph_.nodes[i].op == Op::cast) {
      layout = Layout(graph_.nodes[i].type.rank());
      for (const ShardRequest& r : graph_.mesh.requests)
        if (r.declared == Op::param && r.path == graph_[param].as<ParamAttr>().path && r.axis < graph_.nodes[i].type.rank())
          layout.over(r.axis) = r.over;
    }
    sum.add(copies, i, local_bytes(graph_.nodes[i].type, layout, graph_.mesh));
  }

  // Between the first stage and the next one, for each microbatch: up what its forward reads, down what its backward does.
  void received() {
    if (places_.of.empty()) return;
    const Sizes sizes(p_.graph);
    std::set<uint32_t> sent;
    Poly bytes;
    for (uint32_t i = 0; i < p_.graph.size(); ++i)
      for (const NodeId x : p_.graph.nodes[i].operands) {
        if (!p_.needed[i]) continue;
        const int from = places_.of[x.index], to = places_.of[i];
        if (std::min(from, to) != 0 || std::max(from, to) != 1 || places_.of_weights[x.index] || places_.for_update[x.index]) continue;
        if (p_.graph[x].origin.phase == Phase::optimizer || !sent.insert(x.index).second) continue;
        bytes += divide(sizes.bytes(x), devices_of(x));
      }
    out_.received_ = fast(bytes), out_.values_received_ = static_cast<double>(sent.size());
  }

  static constexpr int64_t kUnit = 1 << 20;
  StepFormulas& out_;
  const Graph& graph_;
  const Partitioned& p_;
  const PlacedWays& all_;
  const PlacedValues &placed_, &again_;
  const Device& device_;
  const Bindings& dims_;
  StagePlaces places_;  // of the partitioned graph; empty: no loop has stages
  std::vector<Name> variables_;
  size_t first_axis_ = 0;  // behind that of stages, which nothing lies along
};

StepFormulas::StepFormulas(const Graph& graph, const Partitioned& partitioned, const PlacedWays& placed, const Device& device,
                           const Bindings& dims, Name batch) {
  FormulaMaker(*this, graph, partitioned, placed, device, dims, batch).run();
}

double StepFormulas::InStages::operator()(std::span<const double> at, const StageShare& stage) const {
  return stage.iterations * iteration(at) + (stage.first ? first(at) : 0) + (stage.last ? last(at) : 0);
}

double StepFormulas::Contractions::seconds(std::span<const double> at, double memory) const {
  return std::max(peak > 0 ? flops(at) / peak : 0, bytes(at) / memory);
}

MicroAmount StepFormulas::counts(const Often& often, const WaySizes& sizes, bool shared_once) const {
  MicroAmount counts{often.each(at(sizes), sizes.stage), often.once(at(sizes), sizes.stage)};
  (shared_once ? counts.once : counts.each) += often.shared(at(sizes), sizes.stage);
  return counts;
}

HeldBytes HeldBytes::planned(double bytes) const {
  const double fixed = params + gradients + states + inputs, by_formula = kept + workspace;
  HeldBytes held = *this;
  if (by_formula <= 0) return held;
  const double ratio = std::max(0.0, (bytes - fixed) / by_formula);
  held.kept *= ratio, held.workspace *= ratio;
  return held;
}

HeldRange StepFormulas::held(const WaySizes& sizes) const {
  const std::span<const double> values = at(sizes);
  const StageShare& stage = sizes.stage;
  // Wherever a plan of the whole program is at its fullest, each stage is taken to be.
  StageShare everywhere = stage;
  everywhere.first = everywhere.last = true;
  double gathered = 0;
  for (const FastFormula& one : gathered_) gathered = std::max(gathered, one(values));
  const auto times = static_cast<double>(stage.held);
  const double gathered_kept = gathered_kept_(values, stage);
  const double beside = beside_(values, everywhere), received = sizes.pipelined ? (times - 1) * received_(values) : 0;
  HeldBytes held{params_(values, stage),
                 gradients_(values, stage),
                 moments_(values, stage),
                 inputs_(values, stage),
                 times * (kept_(values, stage) + gathered_kept) + received,
                 beside + copies_(values, stage) + gathered};
  if (sizes.micro_batches > 1) {
    if (!sizes.pipelined) held.gradients *= 2;  // the sum of those before, and those of this one
    if (sizes.sums_once) held.gradients += sums_(values, stage);
  }
  HeldBytes least = held;
  least.kept = times * (kept_again_(values, stage) + gathered_kept) + received;
  least.workspace += beside_again_(values, everywhere) - beside;
  return {held, least.total() < held.total() ? least : held};
}

std::optional<FittedStep> fitted(const HeldRange& range, double bytes, double margin) {
  bytes /= margin;
  FittedStep step{range.as_is};
  const double whole = step.held.total();
  if (whole <= bytes) return step;
  const HeldBytes& least = range.least;
  if (least.total() > bytes) return std::nullopt;
  step.share = std::min(1.0, (whole - bytes) / (whole - least.total()) + kRounded);
  step.held.kept += step.share * (least.kept - step.held.kept);
  step.held.workspace += step.share * (least.workspace - step.held.workspace);
  return step;
}

double StepFormulas::again(const WaySizes& sizes) const {
  const std::span<const double> values = at(sizes);
  const double memory = device_->bandwidth * device_->sustained_bandwidth;
  double seconds = moved_again_(values, sizes.stage) / memory + launches_again_(values, sizes.stage) * device_->launch_s;
  for (const Contractions& c : contractions_) seconds += c.again(values, sizes.stage) * c.seconds(values, memory);
  return static_cast<double>(sizes.micro_batches) * seconds;
}

std::vector<double> StepFormulas::product_seconds(const WaySizes& sizes) const {
  const double memory = device_->bandwidth * device_->sustained_bandwidth;
  std::vector<double> seconds;
  seconds.reserve(contractions_.size());
  for (const Contractions& c : contractions_) seconds.push_back(c.seconds(at(sizes), memory));
  return seconds;
}

MicroAmount StepFormulas::work(const WaySizes& sizes, std::span<const double> product_seconds) const {
  const std::span<const double> values = at(sizes);
  double products = 0;
  const double memory = device_->bandwidth * device_->sustained_bandwidth;
  for (size_t c = 0; c < contractions_.size(); ++c) products += contractions_[c].count(values, sizes.stage) * product_seconds[c];
  const MicroAmount moved = counts(moved_, sizes, sizes.pipelined), launches = counts(launches_, sizes, sizes.pipelined);
  return {products + moved.each / memory + launches.each * device_->launch_s, moved.once / memory + launches.once * device_->launch_s};
}

SentByAxis StepFormulas::sent(const WaySizes& sizes) const {
  SentByAxis sent{};
  for (size_t a = 0; a < axes_.size(); ++a)
    sent[a] = {counts(axes_[a].bytes, sizes, sizes.sums_once), counts(axes_[a].rounds, sizes, sizes.sums_once)};
  return sent;
}

SecondsByAxis StepFormulas::sent_seconds(const SentByAxis& sent, const WaySizes& sizes, std::span<const int> order) const {
  double inside = 1;
  SecondsByAxis seconds{};
  for (size_t k = order.size(); k-- > 0;) {
    const auto axis = static_cast<size_t>(order[k]);
    const auto ring = ring_on(*device_, sizes.values[axis], inside);
    if (!ring) return seconds[axis].each = std::numeric_limits<double>::infinity(), seconds;
    const auto& [bytes, rounds] = sent[axis];
    seconds[axis] = {bytes.each / ring->bandwidth + rounds.each * ring->latency_s,
                     bytes.once / ring->bandwidth + rounds.once * ring->latency_s};
    inside *= sizes.values[axis];
  }
  return seconds;
}

}  // namespace einc
