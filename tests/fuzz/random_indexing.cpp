// SPDX-License-Identifier: Apache-2.0
// Statements of random programs that read by position: gathers, several of one table, the largest elements, losses of classes.
#include "tests/fuzz/random_writer.h"

namespace einc {
namespace {

// The axes of table[axis = ids]: the ids' own stand where the axis was.
Axes gathered(const RandomValue& table, const std::string& axis, const Axes& ids) {
  const Axes rest = without(table.axes, axis);
  Axes axes;
  for (const auto& a : table.axes) {
    if (a != axis) {
      axes.push_back(a);
      continue;
    }
    for (const auto& fresh : ids)
      if (!has(rest, fresh)) axes.push_back(fresh);
  }
  return axes;
}

bool gather(RandomWriter& w) {
  const RandomValue x = w.with_axis();
  if (!x.found()) return false;
  const std::string axis = w.one_of(x.axes);
  const RandomValue ids = w.positions(axis, w.random_axes(2));
  const Axes axes = gathered(x, axis, ids.axes);
  if (!w.fits(axes)) return false;
  w.let(fmt::format("{}[{} = {}]", x.name, axis, ids.name), axes, x.dtype);
  return true;
}

// Rows of one table several times, and the table once more as a whole: shared embeddings, triplets, contrastive losses.
bool shared_table(RandomWriter& w) {
  const Axes axes = w.random_axes(2);
  RandomValue table = w.chance(2) && !axes.empty() ? w.param(axes) : w.with_axis();
  if (!table.found() || table.axes.size() > 3) return false;
  if (w.chance(3)) table = w.let(fmt::format("tanh({})", table.name), table.axes, table.dtype);
  const std::string axis = w.one_of(table.axes);
  const Axes ids = w.random_axes(1), rows = gathered(table, axis, ids);
  if (!w.fits(rows)) return false;
  std::vector<RandomValue> read;
  for (size_t i = 2 + w.below(2); i > 0; --i)
    read.push_back(w.let(fmt::format("{}[{} = {}]", table.name, axis, w.positions(axis, ids).name), rows, table.dtype));
  constexpr const char* pairs[] = {"{0} * {1}", "{0} - {1}", "relu(({0} - {1})^2 + 0.2)", "sigmoid({0}) * {1}"};
  w.let(fmt::format(fmt::runtime(w.one_of(pairs)), read[0].name, read[1].name), rows, table.dtype);
  const Axes kept = without(table.axes, axis);
  if (w.chance(2) && !kept.empty() && covers(rows, kept) && !has(rows, axis)) {  // scores of all rows
    Axes scores = rows;
    const std::string summed = w.one_of(kept);
    scores = without(scores, summed);
    scores.push_back(axis);
    if (w.fits(scores))
      w.let(fmt::format("einsum({}, {}, \"{}, {} -> {}\")", read.back().name, table.name, list(rows), list(table.axes), list(scores)),
            scores, table.dtype);
  } else if (w.chance(2)) {
    w.let(fmt::format("0.1 * sum({}^2)", table.name), {}, table.dtype);
  }
  return true;
}

bool one_hot(RandomWriter& w) {
  const std::string axis = w.chance(2) ? "a" : "b";
  const RandomValue ids = w.positions(axis, without(w.random_axes(1), axis));
  Axes axes = ids.axes;
  axes.push_back(axis);
  w.let(fmt::format("cast(one_hot({}, {}), f32)", ids.name, axis), axes, "f32");
  return true;
}

bool arg_extreme(RandomWriter& w) {
  const RandomValue x = w.with_axis();
  if (!x.found()) return false;
  const std::string axis = w.one_of(x.axes);
  constexpr const char* functions[] = {"argmax", "argmin"};
  const RandomValue at = w.let(fmt::format("{}({}, {})", w.one_of(functions), x.name, axis), without(x.axes, axis), "i32");
  if (w.chance(2))  // what lies there, of the same value or of another one
    w.let(fmt::format("{}[{} = {}]", x.name, axis, at.name), at.axes, x.dtype);
  else
    w.let(fmt::format("cast({}, f32) * 0.1", at.name), at.axes, "f32");
  return true;
}

// The largest elements, every other time twice of one value.
bool largest(RandomWriter& w) {
  const RandomValue x = w.with_axis();
  if (!x.found()) return false;
  const std::string axis = w.one_of(x.axes);
  const auto most = static_cast<int64_t>(1 + w.below(3));
  if (w.size(axis) < most) return false;
  for (size_t times = 1 + w.below(2); times > 0; --times) {
    if (w.chance(2)) {
      w.let(fmt::format("top_k({0}, {1}, {2})[{1} = {3}]", x.name, axis, most, w.below(static_cast<size_t>(most))), without(x.axes, axis),
            x.dtype);
      continue;
    }
    const std::string few = w.derived("g", fmt::format("{}", most), most);
    if (has(x.axes, few)) return false;
    w.let_as(fmt::format("top_k({}, {}, {})", x.name, axis, few), replaced(x.axes, axis, few), x.dtype);
  }
  return true;
}

// One matrix of scores, its classes once along each axis.
bool contrasted(RandomWriter& w) {
  const RandomValue x = w.any();
  if (x.axes.size() < 2) return false;
  const std::string row = x.axes[0], column = x.axes[1];
  for (const auto& axis : {column, row}) {
    const Axes rest = without(x.axes, axis);
    const RandomValue ids = w.positions(axis, w.chance(3) ? rest : Axes{axis == row ? column : row});
    if (ids.axes.size() != rest.size()) continue;
    w.let(fmt::format("cross_entropy({}, {}, {})", x.name, ids.name, axis), rest, promoted(x.dtype, "f32"));
  }
  return true;
}

// Sums of what has one position: the gradient of a gather.
bool segments(RandomWriter& w) {
  if (w.differentiable) return false;
  const RandomValue x = w.with_axis();
  if (!x.found()) return false;
  const std::string axis = w.one_of(x.axes), into = w.new_axis(x.axes);
  if (into.empty() || !w.fits(replaced(x.axes, axis, into))) return false;
  Axes table = without(x.axes, axis);
  table.insert(table.begin(), into);
  const RandomValue ids = w.positions(into, {axis});
  const RandomValue zero = w.let(fmt::format("0 * normal({})", fmt::join(table, ", ")), table, "f32");
  w.let(fmt::format("grad(sum({}[{} = {}] * stop_gradient({})), {})", zero.name, into, ids.name, x.name, zero.name), table, "f32");
  return true;
}

// Values reduced by ids: into an axis of their own, whose empty places a later step would have to keep from being infinite.
bool segment_reduction(RandomWriter& w) {
  const RandomValue x = w.with_axis();
  if (!x.found()) return false;
  const std::string axis = w.one_of(x.axes), into = w.new_axis(x.axes);
  if (into.empty() || !w.fits(replaced(x.axes, axis, into))) return false;
  const Axes others = without(x.axes, axis);
  Axes id_axes{axis};
  if (!others.empty() && w.chance(2)) id_axes.push_back(w.one_of(others));
  const RandomValue ids = w.positions(into, id_axes);
  constexpr const char* functions[] = {"segment_sum({0}, {1}, {2}, {3})", "segment_mean({0}, {1}, {2}, {3})",
                                       "max(segment_max({0}, {1}, {2}, {3}), -2)", "min(segment_min({0}, {1}, {2}, {3}), 2)"};
  w.let(fmt::format(fmt::runtime(w.one_of(functions)), x.name, ids.name, into, axis), replaced(x.axes, axis, into), x.dtype);
  return true;
}

constexpr StatementKind kIndexingKinds[] = {
    {"gather", 3, gather}, {"shared table", 6, shared_table}, {"one hot", 1, one_hot},   {"argmax", 2, arg_extreme},
    {"top k", 3, largest}, {"contrasted", 3, contrasted},     {"segments", 1, segments}, {"segment reduction", 3, segment_reduction}};

}  // namespace

std::span<const StatementKind> index_statements() { return kIndexingKinds; }

}  // namespace einc
