// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/node_check.h"

#include "compiler/ir/scan_check.h"

namespace einc {
namespace {

bool is_index_dtype(DType d) { return is_integer(d); }

class NodeCheck {
 public:
  NodeCheck(const Graph& graph, NodeId id) : graph_(graph), id_(id), node_(graph[id]), out_(graph[id].type) {}

  std::string run() {
    if (out_.rank() > kMaxRank) return fmt::format("rank {} is above {}", out_.rank(), kMaxRank);
    for (int i = 0; i < out_.rank(); ++i)
      if (const auto n = out_.axis(i).size.as_integer(); n && *n < 1) return fmt::format("axis {} has size {}", i, *n);
    for (const NodeId operand : node_.operands)
      if (operand.index >= id_.index) return fmt::format("operand %{} does not come before it", operand.index);
    const int wanted = operand_count();
    const int given = static_cast<int>(node_.operands.size());
    if (wanted >= 0 && given != wanted) return fmt::format("{} operands instead of {}", given, wanted);
    if (wanted < 0 && given == 0) return "no operands";
    check();
    return problem_;
  }

 private:
  // -1: one or more.
  int operand_count() const {
    switch (node_.op) {
      case Op::input:
      case Op::param:
      case Op::state:
      case Op::constant:
      case Op::iota:
      case Op::random:
      case Op::training:
        return 0;
      case Op::map:
        return std::holds_alternative<MapAttr>(node_.attr) ? arity_of(node_.as<MapAttr>().fn) : -1;
      case Op::concat:
        return -1;
      case Op::contract:
      case Op::gather:
      case Op::scatter_add:
      case Op::scatter_max:
      case Op::scatter_min:
        return 2;
      case Op::scatter_set:
        return 3;
      case Op::reduce:
      case Op::cumulate:
      case Op::arg_reduce:
      case Op::top_k_index:
      case Op::permute:
      case Op::broadcast:
      case Op::split:
      case Op::merge:
      case Op::slice:
      case Op::diagonal:
      case Op::window:
      case Op::fold:
      case Op::pad:
      case Op::cast:
      case Op::stop_gradient:
      case Op::softmax:
      case Op::logsumexp:
      case Op::dropout:
      case Op::scan_result:
      case Op::all_reduce:
      case Op::reduce_scatter:
      case Op::all_gather:
      case Op::all_to_all:
        return 1;
      case Op::shift: {  // between stages more than what is moved may have to be there
        const auto* a = std::get_if<ShiftAttr>(&node_.attr);
        return a != nullptr && a->mesh >= 0 && a->mesh == graph_.mesh.stages.over ? -1 : 1;
      }
      case Op::scan: {
        const auto* a = std::get_if<ScanAttr>(&node_.attr);
        return a != nullptr && node_.operands.empty() && a->slices + a->carries == 0 ? 0 : -1;
      }
    }
    return 0;
  }

