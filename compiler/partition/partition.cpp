// SPDX-License-Identifier: Apache-2.0
#include "compiler/partition/partition.h"

#include <fmt/format.h>

#include <limits>
#include <optional>

#include "compiler/ir/remap.h"
#include "compiler/partition/decide.h"
#include "compiler/partition/delay.h"
#include "compiler/partition/factors.h"
#include "compiler/partition/place_stages.h"
#include "compiler/partition/repeated.h"
#include "compiler/partition/scan_factors.h"
#include "compiler/partition/spread.h"

namespace einc {
namespace {

constexpr int kEveryPhase = -1;

// A value as it lies somewhere; a spread param put together for one phase serves that phase alone.
struct Version {
  MeshValue part;
  int phase = kEveryPhase;
};

class Partitioner {
 public:
  // `micro`: a microbatch's dims.
  Partitioner(const Graph& graph, const Bindings& micro, const PartitionHints& hints)
      : in_(graph),
        micro_(micro),
        hints_(hints),
        values_{graph.dims.bind(micro).values, graph.dims.values_or(micro, 1024)},
        narrowing_(find_narrowing(graph)),
        builder_(graph, out_.graph),
        versions_(graph.size()),
        spread_(graph.size()) {
    copy_all_but_nodes();
  }

  std::variant<Partitioned, NoPartition> run() {
    declared_ = declared_layouts(in_, narrowing_, values_);
    if (!read_rules()) return problem_;
    find_wants();
    repeated_.emplace(in_, factors_);
    std::vector<Layout> read;
    for (uint32_t i = 0; i < in_.size(); ++i) read.push_back(may_be_asked(i) ? declared_[i].read : Layout(in_.nodes[i].type.rank()));
    stages_ = find_stages();
    WaitingSums waiting = delayed_sums(in_, read, factors_, wants_, values_, stages_);
    waits_ = std::move(waiting.sums);
    for (const auto& [node, m] : hints_.waiting)
      if (!waits_[node.index].contains(m)) waits_[node.index].push_back(m);
    want_table_parts(std::move(waiting.taken));
    find_behind();
    find_late_numbers();
    // What only the optimizer reads behind all others: by then all numbers are there that devices meet for at once.
    for (const bool behind : {false, true})
      for (uint32_t i = 0; i < in_.size(); ++i)
        if (behind_[i] == behind) node(i);
    roots();
    out_.positions = std::move(builder_.positions());
    out_.bodies = std::move(builder_.bodies());
    out_.edge.resize(out_.graph.size(), false);
    find_needed();
    // How a value lies is told of the version that a device makes: of what is made in parts, the whole is no longer read.
    for (const std::vector<Version>& versions : versions_) {
      const auto is_needed = [&](const Version& v) { return out_.needed[v.part.node.index]; };
      const auto shown = std::ranges::find_if(versions, is_needed);
      out_.layouts.push_back(versions.empty() ? Layout() : (shown == versions.end() ? versions[0] : *shown).part.layout);
    }
    for (uint32_t i = 0; i < in_.size(); ++i) out_.zigzag.push_back(zigzag_of(i));
    return std::move(out_);
  }

 private:
  // By node, of a pipeline whose stages are known.
  std::vector<int> find_stages() const {
    const PipelineStages& stages = in_.mesh.stages;
    if (!stages.any()) return {};
    if (!values_.known(in_.mesh.axes[static_cast<size_t>(stages.over)].size) || !values_.known(in_.dims.size(stages.loop))) return {};
    return place_stages(in_, stages.loop, stages_of(in_, micro_)).of;
  }

  void find_needed() {
    out_.needed.resize(out_.graph.size(), false);
    for_each_root(out_.graph, [&](NodeId id) {
      if (id.valid()) out_.needed[id.index] = true;
    });
    for (uint32_t i = out_.graph.size(); i-- > 0;)
      if (out_.needed[i])
        for (const NodeId operand : out_.graph.nodes[i].operands) out_.needed[operand.index] = true;
  }

  void copy_all_but_nodes() {
    Graph& g = out_.graph;
    g.name = in_.name, g.dims = in_.dims, g.mesh = in_.mesh, g.policy = in_.policy;
    g.loops = in_.loops, g.loop_contexts = in_.loop_contexts, g.chosen_by = in_.chosen_by, g.plans = in_.plans;
  }

  bool is_declared(uint32_t i) const {
    const Op op = in_.nodes[i].op;
    return op == Op::input || op == Op::param || op == Op::state;
  }

  bool may_be_asked(uint32_t i) const { return is_declared(i) || in_.nodes[i].op == Op::random; }

