// SPDX-License-Identifier: Apache-2.0
#include "compiler/precision/assign.h"

#include <limits>
#include <map>

#include "compiler/ir/params_in_parts.h"
#include "compiler/ir/remap.h"
#include "compiler/ir/scan.h"
#include "compiler/precision/chains.h"
#include "compiler/precision/prune.h"
#include "compiler/precision/regions.h"
#include "compiler/precision/rules.h"
#include "compiler/precision/storage.h"

namespace einc {
namespace {

class Assigner {
 public:
  // `weights`: nodes of a scan's body that stand for params of the graph around it.
  Assigner(const Graph& graph, Policy policy, Fp8Scaling scaling, ParamStorage storage, const std::vector<bool>& weights = {})
      : in_(graph),
        scaling_(scaling),
        storage_(storage),
        policy_(policy != Policy::inherit ? policy : graph.policy),
        constant_(constant_nodes(graph)),
        loss_(loss_region(graph)),
        weight_(weight_region(graph, weights)),
        gradient_(gradient_region(graph)),
        to_(graph.size()) {}

  Graph run() {
    out_ = without_nodes(in_);
    out_.policy = effective_policy(in_, policy_);
    for (uint32_t i = 0; i < in_.size(); ++i) {
      Node node = in_.nodes[i];
      for (NodeId& x : node.operands) x = to_[x.index];
      to_[i] = assign(i, std::move(node));
    }
    move_roots();
    out_.updates.insert(out_.updates.end(), amax_updates_.begin(), amax_updates_.end());
    if (storage_ == ParamStorage::as_read) out_ = store_as_read(std::move(out_), free_to_choose());
    return keep_chains_wide(drop_unused_views_and_casts(std::move(out_)));
  }

 private:
  std::vector<NodeId> free_to_choose() const {
    std::vector<NodeId> sources;
    for (uint32_t i = 0; i < in_.size(); ++i) {
      const Node& node = in_.nodes[i];
      const bool kept = node.op == Op::param || (node.op == Op::state && node.as<StateAttr>().role == StateRole::user);
      if (kept && node.type.dtype == DType::real) sources.push_back(to_[i]);
    }
    return sources;
  }
  Policy policy_of(const Node& node) const {
    if (node.origin.phase == Phase::optimizer) return Policy::f32;
    return node.origin.policy != Policy::inherit ? node.origin.policy : policy_;
  }
  const Type& type(NodeId id) const { return out_.type(id); }
  Pull pull(NodeId id) const { return pulls_[id.index]; }

  NodeId emit(Node node, DType dtype, std::string_view reason, Pull pull) {
    node.type.dtype = dtype;
    node.reason = Name(reason);
    out_.nodes.push_back(std::move(node));
    pulls_.push_back(pull);
    return NodeId{out_.size() - 1};
  }

  static Pull pull_of(DType dtype) {
    if (!is_floating(dtype)) return Pull::neutral;
    return bytes_of(dtype) < 4 ? Pull::low : Pull::high;
  }

  NodeId assign(uint32_t i, Node node) {
    const DType written = node.type.dtype;
    if (node.op == Op::scan) return scan(i, std::move(node));
    if (node.op == Op::scan_result) return scan_result(std::move(node));
    if (!is_floating(written)) return emit(std::move(node), written, "", Pull::neutral);
    const bool forced = written != DType::real && (node.origin.pinned || node.op == Op::cast);
    const bool as_value = forced || gradient_[i] != DType::real || loss_root(i);
    NodeId id = natural(i, std::move(node));
    if (constant_[i]) pulls_[id.index] = Pull::neutral;
    if (!as_value) return id;
    const DType wanted = forced ? written : gradient_[i] != DType::real ? gradient_[i] : DType::f32;
    return converted(id, wanted, in_.nodes[i].origin.phase);
  }
  bool loss_root(uint32_t i) const { return in_.loss.valid() && in_.loss.index == i && in_.nodes[i].type.dtype != DType::f64; }