  void check() {
    switch (node_.op) {
      case Op::input:
        attr<InputAttr>();
        return;
      case Op::param:
        attr<ParamAttr>();
        return;
      case Op::state:
        attr<StateAttr>();
        return;
      case Op::constant:
        if (attr<ConstantAttr>() && out_.rank() != 0) fail("a constant has no axes");
        return;
      case Op::iota:
        attr<std::monostate>();
        if (out_.rank() != 1 || out_.dtype == DType::boolean) fail("iota is one axis of numbers");
        return;
      case Op::random:
        return random();
      case Op::map:
        return map();
      case Op::reduce:
        return reduce();
      case Op::logsumexp:
        return reduce();
      case Op::softmax:
        return softmax();
      case Op::cumulate:
        if (const auto* a = attr<CumulateAttr>()) {
          same_axis_kept(a->axis);
          if (a->fn == ReduceFn::logsumexp && !is_floating(out_.dtype)) fail("a logarithm gives floating numbers");
        }
        return;
      case Op::arg_reduce:
        return arg_reduce();
      case Op::top_k_index:
        return top_k();
      case Op::contract:
        return contract();
      case Op::permute:
        return permute();
      case Op::broadcast:
        return broadcast();
      case Op::split:
        return split();
      case Op::merge:
        return merge();
      case Op::slice:
        return slice();
      case Op::diagonal:
        return diagonal();
      case Op::window:
        if (const auto* a = attr<WindowAttr>()) windows(*a, in(0), out_);
        return same_dtype();
      case Op::fold:
        if (const auto* a = attr<WindowAttr>()) windows(*a, out_, in(0));
        return same_dtype();
      case Op::pad:
        return pad();
      case Op::concat:
        return concat();
      case Op::gather:
        if (const auto* a = attr<GatherAttr>()) indexed(*a, in(0), in(1), out_);
        return same_dtype();
      case Op::scatter_add:
      case Op::scatter_max:
      case Op::scatter_min:
        if (const auto* a = attr<GatherAttr>()) indexed(*a, out_, in(1), in(0));
        return same_dtype();
      case Op::scatter_set:
        if (const auto* a = attr<GatherAttr>()) indexed(*a, in(0), in(2), in(1));
        if (!in(0).same_sizes(out_)) fail("the result is not of the base's sizes");
        return same_dtype();
      case Op::cast:
        attr<std::monostate>();
        return same_sizes();
      case Op::stop_gradient:
        attr<std::monostate>();
        same_sizes();
        return same_dtype();
      case Op::scan:
        return scan();
      case Op::scan_result:
        return scan_result();
      case Op::all_reduce:
      case Op::reduce_scatter:
      case Op::all_gather:
      case Op::all_to_all:
        return collective();
      case Op::shift:
        return shift();
      case Op::dropout:
        if (const auto* a = attr<DropoutAttr>(); a != nullptr && !(a->p >= 0 && a->p < 1)) fail("p is not in [0, 1)");
        same_sizes();
        return same_dtype();
      case Op::training:
        attr<std::monostate>();
        if (out_.rank() != 0 || out_.dtype != DType::boolean) fail("training is one bool");
        return;
    }
  }

  template <class... T>
  void fail(fmt::format_string<T...> format, T&&... values) {
    if (problem_.empty()) problem_ = fmt::format(format, std::forward<T>(values)...);
  }

  template <class T>
  const T* attr() {
    const T* a = std::get_if<T>(&node_.attr);
    if (a == nullptr) fail("attributes of another op");
    return a;
  }

  const Type& in(size_t k) const { return graph_.type(node_.operands[k]); }

  static bool has_axis(const Type& t, int axis) { return axis >= 0 && axis < t.rank(); }

  void size_is(int axis, const Poly& size) {
    if (!has_axis(out_, axis))
      fail("axis {} is missing", axis);
    else if (!(out_.axis(axis).size == size))
      fail("axis {} has size {} instead of {}", axis, out_.axis(axis).size.str(), size.str());
  }
  void rank_is(int rank) {
    if (out_.rank() != rank) fail("rank {} instead of {}", out_.rank(), rank);
  }
  void same_sizes() {
    if (!out_.same_sizes(in(0))) fail("sizes differ from the operand's");
  }
  void same_dtype() {
    if (out_.dtype != in(0).dtype) fail("dtype {} from {}", to_string(out_.dtype), to_string(in(0).dtype));
  }
  void same_axis_kept(int axis) {
    if (!has_axis(in(0), axis)) fail("no axis {}", axis);
    same_sizes();
    if (is_floating(out_.dtype) != is_floating(in(0).dtype)) fail("changes between integers and floating numbers");
  }

  void random() {
    const auto* a = attr<RandomAttr>();
    if (a == nullptr) return;
    const bool fits = a->kind == RandomKind::keep_mask ? out_.dtype == DType::u8
                      : a->kind == RandomKind::bits    ? out_.dtype == DType::i32
                                                       : is_floating(out_.dtype);
    if (!fits) fail("{} numbers of dtype {}", to_string(a->kind), to_string(out_.dtype));
    if (!(a->keep >= 0 && a->keep <= 1)) fail("keep is no probability");
  }

