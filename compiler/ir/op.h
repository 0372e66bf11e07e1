// SPDX-License-Identifier: Apache-2.0
// The operation tables: what a node can be. `Op` is the small primitive set of the whole compiler; the functions that an
// elementwise `map` may apply are a table of their own (`MapFn`). Every pass switches over these enums without a
// `default`, so that adding a row makes the compiler list each place that must answer.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace einc {

// name | what it computes. Composite ops (softmax, logsumexp, dropout, training) keep their own gradient and are expanded into
// the primitives above them by simplify/expand after differentiation; cost, kernels and backends never see them.
// clang-format off
#define EINC_OPS(X) \
  X(input) X(param) X(state) X(constant) X(iota) X(random) \
  X(map) X(reduce) X(cumulate) X(arg_reduce) X(top_k_index) X(contract) \
  X(permute) X(broadcast) X(split) X(merge) X(slice) X(diagonal) X(window) X(fold) X(pad) X(concat) \
  X(gather) X(scatter_add) X(scatter_max) X(scatter_min) X(scatter_set) \
  X(cast) X(stop_gradient) X(scan) X(scan_result) \
  X(all_reduce) X(reduce_scatter) X(all_gather) X(all_to_all) X(shift) \
  X(softmax) X(logsumexp) X(dropout) X(training)
// clang-format on

enum class Op : uint8_t {
#define X(name) name,
  EINC_OPS(X)
#undef X
};

enum class OpKind : uint8_t { source, compute, view, composite };

// name | arity | 1 when transcendental (counted in a column of its own as well) | how the language spells it | where that stands
// clang-format off
#define EINC_MAP_FNS(X)                                                                                                                   \
  X(add, 2, 0, "+", infix) X(sub, 2, 0, "-", infix) X(mul, 2, 0, "*", infix) X(div, 2, 0, "/", infix) X(pow, 2, 1, "^", infix)            \
  X(minimum, 2, 0, "min", call) X(maximum, 2, 0, "max", call)                                                                             \
  X(equal, 2, 0, "==", infix) X(not_equal, 2, 0, "!=", infix) X(less, 2, 0, "<", infix) X(less_equal, 2, 0, "<=", infix)                  \
  X(greater, 2, 0, ">", infix) X(greater_equal, 2, 0, ">=", infix)                                                                        \
  X(logical_and, 2, 0, "and", infix) X(logical_or, 2, 0, "or", infix) X(logical_not, 1, 0, "not", prefix)                                 \
  X(where, 3, 0, "where", call)                                                                                                           \
  X(neg, 1, 0, "-", prefix) X(abs, 1, 0, "abs", call) X(sign, 1, 0, "sign", call) X(relu, 1, 0, "relu", call)                             \
  X(exp, 1, 1, "exp", call) X(expm1, 1, 1, "expm1", call) X(log, 1, 1, "log", call) X(log1p, 1, 1, "log1p", call)                         \
  X(sqrt, 1, 0, "sqrt", call) X(rsqrt, 1, 0, "rsqrt", call) X(sin, 1, 1, "sin", call) X(cos, 1, 1, "cos", call)                           \
  X(tanh, 1, 1, "tanh", call) X(sigmoid, 1, 1, "sigmoid", call) X(erf, 1, 1, "erf", call) X(gelu, 1, 1, "gelu", call)                     \
  X(gelu_tanh, 1, 1, "gelu_tanh", call) X(silu, 1, 1, "silu", call) X(softplus, 1, 1, "softplus", call)                                   \
  X(floor_div, 2, 0, "//", infix) X(remainder, 2, 0, "%", infix) X(clamp, 3, 0, "clamp", call)                                            \
  X(floor, 1, 0, "floor", call) X(ceil, 1, 0, "ceil", call) X(round, 1, 0, "round", call) X(trunc, 1, 0, "trunc", call)                   \
  X(tan, 1, 1, "tan", call) X(asin, 1, 1, "asin", call) X(acos, 1, 1, "acos", call) X(atan, 1, 1, "atan", call)                           \
  X(atan2, 2, 1, "atan2", call) X(sinh, 1, 1, "sinh", call) X(cosh, 1, 1, "cosh", call) X(erfc, 1, 1, "erfc", call)                       \
  X(erfinv, 1, 1, "erfinv", call) X(lgamma, 1, 1, "lgamma", call)