  // The node in the dtype its op and operands ask for.
  NodeId natural(uint32_t i, Node node) {
    const DType written = node.type.dtype;
    const Policy policy = policy_of(node);
    const bool written_float = written != DType::real, scalar = node.type.axes.empty();
    switch (node.op) {
      case Op::input:
        return emit(std::move(node), written_float ? written : DType::f32, written_float ? "as declared" : "inputs are stored in f32",
                    written_float ? pull_of(written) : Pull::follows);
      case Op::param:
        return emit(std::move(node), written_float ? written : DType::f32, written_float ? "as declared" : "master copy in f32",
                    Pull::neutral);
      case Op::state:
        return emit(std::move(node), written_float ? written : DType::f32, written_float ? "as declared" : "states are f32",
                    scalar ? Pull::neutral : Pull::high);
      case Op::constant:
      case Op::iota:
        return emit(std::move(node), written_float ? written : DType::f32, "", Pull::neutral);
      case Op::random:
        return emit(std::move(node), written_float ? written : DType::f32, "random numbers are drawn in f32", Pull::follows);
      case Op::contract:
        return contraction(i, std::move(node), policy);
      case Op::map:
        return elementwise(i, std::move(node), policy);
      case Op::reduce:
      case Op::cumulate:
      case Op::softmax:
      case Op::logsumexp:
        return reduction(i, std::move(node));
      case Op::concat:
        return concatenation(std::move(node), policy);
      case Op::gather:
        return gathered(std::move(node), policy);
      case Op::scatter_add:
        return scattered(i, std::move(node));
      case Op::scatter_set:
        node.operands[1] = converted(node.operands[1], type(node.operands[0]).dtype, node.origin.phase);
        return like_operand(std::move(node));
      case Op::cast:
        return cast(i, std::move(node));
      case Op::permute:
      case Op::broadcast:
      case Op::split:
      case Op::merge:
      case Op::slice:
      case Op::diagonal:
      case Op::window:
      case Op::stop_gradient:
      case Op::fold:
      case Op::pad:
      case Op::scatter_max:
      case Op::scatter_min:
      case Op::dropout:
        return like_operand(std::move(node));
      case Op::arg_reduce:
      case Op::top_k_index:
      case Op::training:
      case Op::scan:
      case Op::scan_result:
      case Op::all_reduce:
      case Op::reduce_scatter:
      case Op::all_gather:
      case Op::all_to_all:
      case Op::shift:
        break;
    }
    EINC_CHECK(false, "{} is never floating", to_string(node.op));
  }

  // The body reads its operands as they are stored. Carries are f32 unless annotated; what is collected is stored as it was made.
  NodeId scan(uint32_t i, Node node) {
    ScanAttr attr = node.as<ScanAttr>();
    Graph body = *attr.body;
    const ScanSources sources = scan_sources(body);
    const auto first_carry = static_cast<size_t>(static_cast<int>(node.operands.size()) - attr.carries);
    const auto whole = static_cast<size_t>(whole_operands(in_.nodes[i]));
    std::vector<bool> weights(body.size(), false);
    for (size_t k = 0; k < sources.inputs.size(); ++k) {
      if (!sources.inputs[k].valid()) continue;
      body[sources.inputs[k]].type.dtype = type(node.operands[k]).dtype;
      weights[sources.inputs[k].index] = k < whole && weight_[in_.nodes[i].operands[k].index];
    }
    for (size_t c = 0; c < static_cast<size_t>(attr.carries); ++c) {
      DType& dtype = body[sources.states[c]].type.dtype;
      if (dtype == DType::real) dtype = DType::f32;
      NodeId& initial = node.operands[first_carry + c];
      initial = converted(initial, dtype, node.origin.phase);
    }
    body = Assigner(body, policy_, Fp8Scaling::current, ParamStorage::masters, weights).run();
    for (size_t c = static_cast<size_t>(attr.carries); c < body.updates.size(); ++c) {
      Update& update = body.updates[c];
      if (const Node& made = body[update.value]; made.op == Op::cast && is_floating(made.type.dtype) && !made.origin.pinned)
        update.value = made.operands[0];
      body[update.target].type.dtype = body.type(update.value).dtype;
    }
    attr.body = std::make_shared<const Graph>(std::move(body));
    node.attr = std::move(attr);
    return emit(std::move(node), DType::i32, "", Pull::neutral);
  }