  void map() {
    const auto* a = attr<MapAttr>();
    if (a == nullptr) return;
    std::vector<bool> covered(static_cast<size_t>(out_.rank()), false);
    for (size_t k = 0; k < node_.operands.size(); ++k) {
      const AxisList& map = a->maps[k];
      if (map.size() != in(k).rank()) return fail("map of operand {} has {} entries for rank {}", k, map.size(), in(k).rank());
      for (int i = 0; i < map.size(); ++i) {
        size_is(map[i], in(k).axis(i).size);
        if (map.find(map[i]) != i) fail("two axes of operand {} meet", k);
        if (map[i] < out_.rank()) covered[static_cast<size_t>(map[i])] = true;
      }
    }
    for (size_t i = 0; i < covered.size(); ++i)
      if (!covered[i]) fail("axis {} is of no operand", i);
    const bool gives_bool = is_comparison(a->fn) || is_logical(a->fn);
    if (gives_bool && out_.dtype != DType::boolean) fail("{} gives bool", to_string(a->fn));
    if (is_logical(a->fn))
      for (size_t k = 0; k < node_.operands.size(); ++k)
        if (in(k).dtype != DType::boolean) fail("operand {} is not bool", k);
    if (divides_integers(a->fn) && is_floating(out_.dtype)) fail("{} gives integers", to_string(a->fn));
    if (a->fn == MapFn::where && in(0).dtype != DType::boolean) fail("the condition is not bool");
    if (is_transcendental(a->fn) && !is_floating(out_.dtype)) fail("{} gives floating numbers", to_string(a->fn));
  }

  void reduce() {
    const auto* a = attr<ReduceAttr>();
    if (a == nullptr) return;
    if (a->fn == ReduceFn::logsumexp) fail("logsumexp of whole axes is an op of its own");
    int kept = 0;
    for (int i = 0; i < in(0).rank(); ++i)
      if (!a->axes.contains(i)) size_is(kept++, in(0).axis(i).size);
    rank_is(kept);
    for (int i = 0; i < a->axes.size(); ++i)
      if (!has_axis(in(0), a->axes[i]) || a->axes.find(a->axes[i]) != i) fail("no axis {}, or twice", a->axes[i]);
    const bool logical = a->fn == ReduceFn::any || a->fn == ReduceFn::all;
    if (logical && (in(0).dtype != DType::boolean || out_.dtype != DType::boolean)) fail("{} is of bool", to_string(a->fn));
    if (!logical && is_floating(out_.dtype) != is_floating(in(0).dtype)) fail("changes between integers and floating numbers");
  }

  void softmax() {
    const auto* a = attr<ReduceAttr>();
    if (a == nullptr) return;
    if (a->axes.size() != 1) return fail("one axis is normalised");
    same_axis_kept(a->axes[0]);
    if (!is_floating(out_.dtype)) fail("not of floating numbers");
  }

  void scan() {
    if (attr<ScanAttr>() == nullptr) return;
    if (const std::string problem = scan_problem(graph_, node_); !problem.empty()) fail("{}", problem);
  }

  void scan_result() {
    const auto* a = attr<ScanResultAttr>();
    if (a == nullptr) return;
    const Node& scan = graph_[node_.operands[0]];
    const auto* of = std::get_if<ScanAttr>(&scan.attr);
    if (scan.op != Op::scan || of == nullptr || of->body == nullptr) return fail("of no scan");
    if (a->index < 0 || static_cast<size_t>(a->index) >= of->body->updates.size()) return fail("no result {}", a->index);
    const Type& state = of->body->type(of->body->updates[static_cast<size_t>(a->index)].target);
    const int front = a->index >= of->carries ? 1 : 0;
    if (out_.dtype != state.dtype) fail("dtype {} of {}", to_string(out_.dtype), to_string(state.dtype));
    const bool blocks = front == 1 && out_.rank() == state.rank() && out_.rank() > 0 && runs_pieces(*of->body);
    if (!blocks) rank_is(state.rank() + front);
    if (front == 1 && !blocks) size_is(0, of->length);
    for (int i = blocks ? 1 : 0; i < state.rank(); ++i) size_is(i + (blocks ? 0 : front), state.axis(i).size);
  }