// clang-format on

enum class MapFn : uint8_t {
#define X(name, arity, transcendental, spelling, form) name,
  EINC_MAP_FNS(X)
#undef X
};

// logsumexp: of a running reduction alone; that of whole axes is an op of its own.
enum class ReduceFn : uint8_t { sum, max, min, prod, any, all, logsumexp };
// bits: whole numbers of 31 bits. gumbel: what makes an argmax draw from its logits.
enum class RandomKind : uint8_t { uniform, normal, keep_mask, bits, gumbel };
enum class Phase : uint8_t { forward, backward, optimizer };
inline constexpr size_t kPhases = 3;
enum class Direction : uint8_t { forward, reverse };

std::string_view to_string(Op op);
std::string_view to_string(MapFn fn);
std::string_view to_string(ReduceFn fn);
std::string_view to_string(RandomKind kind);
std::string_view to_string(Phase phase);
std::optional<Op> parse_op(std::string_view name);
std::optional<MapFn> parse_map_fn(std::string_view name);
std::optional<ReduceFn> parse_reduce_fn(std::string_view name);
std::optional<RandomKind> parse_random_kind(std::string_view name);
std::optional<Phase> parse_phase(std::string_view name);

inline bool is_declaration(Op op) { return op == Op::input || op == Op::param || op == Op::state; }
constexpr OpKind kind_of(Op op) {
  switch (op) {
    case Op::input:
    case Op::param:
    case Op::state:
    case Op::constant:
    case Op::iota:
    case Op::random:
      return OpKind::source;
    case Op::map:
    case Op::reduce:
    case Op::cumulate:
    case Op::arg_reduce:
    case Op::top_k_index:
    case Op::contract:
    case Op::fold:
    case Op::pad:
    case Op::concat:
    case Op::gather:
    case Op::scatter_add:
    case Op::scatter_max:
    case Op::scatter_min:
    case Op::scatter_set:
    case Op::cast:
    case Op::scan:
    case Op::scan_result:
    case Op::all_reduce:
    case Op::reduce_scatter:
    case Op::all_gather:
    case Op::all_to_all:
    case Op::shift:
      return OpKind::compute;
    case Op::permute:
    case Op::broadcast:
    case Op::split:
    case Op::merge:
    case Op::slice:
    case Op::diagonal:
    case Op::window:
    case Op::stop_gradient:
      return OpKind::view;
    case Op::softmax:
    case Op::logsumexp:
    case Op::dropout:
    case Op::training:
      return OpKind::composite;
  }
  return OpKind::compute;
}
bool is_collective(Op op);  // all_reduce, reduce_scatter, all_gather, all_to_all, shift
bool makes_table(Op op);    // scatter_add, scatter_max, scatter_min: the result is the table
int arity_of(MapFn fn);
enum class MapForm : uint8_t { infix, prefix, call };
MapForm form_of(MapFn fn);
std::string_view spelling_of(MapFn fn);  // "+", "min", "not"
bool is_transcendental(MapFn fn);
bool is_comparison(MapFn fn);  // equal ... greater_equal: the result is bool whatever the operands
bool is_logical(MapFn fn);     // logical_and, logical_or, logical_not
bool is_commutative(MapFn fn);
bool rounds_to_integer(MapFn fn);  // floor, ceil, round, trunc
bool divides_integers(MapFn fn);   // floor_div, remainder: a divisor of 0 stops the run

}  // namespace einc