  NodeId scan_result(Node node) {
    const ScanAttr& attr = out_[node.operands[0]].as<ScanAttr>();
    const DType dtype = attr.body->type(attr.body->updates[static_cast<size_t>(node.as<ScanResultAttr>().index)].target).dtype;
    return emit(std::move(node), dtype, "as the scan's body makes it", pull_of(dtype));
  }

  NodeId like_operand(Node node) {
    const NodeId x = node.operands[0];
    const DType dtype = type(x).dtype;
    return emit(std::move(node), dtype, "its operand's", pull(x));
  }

  // A cast with nothing to do passes its operand on.
  NodeId cast(uint32_t i, Node node) {
    const NodeId x = node.operands[0];
    const DType from = type(x).dtype;
    DType to = node.type.dtype;
    if (to == DType::real) to = is_floating(from) && from != DType::f64 ? from : DType::f32;
    if (to == from && node.type.axes == type(x).axes) return x;
    const bool written = in_.nodes[i].type.dtype != DType::real;
    const NodeId id = emit(std::move(node), to, written ? "cast in the program" : "back to the operand's precision", pull_of(to));
    casts_.emplace(std::pair(x.index, to), id);
    return id;
  }

  NodeId contraction(uint32_t i, Node node, Policy policy) {
    const DType written = node.type.dtype, left = type(node.operands[0]).dtype, right = type(node.operands[1]).dtype;
    const Phase phase = node.origin.phase;
    const bool wide = left == DType::f64 || right == DType::f64;
    // Without any policy, operands with written dtypes are multiplied as written.
    const bool as_written = written != DType::real && (policy == Policy::inherit || phase == Phase::optimizer);
    DType result = activation_dtype(policy);
    std::string_view reason = policy == Policy::tf32 ? "policy tf32: multiplied in tf32 by GPUs"
                              : result == DType::f32 ? "policy f32"
                                                     : "contraction: low-precision operands, f32 accumulation";
    if (wide || as_written) {
      result = wide ? DType::f64 : promote(left, right);
      reason = "as its operands are written";
      for (NodeId& x : node.operands) x = converted(x, result, phase);
    } else if (policy == Policy::fp8 && is_of_weights(i)) {
      return scaled_contraction(i, std::move(node));
    } else {
      for (NodeId& x : node.operands) x = converted(x, activation_dtype(policy), phase);
    }
    if (gradient_[i] != DType::real) {
      result = gradient_[i];
      reason = "a parameter's gradient keeps the f32 accumulators";
    } else if (node.origin.pinned && written != DType::real) {
      result = written;
      reason = "pinned in the program";
    }
    return emit(std::move(node), result, reason, pull_of(result));
  }

  // Products of a linear layer: forward and data gradient read the param, the weight gradient is the param's. Those of activations alone,
  // as attention's, lose more by 8 bits than they gain, and stay one kernel in bf16 (so does NVIDIA's Transformer Engine).
  bool is_of_weights(uint32_t i) const {
    const Node& node = in_.nodes[i];
    return gradient_[i] != DType::real || weight_[node.operands[0].index] || weight_[node.operands[1].index];
  }