  void shift() {
    const auto* a = attr<ShiftAttr>();
    if (a == nullptr) return;
    if (a->mesh >= 0 && static_cast<size_t>(a->mesh) >= graph_.mesh.axes.size()) return fail("the mesh has no axis {}", a->mesh);
    if (a->mesh < 0 && !has_axis(in(0), a->axis)) return fail("no axis {}", a->axis);
    if (a->by < 0) fail("it goes {} places", a->by);
    same_sizes();
    if (a->mesh < 0 || a->mesh != graph_.mesh.stages.over) same_dtype();  // a gradient comes back for an activation
  }

  // A device's part of what the devices along a mesh axis make together.
  void collective() {
    const auto* a = attr<CollectiveAttr>();
    if (a == nullptr) return;
    if (a->mesh < 0 || static_cast<size_t>(a->mesh) >= graph_.mesh.axes.size()) return fail("the mesh has no axis {}", a->mesh);
    const bool gathers = node_.op == Op::all_gather || node_.op == Op::all_to_all;
    const bool divides = node_.op == Op::reduce_scatter || node_.op == Op::all_to_all;
    if ((gathers && !has_axis(in(0), a->gathered)) || (divides && !has_axis(in(0), a->divided))) return fail("an axis is missing");
    if (gathers && divides && a->gathered == a->divided) fail("axis {} is put together and divided", a->divided);
    if (out_.dtype != in(0).dtype) fail("dtype {} of {}", to_string(out_.dtype), to_string(in(0).dtype));
    rank_is(in(0).rank());
    const Poly& devices = graph_.mesh.axes[static_cast<size_t>(a->mesh)].size;
    for (int i = 0; i < in(0).rank() && i < out_.rank(); ++i) {
      const Poly& size = in(0).axis(i).size;
      size_is(i, gathers && i == a->gathered ? size * devices : divides && i == a->divided ? divide(size, devices) : size);
    }
  }

  void arg_reduce() {
    const auto* a = attr<ArgReduceAttr>();
    if (a == nullptr) return;
    if (a->fn != ReduceFn::max && a->fn != ReduceFn::min) fail("neither max nor min");
    if (!has_axis(in(0), a->axis)) return fail("no axis {}", a->axis);
    rank_is(in(0).rank() - 1);
    for (int i = 0; i < in(0).rank(); ++i)
      if (i != a->axis) size_is(i < a->axis ? i : i - 1, in(0).axis(i).size);
    index_result();
  }

  void top_k() {
    const auto* a = attr<TopKAttr>();
    if (a == nullptr) return;
    if (!has_axis(in(0), a->axis)) return fail("no axis {}", a->axis);
    others_kept(a->axis);
    index_result();
    const auto k = out_.rank() == in(0).rank() ? (in(0).axis(a->axis).size - out_.axis(a->axis).size).as_integer() : std::nullopt;
    if (k && *k < 0) fail("k is above the axis' size");
  }

  void index_result() {
    if (out_.dtype != DType::i32 && out_.dtype != DType::i64) fail("positions are i32 or i64, not {}", to_string(out_.dtype));
  }

  void others_kept(int axis) {
    rank_is(in(0).rank());
    for (int i = 0; i < in(0).rank(); ++i)
      if (i != axis) size_is(i, in(0).axis(i).size);
  }