  bool read_rules() {
    std::vector<AxisList> split(in_.size());  // mesh axes that split what a node is made of
    for (uint32_t i = 0; i < in_.size(); ++i) {
      const Node& node = in_.nodes[i];
      for (int m = 0; m < static_cast<int>(in_.mesh.axes.size()); ++m) {
        bool reached = may_be_asked(i) && declared_[i].read.has(m);
        for (const NodeId operand : node.operands) reached = reached || split[operand.index].contains(m);
        if (reached) split[i].push_back(m);
      }
      // One more while an axis is being split.
      if (!split[i].empty() && most_axes(node) + static_cast<int>(in_.mesh.axes.size()) >= kMaxRank) {
        problem_ = {NodeId{i}, split[i][0], fmt::format("with those of the mesh it has more than {} axes", kMaxRank - 1)};
        return false;
      }
      factors_.push_back(factors_of(in_, NodeId{i}));
      if (const auto yielding = hints_.yielding.find(i); yielding != hints_.yielding.end())
        for (size_t label = 0; label < factors_[i].labels.size(); ++label) factors_[i].labels[label].yields = yielding->second[label];
    }
    return true;
  }

  // In a scan's body values get the mesh's axes, too.
  static int most_axes(const Node& node) {
    int most = node.type.rank();
    if (node.op == Op::scan)
      for (const Node& inside : node.as<ScanAttr>().body->nodes) most = std::max(most, most_axes(inside));
    return most;
  }

  // From what states and params take, and hints, backwards along axes that elementwise ops and views keep.
  void find_wants() {
    for (const Node& node : in_.nodes) wants_.emplace_back(node.type.rank());
    for (const Update& update : in_.updates) add_wish(wants_[update.value.index], declared_[update.target.index].stored);
    for (const Update& gradient : in_.gradients)
      if (gradient.value.valid()) add_wish(wants_[gradient.value.index], declared_[gradient.target.index].stored);
    for (const auto& [node, wish] : hints_.wishes) add_wish(wants_[node.index], wish);
    carry_back(wants_);
  }

  // A table that is made for readers who take parts of it is made in parts.
  void want_table_parts(std::vector<Layout> taken) {
    for (uint32_t i = 0; i < in_.size(); ++i) taken[i].axes.resize(in_.nodes[i].type.axes.size()), taken[i].partial.clear();
    carry_back(taken);
    for (uint32_t i = 0; i < in_.size(); ++i)
      if (makes_table(in_.nodes[i].op)) add_wish(wants_[i], taken[i]);
  }

  // What users of a node wish holds for its operands, along axes that elementwise ops and permutations keep.
  void carry_back(std::vector<Layout>& wishes) const {
    for (uint32_t i = in_.size(); i-- > 0;) {
      const Node& node = in_.nodes[i];
      const bool aligned = node.op == Op::map || node.op == Op::cast || node.op == Op::permute || node.op == Op::stop_gradient;
      if (!aligned || wishes[i].whole()) continue;
      for (size_t k = 0; k < node.operands.size(); ++k) {
        Layout wished(in_.type(node.operands[k]).rank());
        for (size_t a = 0; a < wished.axes.size(); ++a) {
          const int label = factors_[i].operands[k][a];
          for (int r = 0; r < node.type.rank(); ++r)
            if (factors_[i].result[static_cast<size_t>(r)] == label) wished.axes[a] = wishes[i].over(r);
        }
        add_wish(wishes[node.operands[k].index], wished);
      }
    }
  }

  static void add_wish(Layout& want, const Layout& layout) {
    for (size_t i = 0; i < layout.axes.size(); ++i)
      for (const int m : layout.axes[i])
        if (!want.has(m)) want.axes[i].push_back(m);
  }

  // ---- nodes

  void node(uint32_t i) {
    const Node& node = in_.nodes[i];
    builder_.build().origin = node.origin;
    if (node.operands.empty()) return source(i, node);
    if (node.op == Op::scan_result) {
      const uint32_t scan = node.operands[0].index;
      const Layout layout = scan_result_layout(factors_[scan], scans_.at(scan), node.as<ScanResultAttr>().index);
      return versions_[i].push_back({taken(i, builder_.scan_result(NodeId{i}, versions_[scan][0].part.node, layout))});
    }
    std::vector<Layout> given;
    for (const NodeId operand : node.operands) given.push_back(seen_by(operand, i));
    const LayoutDecision decision = decide_layouts(in_, NodeId{i}, factors_[i], given, wants_[i], values_);
    std::vector<MeshValue> operands;
    for (size_t k = 0; k < node.operands.size(); ++k)
      operands.push_back(laid_out(node.operands[k], decision.operands[k], static_cast<int>(node.origin.phase)));
    builder_.build().origin = node.origin;
    if (node.op == Op::scan) {
      scans_[i] = decision.over;
      return versions_[i].push_back({builder_.scan(NodeId{i}, operands, scan_factors(in_, NodeId{i}).body, decision.over)});
    }
    if (repeated_->may_be_made_in_parts(NodeId{i})) computed_.emplace(i, decision);
    const MeshValue made = builder_.compute(NodeId{i}, operands, decision.result, decision.rows);
    if (const auto param = narrowing_.made_of.find(i); param != narrowing_.made_of.end() && spread_[param->second] != Assembly::never) {
      spread_[i] = spread_[param->second];
      read_[i] = read_.at(param->second);
    }
    versions_[i].push_back({taken(i, made)});
  }

