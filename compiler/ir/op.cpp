// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/op.h"

#include <array>

namespace einc {
namespace {

constexpr std::array kOpNames{
#define X(name) std::string_view(#name),
    EINC_OPS(X)
#undef X
};

struct MapRow {
  std::string_view name;
  int arity;
  bool transcendental;
  std::string_view spelling;
  MapForm form;
};
constexpr std::array kMapRows{
#define X(name, arity, transcendental, spelling, form) MapRow{#name, arity, transcendental != 0, spelling, MapForm::form},
    EINC_MAP_FNS(X)
#undef X
};

constexpr std::array kReduceNames{std::string_view("sum"), std::string_view("max"), std::string_view("min"),      std::string_view("prod"),
                                  std::string_view("any"), std::string_view("all"), std::string_view("logsumexp")};

const MapRow& row(MapFn fn) { return kMapRows[static_cast<size_t>(fn)]; }

}  // namespace

std::string_view to_string(Op op) { return kOpNames[static_cast<size_t>(op)]; }
std::string_view to_string(MapFn fn) { return row(fn).name; }
std::string_view to_string(ReduceFn fn) { return kReduceNames[static_cast<size_t>(fn)]; }

std::string_view to_string(RandomKind kind) {
  switch (kind) {
    case RandomKind::uniform:
      return "uniform";
    case RandomKind::normal:
      return "normal";
    case RandomKind::keep_mask:
      return "keep_mask";
    case RandomKind::bits:
      return "bits";
    case RandomKind::gumbel:
      return "gumbel";
  }
  return "";
}

std::string_view to_string(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return "forward";
    case Phase::backward:
      return "backward";
    case Phase::optimizer:
      return "optimizer";
  }
  return "";
}

std::optional<Op> parse_op(std::string_view name) {
  for (size_t i = 0; i < kOpNames.size(); ++i)
    if (kOpNames[i] == name) return static_cast<Op>(i);
  return std::nullopt;
}

std::optional<MapFn> parse_map_fn(std::string_view name) {
  for (size_t i = 0; i < kMapRows.size(); ++i)
    if (kMapRows[i].name == name) return static_cast<MapFn>(i);
  return std::nullopt;
}

std::optional<ReduceFn> parse_reduce_fn(std::string_view name) {
  for (size_t i = 0; i < kReduceNames.size(); ++i)
    if (kReduceNames[i] == name) return static_cast<ReduceFn>(i);
  return std::nullopt;
}

std::optional<RandomKind> parse_random_kind(std::string_view name) {
  for (const RandomKind kind : {RandomKind::uniform, RandomKind::normal, RandomKind::keep_mask, RandomKind::bits, RandomKind::gumbel})
    if (to_string(kind) == name) return kind;
  return std::nullopt;
}

std::optional<Phase> parse_phase(std::string_view name) {
  for (const Phase phase : {Phase::forward, Phase::backward, Phase::optimizer})
    if (to_string(phase) == name) return phase;
  return std::nullopt;
}

bool is_collective(Op op) {
  return op == Op::all_reduce || op == Op::reduce_scatter || op == Op::all_gather || op == Op::all_to_all || op == Op::shift;
}
bool makes_table(Op op) { return op == Op::scatter_add || op == Op::scatter_max || op == Op::scatter_min; }

int arity_of(MapFn fn) { return row(fn).arity; }
MapForm form_of(MapFn fn) { return row(fn).form; }
std::string_view spelling_of(MapFn fn) { return row(fn).spelling; }
bool is_transcendental(MapFn fn) { return row(fn).transcendental; }
bool is_comparison(MapFn fn) { return fn >= MapFn::equal && fn <= MapFn::greater_equal; }
bool is_logical(MapFn fn) { return fn >= MapFn::logical_and && fn <= MapFn::logical_not; }

bool rounds_to_integer(MapFn fn) { return fn == MapFn::floor || fn == MapFn::ceil || fn == MapFn::round || fn == MapFn::trunc; }
bool divides_integers(MapFn fn) { return fn == MapFn::floor_div || fn == MapFn::remainder; }

bool is_commutative(MapFn fn) {
  return fn == MapFn::add || fn == MapFn::mul || fn == MapFn::minimum || fn == MapFn::maximum || fn == MapFn::equal ||
         fn == MapFn::not_equal || fn == MapFn::logical_and || fn == MapFn::logical_or;
}

}  // namespace einc