  void contract() {
    const auto* a = attr<ContractAttr>();
    if (a == nullptr) return;
    if (a->left.size() != in(0).rank() || a->right.size() != in(1).rank()) return fail("label counts differ from ranks");
    std::array<std::array<int, 2>, 256> uses;  // per label: axis in each operand, -1 where it has none
    uses.fill({-1, -1});
    int highest = out_.rank() - 1;
    for (size_t k = 0; k < 2; ++k) {
      const AxisList& labels = k == 0 ? a->left : a->right;
      for (int i = 0; i < labels.size(); ++i) {
        int& use = uses[static_cast<size_t>(labels[i])][k];
        if (use >= 0) fail("label {} is twice in operand {}", labels[i], k);
        use = i;
        highest = std::max(highest, labels[i]);
      }
    }
    for (int label = 0; label <= highest; ++label) {
      const auto [left, right] = uses[static_cast<size_t>(label)];
      if (left >= 0 && right >= 0 && !(in(0).axis(left).size == in(1).axis(right).size)) fail("label {} has two sizes", label);
      if (label >= out_.rank()) {
        if ((left < 0) != (right < 0)) fail("label {} is summed but in one operand only", label);
      } else if (left < 0 && right < 0) {
        fail("label {} is in no operand", label);
      } else {
        size_is(label, left >= 0 ? in(0).axis(left).size : in(1).axis(right).size);
      }
    }
    if (highest < out_.rank()) fail("nothing is summed");
    if (out_.dtype == DType::boolean) fail("of bool");
  }

  void permute() {
    const auto* a = attr<PermuteAttr>();
    if (a == nullptr) return;
    if (a->order.size() != in(0).rank()) return fail("{} entries for rank {}", a->order.size(), in(0).rank());
    rank_is(in(0).rank());
    for (int i = 0; i < a->order.size(); ++i)
      if (!has_axis(in(0), a->order[i]) || a->order.find(a->order[i]) != i) return fail("not a permutation");
    for (int i = 0; i < a->order.size(); ++i) size_is(i, in(0).axis(a->order[i]).size);
    same_dtype();
  }

  void broadcast() {
    const auto* a = attr<BroadcastAttr>();
    if (a == nullptr) return;
    if (a->map.size() != in(0).rank()) return fail("{} entries for rank {}", a->map.size(), in(0).rank());
    for (int i = 0; i < a->map.size(); ++i) {
      if (i > 0 && a->map[i] <= a->map[i - 1]) fail("the map does not increase");
      size_is(a->map[i], in(0).axis(i).size);
    }
    same_dtype();
  }

  // Each axis of `coarse` is the product of counts[i] axes of `fine`, in order.
  void groups(const AxisList& counts, const Type& coarse, const Type& fine) {
    if (counts.size() != coarse.rank()) return fail("{} counts for {} axes", counts.size(), coarse.rank());
    int next = 0;
    for (int i = 0; i < counts.size(); ++i) {
      Poly product(1);
      for (int k = 0; k < counts[i]; ++k, ++next) {
        if (!has_axis(fine, next)) return fail("more axes are counted than there are");
        product *= fine.axis(next).size;
      }
      if (!(product == coarse.axis(i).size)) fail("axes of product {} make one of {}", product.str(), coarse.axis(i).size.str());
    }
    if (next != fine.rank()) fail("{} of {} axes are used", next, fine.rank());
    same_dtype();
  }
  void split() {
    if (const auto* a = attr<SplitAttr>()) groups(a->counts, in(0), out_);
  }
  void merge() {
    if (const auto* a = attr<MergeAttr>()) groups(a->counts, out_, in(0));
  }

  void slice() {
    const auto* a = attr<SliceAttr>();
    if (a == nullptr) return;
    if (!has_axis(in(0), a->axis)) return fail("no axis {}", a->axis);
    if (a->step == 0) fail("step 0");
    others_kept(a->axis);
    same_dtype();
    if (out_.rank() != in(0).rank()) return;
    const Poly last = a->start + (out_.axis(a->axis).size - Poly(1)) * Poly(a->step);
    for (const Poly& place : {a->start, last}) {
      const auto from_begin = place.as_integer(), to_end = (in(0).axis(a->axis).size - place).as_integer();
      if ((from_begin && *from_begin < 0) || (to_end && *to_end < 1)) fail("element {} is outside the axis", place.str());
    }
  }