  // fp8: both operands divided by their scales, the product multiplied by both: y = s_l s_r (l / s_l)(r / s_r).
  NodeId scaled_contraction(uint32_t i, Node node) {
    const Origin origin = node.origin;
    const DType written = node.type.dtype;
    const Type type = node.type;
    std::vector<NodeId> scales;
    for (NodeId& x : node.operands) {
      const Scaled scaled = divided_by_scale(x, operand_dtype(Policy::fp8, origin.phase, out_[x].origin.phase), origin.phase);
      x = scaled.value;
      scales.push_back(scaled.scale);
    }
    const NodeId product = emit(std::move(node), DType::f32, "contraction: scaled fp8 operands, f32 accumulation", Pull::high);
    const NodeId scale = emit_map(MapFn::mul, {scales[0], scales[1]}, Type{DType::f32, {}}, origin, "scale of an fp8 product");
    DType result = activation_dtype(Policy::fp8);
    if (gradient_[i] != DType::real)
      result = gradient_[i];
    else if (origin.pinned && written != DType::real)
      result = written;
    Type scaled_type = type;
    scaled_type.dtype = result;
    return emit_map(MapFn::mul, {product, scale}, scaled_type, origin, "an fp8 product back in its scale");
  }

  struct Scaled {
    NodeId value, scale;
  };
  // x / s in fp8 with s = max |x| / largest, so that the whole range is used. Once for each buffer.
  Scaled divided_by_scale(NodeId x, DType dtype, Phase phase) {
    const auto found = scaled_.find({x.index, dtype});
    if (found != scaled_.end()) return found->second;
    Node node = out_[x];
    Origin origin = node.origin;
    origin.phase = phase;
    origin.pinned = false;
    const bool rearranges = kind_of(node.op) == OpKind::view && node.op != Op::slice && node.op != Op::diagonal;
    Scaled result;
    if (rearranges) {
      const Scaled below = divided_by_scale(node.operands[0], dtype, phase);
      node.operands[0] = below.value;
      node.origin = origin;
      result = {emit(std::move(node), dtype, "cast for its readers", Pull::low), below.scale};
    } else {
      constexpr double kSmallest = 1e-30;  // keeps the scale of a tensor of zeros from being 0
      const Type scalar{DType::f32, {}};
      Type wide = node.type, quotient = node.type, low = node.type;
      quotient.dtype = DType::f32;
      low.dtype = dtype;
      const NodeId magnitude = emit_map(MapFn::abs, {x}, wide, origin, "scale of an fp8 operand");
      Node reduce;
      reduce.op = Op::reduce;
      reduce.type = scalar;
      reduce.operands.push_back(magnitude);
      reduce.attr = ReduceAttr{ReduceFn::max, AxisList::range(wide.rank())};
      reduce.origin = origin;
      const NodeId largest = wide.rank() == 0 ? magnitude : emit(std::move(reduce), DType::f32, "scale of an fp8 operand", Pull::high);
      const NodeId amax = scaling_ == Fp8Scaling::delayed ? delayed_amax(largest, dtype, origin) : largest;
      const NodeId bounded = emit_map(MapFn::maximum, {amax, constant(kSmallest, origin)}, scalar, origin, "scale of an fp8 operand");
      const NodeId scale =
          emit_map(MapFn::mul, {bounded, constant(1 / info(dtype).largest, origin)}, scalar, origin, "scale of an fp8 operand");
      result = {scaling_ == Fp8Scaling::delayed
                    ? within_range(emit_map(MapFn::div, {x, scale}, quotient, origin, "divided by its scale"), low, origin)
                    : emit_map(MapFn::div, {x, scale}, low, origin, "divided by its scale, in fp8"),
                scale};
    }
    scaled_.emplace(std::pair(x.index, dtype), result);
    return result;
  }

  // The maximum of the run before; this run's is kept for the next.
  NodeId delayed_amax(NodeId largest, DType dtype, Origin origin) {
    const Type scalar{DType::f32, {}};
    Init start;
    start.kind = InitKind::constant;
    start.args = {info(dtype).largest};
    Node node;
    node.op = Op::state;
    node.type = scalar;
    node.attr = StateAttr{Name(fmt::format("fp8.{}.amax", amax_updates_.size())), start, StateRole::scalar};
    node.origin = origin;
    const NodeId state = emit(std::move(node), DType::f32, "states are f32", Pull::neutral);
    origin.phase = Phase::optimizer;
    const std::string_view why = "maximum that the next run scales by";
    const Type flag{DType::boolean, {}};
    const NodeId some = emit_map(MapFn::less, {constant(0, origin), largest}, flag, origin, why);
    const NodeId finite = emit_map(MapFn::less, {largest, constant(std::numeric_limits<double>::infinity(), origin)}, flag, origin, why);
    const NodeId usable = emit_map(MapFn::logical_and, {some, finite}, flag, origin, why);
    amax_updates_.push_back({state, emit_map(MapFn::where, {usable, largest, state}, scalar, origin, why)});
    return state;
  }

