// SPDX-License-Identifier: Apache-2.0
// The static computation graph: nodes in topological order (operands precede users), each with a type, attributes, and
// where it comes from. Plain data; passes are functions Graph -> Graph. Node ids are indices and valid for one graph only.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "compiler/ir/axis_list.h"
#include "compiler/ir/mesh.h"
#include "compiler/ir/op.h"
#include "compiler/ir/type.h"
#include "compiler/symbolic/dim_table.h"
#include "runtime/base/init.h"
#include "runtime/base/small_vector.h"

namespace einc {

struct NodeId {
  uint32_t index = UINT32_MAX;
  bool valid() const { return index != UINT32_MAX; }
  friend auto operator<=>(NodeId, NodeId) = default;
};

// An exact value in the dims (integers, 1/heads, ...) or a double (1e-5, inf, nan).
using ScalarValue = std::variant<Poly, double>;

// plain: each argument is its value. root: each argument a stands for sign(a) * sqrt(|a|), so that 0.02/sqrt(2*layers) and
// 1/sqrt(fan_in) stay exact formulas in the dims.
enum class InitForm : uint8_t { plain, root };

// How a param or state starts; arguments in the order of runtime/base/init.h, numbers by init_arguments (init_arguments.h).
struct Init {
  InitKind kind = InitKind::zeros;
  InitForm form = InitForm::plain;
  std::vector<ScalarValue> args;  // may use dims
  friend bool operator==(const Init&, const Init&) = default;
};

// moment, scalar: optimizer state per parameter, and step or scale values. sum: over microbatches, of a stage's program
// (partition/stage_meetings.h); nobody outside has it, and each run adds to it, whatever its mode.
enum class StateRole : uint8_t { user, moment, scalar, sum };

// Attributes by op. Positions are axis positions; "map" lists give, for each operand axis, its position in the output.
struct InputAttr {
  Name name;
  friend bool operator==(const InputAttr&, const InputAttr&) = default;
};
struct ParamAttr {
  Name path;
  Init init;
  bool frozen = false;
  friend bool operator==(const ParamAttr&, const ParamAttr&) = default;
};
struct StateAttr {
  Name path;
  Init init;
  StateRole role = StateRole::user;
  friend bool operator==(const StateAttr&, const StateAttr&) = default;
};
struct ConstantAttr {
  ScalarValue value;
  friend bool operator==(const ConstantAttr&, const ConstantAttr&) = default;
};  // always rank 0
// Counter-based random bits; `stream` names the call (instance path), p is the keep probability of keep_mask (u8 of 0 and 1); `bits`
// are i32.
struct RandomAttr {
  RandomKind kind;
  Name stream;
  double keep = 1;
  friend bool operator==(const RandomAttr&, const RandomAttr&) = default;
};
// out[o] = fn(operand_k[o restricted by maps[k]]...). Every output axis is an axis of some operand.
struct MapAttr {
  MapFn fn;
  std::array<AxisList, 3> maps;
  friend bool operator==(const MapAttr&, const MapAttr&) = default;
};
// Also attr of softmax (one axis normalised) and logsumexp. Reduced axes vanish, the others keep their order.
struct ReduceAttr {
  ReduceFn fn;
  AxisList axes;
  friend bool operator==(const ReduceAttr&, const ReduceAttr&) = default;
};
struct CumulateAttr {
  ReduceFn fn;
  int axis;
  Direction direction;
  friend bool operator==(const CumulateAttr&, const CumulateAttr&) = default;
};  // inclusive running sum, product, extreme or logarithm of a sum of exponentials
struct ArgReduceAttr {
  ReduceFn fn;
  int axis;
  friend bool operator==(const ArgReduceAttr&, const ArgReduceAttr&) = default;
};  // first extreme wins; fn is max or min
struct TopKAttr {
  int axis;
  ReduceFn fn = ReduceFn::max;
  friend bool operator==(const TopKAttr&, const TopKAttr&) = default;
};  // indices of the k largest (max) or smallest (min) in order, ties by lower index, NaN the greatest; k is the output's size
// Binary contraction. Labels: 0..rank-1 are the output's axes in order, larger ones are summed. Each label occurs at most
// once per operand; a summed label occurs in both; some label is summed (otherwise it is a map); out labels in one or both.
struct ContractAttr {
  AxisList left, right;
  friend bool operator==(const ContractAttr&, const ContractAttr&) = default;
};
struct PermuteAttr {
  AxisList order;
  friend bool operator==(const PermuteAttr&, const PermuteAttr&) = default;
};  // out axis i is in axis order[i]
struct BroadcastAttr {
  AxisList map;
  friend bool operator==(const BroadcastAttr&, const BroadcastAttr&) = default;
};  // in axis i is out axis map[i] (increasing); others are new
struct SplitAttr {
  AxisList counts;
  friend bool operator==(const SplitAttr&, const SplitAttr&) = default;
};  // per in axis: number of out axes (0 drops a unit axis)
struct MergeAttr {
  AxisList counts;
  friend bool operator==(const MergeAttr&, const MergeAttr&) = default;
};  // per out axis: number of in axes (0 adds a unit axis)
struct SliceAttr {
  int axis;
  Poly start;
  int64_t step = 1;
  friend bool operator==(const SliceAttr&, const SliceAttr&) = default;
};  // size is the output's
struct DiagonalAttr {
  AxisList map;
  friend bool operator==(const DiagonalAttr&, const DiagonalAttr&) = default;
};  // in axis i is out axis map[i]; repeats take the diagonal
// window: in axis `axis` becomes strides.size() axes in its place, element (i0, i1, ...) is element offset + sum strides[k]*ik.
// fold is its adjoint: those axes are added back into one of the output's size.
struct WindowAttr {
  int axis;
  std::vector<Poly> strides;
  friend bool operator==(const WindowAttr&, const WindowAttr&) = default;
};
struct PadAttr {
  std::vector<Poly> before, after;
  ScalarValue value;
  friend bool operator==(const PadAttr&, const PadAttr&) = default;
};  // one entry per axis
struct ConcatAttr {
  int axis;
  friend bool operator==(const ConcatAttr&, const ConcatAttr&) = default;
};
// gather(table, ids): out[o] = table[.., ids[o by ids_map], ..]: `axis` of the table is indexed; table_map gives each other
// table axis' position in the output (the entry of `axis` is kNoAxis). scatter_add(updates, ids) -> table-shaped zeros plus the
// updates (same maps, updates in the place of out); scatter_max and scatter_min keep the extreme of what falls on a place, and give the
// identity (-inf, inf, an integer's end) where nothing does. scatter_set(base, updates, ids) -> base with those elements replaced.
inline constexpr int kNoAxis = 255;
struct GatherAttr {
  int axis;
  AxisList table_map, ids_map;
  friend bool operator==(const GatherAttr&, const GatherAttr&) = default;
};
// A recurrence of `length` iterations, each run of `body`, a program of its own. Operands in this order: values that every iteration
// reads whole, `slices` values of which iteration t reads element t of the first axis, and `carries` initial values. In the body
// operand k of the first two kinds is input "k". Its states are what iterations hand on: state "c" of carry c, then one for each value that
// is collected, which nothing reads; update c gives state c its next value. Result c < carries is the last value of a carry, another the
// collected values along a new first axis, place t that of iteration t. In reverse, iterations run from the last place to the first.
struct Graph;
struct ScanAttr {
  std::shared_ptr<const Graph> body;
  Poly length;
  int slices = 0, carries = 0;
  Direction direction = Direction::forward;
  // `save every`: what is collected for scans in the other direction alone may be made again from the carries of every so many
  // iterations (fuse/cut_scans). 0: all is kept.
  int64_t save_every = 0;
  // A piece: it counts on from iteration to iteration of the scan around it, in all up to this number (runtime/base/iterations.h). That
  // scan reads and collects blocks of the piece's length where a slice has as many axes as the value, and the last block is the rest.
  int64_t all_pieces = 0;
  friend bool operator==(const ScanAttr&, const ScanAttr&) = default;
};
struct ScanResultAttr {
  int index;
  friend bool operator==(const ScanResultAttr&, const ScanResultAttr&) = default;
};
// Of a program for one device of the mesh, what all devices along mesh axis `mesh` do together with their operands. all_reduce: the
// reduction of all of them, on each device. reduce_scatter: this device's part of that, along axis `divided`. all_gather: the operands one
// behind the other along axis `gathered`. all_to_all: so, but of this device's part along axis `divided` of each. fn counts for the first
// two; an axis that the op has no use for is 0.
struct CollectiveAttr {
  int mesh = 0;
  ReduceFn fn = ReduceFn::sum;
  int gathered = 0, divided = 0;
  friend bool operator==(const CollectiveAttr&, const CollectiveAttr&) = default;
};
// What stands `by` places further along `axis`, in a ring: out[.., i, ..] = x[.., (i + by) mod n, ..]. Of a program for one device, where
// `mesh` is an axis of the mesh: the operand of the device so many places further along it; `axis` is 0 then.
struct ShiftAttr {
  int axis = 0;
  int64_t by = 1;
  int mesh = -1;
  friend bool operator==(const ShiftAttr&, const ShiftAttr&) = default;
};
struct DropoutAttr {
  double p;
  Name stream;
  friend bool operator==(const DropoutAttr&, const DropoutAttr&) = default;
};

using Attr = std::variant<std::monostate, InputAttr, ParamAttr, StateAttr, ConstantAttr, RandomAttr, MapAttr, ReduceAttr, CumulateAttr,
                          ArgReduceAttr, TopKAttr, ContractAttr, PermuteAttr, BroadcastAttr, SplitAttr, MergeAttr, SliceAttr, DiagonalAttr,
                          WindowAttr, PadAttr, ConcatAttr, GatherAttr, DropoutAttr, ScanAttr, ScanResultAttr, CollectiveAttr, ShiftAttr>;

// tf32: f32 in memory, in whose products a GPU keeps 10 bits behind the point of each factor; elsewhere the same as f32.
enum class Policy : uint8_t { inherit, f32, tf32, bf16, f16, fp8 };

struct SourceLocation {
  Name file;
  uint32_t line = 0, column = 0, end_column = 0;  // 1-based; 0: unknown
  friend bool operator==(const SourceLocation&, const SourceLocation&) = default;
};

// Where a node comes from and how it counts.
struct Origin {
  SourceLocation location;
  Name module;                // instance path, "h.0.attn"; empty at top level
  Name label;                 // the source's name for the value ("scores"); in the backward "d scores"
  uint32_t loop_context = 0;  // index into Graph::loop_contexts; 0: outside every loop
  Phase phase = Phase::forward;
  Policy policy = Policy::inherit;  // from `precision X { ... }`
  bool pinned = false;              // dtype fixed by an annotation or a cast in the source
  friend bool operator==(const Origin&, const Origin&) = default;
};

struct Node {
  Op op = Op::constant;
  Type type;
  SmallVector<NodeId, 3> operands;
  Attr attr;
  Origin origin;
  Name reason;  // why precision assignment chose this dtype (set by that pass)