  void diagonal() {
    const auto* a = attr<DiagonalAttr>();
    if (a == nullptr) return;
    if (a->map.size() != in(0).rank()) return fail("{} entries for rank {}", a->map.size(), in(0).rank());
    for (int i = 0; i < a->map.size(); ++i) size_is(a->map[i], in(0).axis(i).size);
    for (int i = 0; i < out_.rank(); ++i)
      if (!a->map.contains(i)) fail("axis {} comes from nowhere", i);
    same_dtype();
  }

  // `flat` has one axis where `places` has strides.size() of them.
  void windows(const WindowAttr& a, const Type& flat, const Type& places) {
    const int count = static_cast<int>(a.strides.size());
    if (!has_axis(flat, a.axis)) return fail("no axis {}", a.axis);
    if (places.rank() != flat.rank() - 1 + count) return fail("{} strides between ranks {} and {}", count, flat.rank(), places.rank());
    Poly last(0);
    for (int k = 0; k < count; ++k) last += a.strides[static_cast<size_t>(k)] * (places.axis(a.axis + k).size - Poly(1));
    if (const auto room = (flat.axis(a.axis).size - last).as_integer(); room && *room < 1) fail("the window reaches beyond its axis");
    for (int i = 0; i < flat.rank(); ++i) {
      if (i == a.axis) continue;
      const int j = i < a.axis ? i : i - 1 + count;
      if (!(flat.axis(i).size == places.axis(j).size)) fail("axis {} changes its size", i);
    }
  }

  void pad() {
    const auto* a = attr<PadAttr>();
    if (a == nullptr) return;
    const size_t rank = in(0).axes.size();
    if (a->before.size() != rank || a->after.size() != rank) return fail("amounts for another rank");
    rank_is(in(0).rank());
    for (size_t i = 0; i < rank; ++i) {
      size_is(static_cast<int>(i), in(0).axes[i].size + a->before[i] + a->after[i]);
      for (const Poly& amount : {a->before[i], a->after[i]})
        if (const auto n = amount.as_integer(); n && *n < 0) fail("negative amount");
    }
    same_dtype();
  }

  void concat() {
    const auto* a = attr<ConcatAttr>();
    if (a == nullptr) return;
    if (!has_axis(out_, a->axis)) return fail("no axis {}", a->axis);
    Poly total(0);
    for (size_t k = 0; k < node_.operands.size(); ++k) {
      if (in(k).rank() != out_.rank()) return fail("operand {} has another rank", k);
      for (int i = 0; i < out_.rank(); ++i)
        if (i != a->axis) size_is(i, in(k).axis(i).size);
      total += in(k).axis(a->axis).size;
    }
    size_is(a->axis, total);
  }

  // values[..] = table[.., ids[..], ..]; see GatherAttr.
  void indexed(const GatherAttr& a, const Type& table, const Type& ids, const Type& values) {
    if (!has_axis(table, a.axis)) return fail("no axis {}", a.axis);
    if (a.table_map.size() != table.rank() || a.ids_map.size() != ids.rank()) return fail("maps for other ranks");
    if (!is_index_dtype(ids.dtype)) fail("positions of dtype {}", to_string(ids.dtype));
    if (a.table_map[a.axis] != kNoAxis) fail("the indexed axis has a place in the result");
    const auto fits = [&](const AxisList& map, const Type& t, int i) {
      if (!has_axis(values, map[i]) || !(values.axis(map[i]).size == t.axis(i).size)) fail("axis {} of an operand has no place", i);
      if (map.find(map[i]) != i) fail("two axes of an operand meet");
    };
    for (int i = 0; i < table.rank(); ++i)
      if (i != a.axis) fits(a.table_map, table, i);
    for (int i = 0; i < ids.rank(); ++i) fits(a.ids_map, ids, i);
    for (int i = 0; i < values.rank(); ++i)
      if (!a.table_map.contains(i) && !a.ids_map.contains(i)) fail("axis {} comes from nowhere", i);
  }

  const Graph& graph_;
  NodeId id_;
  const Node& node_;
  const Type& out_;
  std::string problem_;
};

}  // namespace

std::string check_node(const Graph& graph, NodeId id) { return NodeCheck(graph, id).run(); }

}  // namespace einc