  void source(uint32_t i, const Node& node) {
    const MeshValue whole{builder_.whole(node), Layout(node.type.rank())};
    if (!is_declared(i)) {
      // All of it can be drawn as well as put together.
      if (may_be_asked(i) && !declared_[i].stored.whole())
        versions_[i].push_back({builder_.relayout(whole, declared_[i].stored, node.type)});
      return versions_[i].push_back({whole});
    }
    whole_[i] = whole.node;
    const ZigzagAxes zigzag = zigzag_of(i);
    versions_[i].push_back(
        {at_edge([&] { return builder_.relayout(builder_.reordered(whole, zigzag, ZigzagMove::into), declared_[i].stored, node.type); })});
    out_.declared.push_back({whole.node, versions_[i][0].part.node, declared_[i].stored, zigzag});
    spread_[i] = declared_[i].assembly;
    if (spread_[i] != Assembly::never) read_[i] = declared_[i].read;
  }

  ZigzagAxes zigzag_of(uint32_t i) const {
    const auto known = hints_.zigzag.find(i);
    return known == hints_.zigzag.end() ? ZigzagAxes() : known->second;
  }

  // What is built meanwhile stands between whole values and parts.
  template <class Build>
  MeshValue at_edge(Build build) {
    const uint32_t first = out_.graph.size();
    const MeshValue part = build();
    out_.edge.resize(first, false);
    out_.edge.resize(out_.graph.size(), true);
    return part;
  }

  // How an operand lies, as this reader sees it: a spread param is read whole but by the optimizer, and but by what narrows it.
  Layout seen_by(NodeId operand, uint32_t reader) const {
    const bool whole = in_.nodes[reader].origin.phase != Phase::optimizer && !narrowing_.on_way[reader];
    if (spread_[operand.index] != Assembly::never && whole) return read_.at(operand.index);
    return versions_[operand.index][0].part.layout;
  }

  // The optimizer's nodes that nothing else reads.
  void find_behind() {
    behind_.assign(in_.size(), true);
    for (uint32_t i = in_.size(); i-- > 0;) {
      behind_[i] = behind_[i] && in_.nodes[i].origin.phase == Phase::optimizer;
      for (const NodeId operand : in_.nodes[i].operands) behind_[operand.index] = behind_[operand.index] && behind_[i];
    }
  }

  // Numbers that only those read, as the largest elements that scale fp8 values of the next step.
  void find_late_numbers() {
    late_.assign(in_.size(), !in_.mesh.stages.any() || !stages_.empty());
    for (uint32_t i = 0; i < in_.size(); ++i) {
      const Node& node = in_.nodes[i];
      if (node.type.rank() > 0 || node.op != Op::reduce || node.origin.phase == Phase::optimizer) late_[i] = false;
      for (const NodeId operand : node.operands) late_[operand.index] = late_[operand.index] && behind_[i];
    }
    for_each_root(in_, [&](NodeId id) {
      if (id.valid()) late_[id.index] = false;
    });
  }

  // Whether its parts are combined with others of its kind, once they are wanted.
  bool is_open(uint32_t i, const MeshValue& made) const {
    const auto is_sum = [](const Unreduced& p) { return p.fn == ReduceFn::sum; };
    return late_[i] && !made.layout.partial.empty() && std::ranges::none_of(made.layout.partial, is_sum);
  }