  NodeId within_range(NodeId x, const Type& low, const Origin& origin) {
    const double largest = info(low.dtype).largest;
    const NodeId above = emit_map(MapFn::maximum, {x, constant(-largest, origin)}, type(x), origin, "within fp8's range");
    return emit_map(MapFn::minimum, {above, constant(largest, origin)}, low, origin, "divided by its scale, in fp8");
  }

  NodeId constant(double value, const Origin& origin) {
    Node node;
    node.op = Op::constant;
    node.attr = ConstantAttr{value};
    node.origin = origin;
    return emit(std::move(node), DType::f32, "", Pull::neutral);
  }

  // Operands have the result's axes, or none.
  NodeId emit_map(MapFn fn, std::initializer_list<NodeId> operands, Type result, const Origin& origin, std::string_view reason) {
    Node node;
    node.op = Op::map;
    MapAttr attr{fn, {}};
    size_t k = 0;
    for (NodeId x : operands) {
      node.operands.push_back(x);
      attr.maps[k++] = AxisList::range(type(x).rank());
    }
    node.attr = attr;
    node.origin = origin;
    node.origin.pinned = false;
    const DType dtype = result.dtype;
    node.type = std::move(result);
    return emit(std::move(node), dtype, reason, pull_of(dtype));
  }

  NodeId elementwise(uint32_t i, Node node, Policy policy) {
    const DType written = node.type.dtype;
    if (written != DType::real)
      return emit(std::move(node), written, node.origin.pinned ? "pinned in the program" : "as its operands are written", pull_of(written));
    std::vector<Pull> pulls;
    for (NodeId x : node.operands)
      if (is_floating(type(x).dtype)) pulls.push_back(pull(x));
    Decision decision = follow_operands(policy, pulls);
    bool neutral = decision.dtype == DType::f32;
    for (Pull p : pulls) neutral = neutral && p == Pull::neutral;
    if (node.origin.phase == Phase::optimizer)
      decision = {DType::f32, "optimizer state and updates are f32"};
    else if (gradient_[i] != DType::real)
      decision = {gradient_[i], "a parameter's gradient is summed in its master's dtype"};
    else if (decision.dtype != DType::f32 && loss_[i])
      decision = {DType::f32, "losses are f32"};
    if (decision.dtype != DType::f32)
      for (NodeId& x : node.operands)
        if (is_floating(type(x).dtype) && pull(x) == Pull::follows) x = converted(x, decision.dtype, node.origin.phase);
    return emit(std::move(node), decision.dtype, decision.reason, neutral ? Pull::neutral : pull_of(decision.dtype));
  }

  NodeId reduction(uint32_t i, Node node) {
    const DType written = node.type.dtype, wide = gradient_[i] != DType::real ? gradient_[i] : DType::f32;
    const bool neutral = pull(node.operands[0]) == Pull::neutral;
    const DType dtype = written == DType::real ? wide : written;
    const std::string_view reason = node.op == Op::softmax || node.op == Op::logsumexp ? "softmax is f32" : "reductions are f32";
    return emit(std::move(node), dtype, written == DType::real ? reason : "as its operand is written",
                neutral ? Pull::neutral : pull_of(dtype));
  }

  NodeId concatenation(Node node, Policy policy) {
    std::vector<Pull> pulls;
    for (NodeId x : node.operands) pulls.push_back(pull(x));
    Decision decision = follow_operands(policy, pulls);
    if (node.type.dtype != DType::real) decision = {node.type.dtype, "as its operands are written"};
    for (NodeId& x : node.operands) x = converted(x, decision.dtype, node.origin.phase);
    return emit(std::move(node), decision.dtype, decision.reason, pull_of(decision.dtype));
  }

