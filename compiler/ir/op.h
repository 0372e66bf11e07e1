// The operation tables: what a node can be. `Op` is the small primitive set of the whole compiler; the functions that an
// elementwise `map` may apply are a table of their own (`MapFn`). Every pass switches over these enums without a
// `default`, so that adding a row makes the compiler list each place that must answer.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace einc {

// name | what it computes. Composite ops (softmax, logsumexp, dropout) keep their own gradient and are expanded into the
// primitives above them by simplify/expand after differentiation; cost, kernels and backends never see them.
#define EINC_OPS(X)                                                                                                                  \
  X(input)                                                                                                                           \
  X(param) X(state) X(constant) X(iota) X(random) X(map) X(reduce) X(scan) X(arg_reduce) X(top_k_index) X(contract) X(permute)       \
      X(broadcast) X(split) X(merge) X(slice) X(diagonal) X(window) X(fold) X(pad) X(concat) X(gather) X(scatter_add) X(scatter_set) \
          X(cast) X(stop_gradient) X(softmax) X(logsumexp) X(dropout)

enum class Op : uint8_t {
#define X(name) name,
  EINC_OPS(X)
#undef X
};

enum class OpKind : uint8_t { source, compute, view, composite };

// name | arity | 1 when transcendental (counted in a column of its own as well)
#define EINC_MAP_FNS(X)                                                                                                                 \
  X(add, 2, 0)                                                                                                                          \
  X(sub, 2, 0) X(mul, 2, 0) X(div, 2, 0) X(pow, 2, 1) X(minimum, 2, 0) X(maximum, 2, 0) X(equal, 2, 0) X(not_equal, 2, 0) X(less, 2, 0) \
      X(less_equal, 2, 0) X(greater, 2, 0) X(greater_equal, 2, 0) X(logical_and, 2, 0) X(logical_or, 2, 0) X(logical_not, 1, 0)         \
          X(where, 3, 0) X(neg, 1, 0) X(abs, 1, 0) X(sign, 1, 0) X(relu, 1, 0) X(exp, 1, 1) X(expm1, 1, 1) X(log, 1, 1) X(log1p, 1, 1)  \
              X(sqrt, 1, 0) X(rsqrt, 1, 0) X(sin, 1, 1) X(cos, 1, 1) X(tanh, 1, 1) X(sigmoid, 1, 1) X(erf, 1, 1) X(gelu, 1, 1)          \
                  X(gelu_tanh, 1, 1) X(silu, 1, 1) X(softplus, 1, 1)

enum class MapFn : uint8_t {
#define X(name, arity, transcendental) name,
  EINC_MAP_FNS(X)
#undef X
};

enum class ReduceFn : uint8_t { sum, max, min, prod, any, all };
enum class RandomKind : uint8_t { uniform, normal, keep_mask };
enum class Phase : uint8_t { forward, backward, optimizer };
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

OpKind kind_of(Op op);
int arity_of(MapFn fn);
bool is_transcendental(MapFn fn);
bool is_comparison(MapFn fn);  // equal ... greater_equal: the result is bool whatever the operands
bool is_logical(MapFn fn);     // logical_and, logical_or, logical_not
bool is_commutative(MapFn fn);

}  // namespace einc