  // Numbers of all that lie as this one, in one move between devices for so many: alone each would take as long as all. Stages of a
  // pipeline do not wait for each other's. The move is the update's: there it is made once a step, not with each microbatch.
  void combine_open(uint32_t wanted) {
    // Each is a buffer of the kernel that puts them side by side, and a GPU's kernel takes 4 KiB of arguments.
    constexpr size_t kTogether = 64;
    const Layout layout = versions_[wanted][0].part.layout;
    const DType dtype = in_.nodes[wanted].type.dtype;
    std::vector<uint32_t> alike;
    std::erase_if(open_, [&](uint32_t i) {
      const bool is_alike =
          versions_[i][0].part.layout == layout && in_.nodes[i].type.dtype == dtype && (stages_.empty() || stages_[i] == stages_[wanted]);
      if (is_alike) alike.push_back(i);
      return is_alike;
    });
    for (size_t begin = 0; begin < alike.size(); begin += kTogether) {
      const std::span some = std::span(alike).subspan(begin, std::min(kTogether, alike.size() - begin));
      builder_.build().origin = in_.nodes[some.back()].origin;
      builder_.build().origin.label = Name("numbers of the next step");
      if (in_.mesh.stages.any()) builder_.build().origin.phase = Phase::optimizer;
      std::vector<MeshValue> numbers;
      for (const uint32_t i : some) numbers.push_back(versions_[i][0].part);
      const Type full{dtype, {{Name("number"), Poly(static_cast<int64_t>(some.size()))}}};
      const MeshValue list = builder_.relayout(builder_.side_by_side(numbers), Layout(1), full);
      for (size_t k = 0; k < some.size(); ++k) versions_[some[k]].push_back({builder_.number_at(list, static_cast<int64_t>(k))});
    }
  }

  // Sums and extremes that do not wait are taken where the value is made; in parts, where its users take parts.
  MeshValue taken(uint32_t i, const MeshValue& made) {
    if (is_open(i, made)) return open_.push_back(i), made;
    Layout target = made.layout;
    take_in_parts(target, in_.nodes[i].type, wants_[i], waits_[i], in_.mesh, values_);
    std::erase_if(target.partial, [&](const Unreduced& p) { return p.fn != ReduceFn::sum || !waits_[i].contains(p.mesh); });
    return target == made.layout ? made : builder_.relayout(made, target, in_.nodes[i].type);
  }

  // The value laid out so: made before, or made of the version from which the fewest bytes move. A spread param is put together in each
  // phase anew, so that the whole of it need not be kept between forward and backward.
  MeshValue laid_out(NodeId id, const Layout& target, int phase) {
    std::vector<Version>& versions = versions_[id.index];
    const bool may_be_open = late_[id.index] && target.whole();  // asked of every operand: few are
    if (may_be_open && std::ranges::find(open_, id.index) != open_.end()) combine_open(id.index);
    const bool by_phase = spread_[id.index] == Assembly::each_phase;
    // A stage's update takes its parts of params itself: taken with each microbatch, they would be summed as terms are.
    const bool for_update = is_declared(id.index) && in_.mesh.stages.any() && static_cast<Phase>(phase) == Phase::optimizer;
    double least = std::numeric_limits<double>::infinity();
    size_t best = 0;
    for (size_t v = 0; v < versions.size(); ++v) {
      if (versions[v].phase != kEveryPhase && versions[v].phase != phase) continue;
      if (versions[v].part.layout == target) return versions[v].part;
      const double cost = cost_to(versions[v].part.layout, target, in_.type(id));
      if (cost < least) least = cost, best = v;
    }
    if (const auto parts = in_parts(id, versions[best].part.layout, target)) return made_in_parts(id, *parts, target, phase);
    builder_.build().origin = in_[id].origin;
    if (by_phase || for_update) builder_.build().origin.phase = static_cast<Phase>(phase);
    const MeshValue part = builder_.relayout(versions[best].part, target, in_.type(id));
    versions.push_back({part, by_phase || for_update ? phase : kEveryPhase});
    return part;
  }

  // How the value is computed as parts of what devices along a mesh axis have the same; nullopt: as a whole.
  std::optional<LayoutDecision> in_parts(NodeId id, const Layout& from, const Layout& target) const {
    const auto whole = computed_.find(id.index);
    return whole == computed_.end() ? std::nullopt : repeated_->in_parts(id, whole->second, from, target, values_);
  }

  MeshValue made_in_parts(NodeId id, const LayoutDecision& parts, const Layout& target, int phase) {
    const Node& node = in_[id];
    std::vector<MeshValue> operands;
    for (size_t k = 0; k < node.operands.size(); ++k) operands.push_back(laid_out(node.operands[k], parts.operands[k], phase));
    builder_.build().origin = node.origin;
    const MeshValue made = builder_.relayout(builder_.compute(id, operands, parts.result, parts.rows), target, node.type);
    versions_[id.index].push_back({made});
    return made;
  }