  // Rows of a parameter become activations. A table in parts is narrowed first, to the same rows: what is put together of it, or of the
  // rows that each device has, is in fewer bits, and the head of a tied one reads the same copy.
  NodeId gathered(Node node, Policy policy) {
    NodeId& table = node.operands[0];
    const DType low = activation_dtype(policy);
    const bool activation = out_[table].op == Op::param && node.type.dtype == DType::real && low != DType::f32;
    const Phase phase = node.origin.phase;
    if (activation && may_be_in_parts(in_.mesh, out_[table].as<ParamAttr>().path)) table = converted(table, low, phase);
    const DType dtype = type(table).dtype;
    const Pull pulled = pull(table);
    const NodeId rows = emit(std::move(node), dtype, "its table's", pulled);
    return activation ? converted(rows, low, phase) : rows;
  }

  NodeId scattered(uint32_t i, Node node) {
    const DType dtype = gradient_[i] != DType::real ? gradient_[i] : node.type.dtype == DType::real ? DType::f32 : node.type.dtype;
    node.operands[0] = converted(node.operands[0], dtype, node.origin.phase);
    return emit(std::move(node), dtype, "added up in f32", pull_of(dtype));
  }

  // `id` in `dtype`: itself, an earlier cast of it, or a new one. A cast goes below views that only rearrange, so that each
  // buffer is cast once.
  NodeId converted(NodeId id, DType dtype, Phase phase) {
    if (type(id).dtype == dtype) return id;
    const auto found = casts_.find({id.index, dtype});
    if (found != casts_.end()) {
      needed_by(found->second, id, phase);
      return found->second;
    }
    Node node = out_[id];
    const bool rearranges = kind_of(node.op) == OpKind::view && node.op != Op::slice && node.op != Op::diagonal;
    if (rearranges) {
      node.operands[0] = converted(node.operands[0], dtype, phase);
    } else {
      const Type from = node.type;
      node.op = Op::cast;
      node.operands.assign(1, id);
      node.attr = {};
      node.origin.pinned = false;
    }
    node.origin.phase = phase;
    const NodeId cast = emit(std::move(node), dtype, "cast for its readers", pull_of(dtype));
    casts_.emplace(std::pair(id.index, dtype), cast);
    return cast;
  }

  // A shared cast belongs to the earliest phase that reads it.
  void needed_by(NodeId cast, NodeId original, Phase phase) {
    while (cast != original && out_[cast].origin.phase > phase) {
      out_[cast].origin.phase = phase;
      cast = out_[cast].operands[0];
      if (out_[cast].op != Op::cast && kind_of(out_[cast].op) != OpKind::view) break;
    }
  }

  void move_roots() {
    for_each_root(out_, [&](NodeId& id) { id = to_[id.index]; });
    for (Update& update : out_.updates) update.value = converted(update.value, type(update.target).dtype, out_[update.value].origin.phase);
  }

  const Graph& in_;
  Fp8Scaling scaling_;
  ParamStorage storage_;
  Policy policy_;
  std::vector<Update> amax_updates_;
  std::vector<bool> constant_, loss_, weight_;
  std::vector<DType> gradient_;
  std::vector<NodeId> to_;
  Graph out_;
  std::vector<Pull> pulls_;
  std::map<std::pair<uint32_t, DType>, NodeId> casts_;
  std::map<std::pair<uint32_t, DType>, Scaled> scaled_;
};

}  // namespace

Policy effective_policy(const Graph& graph, Policy policy) {
  if (policy != Policy::inherit) return policy;
  return graph.policy != Policy::inherit ? graph.policy : Policy::f32;
}

Graph assign_precision(const Graph& graph, Policy policy, Fp8Scaling scaling, ParamStorage storage) {
  return Assigner(graph, policy, scaling, storage).run();
}

}  // namespace einc