  template <class T>
  const T& as() const {
    return std::get<T>(attr);
  }
};
static_assert(std::is_nothrow_move_constructible_v<Node>, "a graph that grows would copy its nodes");

inline bool is_map(const Node& node, MapFn fn) { return node.op == Op::map && node.as<MapAttr>().fn == fn; }
inline bool is_reduce(const Node& node, ReduceFn fn) { return node.op == Op::reduce && node.as<ReduceAttr>().fn == fn; }

// A state whose updates do not wait for training.
inline bool is_updated_always(const Node& target) {
  const auto* state = std::get_if<StateAttr>(&target.attr);
  return state != nullptr && (state->role == StateRole::user || state->role == StateRole::sum);
}
inline bool holds_sum(const Node& target) {
  const auto* state = std::get_if<StateAttr>(&target.attr);
  return state != nullptr && state->role == StateRole::sum;
}

// An unrolled loop: `for i in n`. Iterations of one loop share `loop`; contexts nest through `parent`.
struct Loop {
  Poly trip_count;
  int64_t count = 0;
};
struct LoopContext {
  uint32_t parent = 0;
  uint32_t loop = 0;
  int64_t iteration = 0;
};

struct Output {
  Name name;
  NodeId node;
};
// A state or param takes this value at the end of the run.
struct Update {
  NodeId target;
  NodeId value;
};
// How an einsum of three or more operands was contracted, for the report.
struct ContractionPlan {
  SourceLocation location;
  std::string pattern;
  std::string order;
  Poly flops;
  std::string method;
};

// What a graph is beside its nodes.
struct GraphFrame {
  Name name;  // the file
  DimTable dims;
  std::vector<Output> outputs;
  std::vector<Update> updates;
  NodeId loss;  // invalid without `minimize`
  // Gradient of the minimized loss with respect to each trained param, before clipping.
  std::vector<Update> gradients;
  std::vector<Loop> loops;
  std::vector<LoopContext> loop_contexts{LoopContext{}};
  // Dims whose values chose a branch of an `if`, apart from those that loops around it count. Other values need another graph.
  std::vector<Name> chosen_by;
  std::vector<ContractionPlan> plans;
  Policy policy = Policy::inherit;  // the file's `precision` or --precision
  Mesh mesh;
};

struct Graph : GraphFrame {
  std::vector<Node> nodes;

  const Node& operator[](NodeId id) const { return nodes[id.index]; }
  Node& operator[](NodeId id) { return nodes[id.index]; }
  const Type& type(NodeId id) const { return nodes[id.index].type; }
  uint32_t size() const { return static_cast<uint32_t>(nodes.size()); }
};

// The same but for its nodes, with room for about as many: for a pass that builds them anew.
Graph without_nodes(const Graph& graph);

// For every node: true when it depends on no input, param, state or random number.
std::vector<bool> constant_nodes(const Graph& graph);

bool has_state(const Graph& graph, std::string_view path);
// Whether a contraction of f32 may be multiplied in tf32. An optimizer's is not.
bool is_in_tf32(const Graph& graph, NodeId contraction);

}  // namespace einc