  double cost_to(const Layout& from, const Layout& target, const Type& type) const {
    double cost = 0;
    for (const Unreduced& p : target.partial)
      if (from.partial_on(p.mesh) == nullptr && (type.rank() > 0 || from.has(p.mesh))) return std::numeric_limits<double>::infinity();
    const double bytes = values_.typical(local_bytes(type, from, in_.mesh), 1);
    for (const Unreduced& p : from.partial)
      if (target.partial_on(p.mesh) == nullptr) cost += 2 * bytes;
    for (int m = 0; m < static_cast<int>(in_.mesh.axes.size()); ++m) {
      const int axis = from.axis_on(m);
      if (axis >= 0 && target.axis_on(m) != axis) cost += bytes * values_.typical(in_.mesh.axes[static_cast<size_t>(m)].size, 2);
    }
    return cost;
  }

  // ---- roots

  // Results leave whole, as they would without a mesh; a value that is still a sum is taken before that, which is communication.
  EdgeValue gathered(NodeId id, const Layout& layout) {
    const MeshValue part = laid_out(id, layout, static_cast<int>(in_[id].origin.phase));
    builder_.build().origin = in_[id].origin;
    const ZigzagAxes zigzag = zigzag_of(id.index);
    const MeshValue whole = at_edge(
        [&] { return builder_.reordered(builder_.relayout(part, Layout(in_.type(id).rank()), in_.type(id)), zigzag, ZigzagMove::out_of); });
    return {whole.node, part.node, part.layout, zigzag};
  }

  Layout own_layout(NodeId id) const { return versions_[id.index][0].part.layout; }

  void roots() {
    Graph& g = out_.graph;
    const auto root = [](std::vector<EdgeValue>& list, EdgeValue value) {
      list.push_back(std::move(value));
      return list.back().whole;
    };
    for (const Output& output : in_.outputs)
      g.outputs.push_back({output.name, root(out_.outputs, gathered(output.node, own_layout(output.node)))});
    for (const Update& update : in_.updates)
      g.updates.push_back(
          {whole_.at(update.target.index), root(out_.updates, gathered(update.value, declared_[update.target.index].stored))});
    for (const Update& gradient : in_.gradients)
      g.gradients.push_back(
          {whole_.at(gradient.target.index),
           root(out_.gradients, gradient.value.valid() ? gathered(gradient.value, own_layout(gradient.value)) : EdgeValue{})});
    if (in_.loss.valid()) g.loss = (out_.loss = gathered(in_.loss, own_layout(in_.loss))).whole;
  }

  const Graph& in_;
  const Bindings& micro_;
  const PartitionHints& hints_;
  const LayoutValues values_;
  const Narrowing narrowing_;
  Partitioned out_;
  MeshBuilder builder_;
  std::vector<DeclaredLayout> declared_;
  std::vector<Factors> factors_;
  std::vector<Layout> wants_;
  std::vector<AxisList> waits_;
  std::vector<std::vector<Version>> versions_;  // by node; the first is what the node is
  std::vector<Assembly> spread_;                // by node: params, and what they are narrowed to
  std::unordered_map<uint32_t, Layout> read_;   // of those that are spread
  std::vector<int> stages_;                     // by node; none: not known
  std::vector<bool> behind_, late_;             // by node
  std::vector<uint32_t> open_;                  // of those that are made: not yet combined
  std::optional<RepeatedAxes> repeated_;
  std::unordered_map<uint32_t, LayoutDecision> computed_;      // of those that may be made in parts
  std::unordered_map<uint32_t, std::vector<AxisList>> scans_;  // by node: what splits the labels of its factors
  std::unordered_map<uint32_t, NodeId> whole_;                 // declarations in the new graph
  NoPartition problem_;
};

}  // namespace

std::variant<Partitioned, NoPartition> partition(const Graph& graph, const Bindings& given, const PartitionHints& hints) {
  return Partitioner(graph, microbatch_dims(graph, given), hints).run();
}

std::string describe_layout(const Type& type, const Layout& layout, const ZigzagAxes& zigzag, const Mesh& mesh) {
  const auto name = [&](int m) { return mesh.axes[static_cast<size_t>(m)].name.str(); };
  std::string text = std::string(to_string(type.dtype)) + "[";
  for (int i = 0; i < type.rank(); ++i) {
    if (i > 0) text += ' ';
    const Axis& axis = type.axis(i);
    text += axis.name.empty() ? axis.size.str() : axis.name.str();
    if (zigzag.axes.contains(i)) text += ":zigzag";
    for (const int m : layout.over(i)) text += "/" + name(m);
  }
  text += "]";
  for (const Unreduced& p : layout.partial) text += ", " + std::string(to_string(p.fn)) + " over " + name(p.mesh);
  return text;
}

}  // namespace einc
