// SPDX-License-Identifier: Apache-2.0
// Names, sizes and lines of a random program, by the language's rules for axes and dtypes.
#include "tests/fuzz/random_writer.h"

#include <algorithm>
#include <cctype>

namespace einc {

bool has(const Axes& axes, const std::string& axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); }

bool covers(const Axes& all, const Axes& some) {
  return std::all_of(some.begin(), some.end(), [&](const auto& axis) { return has(all, axis); });
}

Axes without(Axes axes, const std::string& axis) {
  std::erase(axes, axis);
  return axes;
}

Axes replaced(Axes axes, const std::string& axis, const std::string& by) {
  std::replace(axes.begin(), axes.end(), axis, by);
  return axes;
}

std::string list(const Axes& axes) { return fmt::format("{}", fmt::join(axes, " ")); }

Axes aligned(const Axes& x, const Axes& y) {
  if (covers(y, x) && !covers(x, y)) return y;
  Axes axes = x;
  for (const auto& axis : y)
    if (!has(axes, axis)) axes.push_back(axis);
  return axes;
}

bool is_real(const std::string& dtype) { return dtype[0] == 'f' || dtype[0] == 'b' ? dtype != "bool" : false; }

std::string promoted(const std::string& x, const std::string& y) {
  if (x == y) return x;
  const auto rank = [](const std::string& d) {
    return d == "f64" ? 5 : d == "f32" ? 4 : is_real(d) ? 3 : d == "i64" ? 2 : d == "i32" ? 1 : 0;
  };
  if (rank(x) != rank(y)) return rank(x) > rank(y) ? x : y;
  return rank(x) == 3 ? "f32" : "i32";
}

RandomWriter::RandomWriter(uint64_t seed) : random_(seed * 0x9E3779B97F4A7C15u + 1) {
  // Few dims, so that values of one shape meet. A product of three middle sizes is as large as those that code generators tile, and a large
  // size longer than a vector. Programs of neighbouring seeds have one set of sizes: tests compile a kernel that they share once.
  constexpr int64_t small[] = {1, 1, 2, 3, 4, 5, 6, 7, 9}, middle[] = {7, 8, 8, 9, 9, 12}, large[] = {17, 33, 40};
  constexpr uint64_t kSeedsOfOneSet = 10;
  std::mt19937_64 drawn(seed / kSeedsOfOneSet);
  const auto size_of = [&](std::span<const int64_t> sizes) { return sizes[drawn() % sizes.size()]; };
  const bool all_small = drawn() % 3 == 0;
  const std::string longest(1, static_cast<char>('a' + drawn() % 8));
  for (const char* name : {"a", "b", "c", "d"}) {
    const bool is_small = all_small || drawn() % 4 == 0;
    const int64_t value = !all_small && name == longest ? size_of(large) : is_small ? size_of(small) : size_of(middle);
    dims_[name] = {value, name};
    program.dims.push_back({name, value});
  }
  for (const auto& [name, same] : {std::pair{"e", "a"}, std::pair{"f", "b"}}) {
    line(fmt::format("dim {} = {}", name, same));
    dims_[name] = {size(same), same};
  }
}

Axes RandomWriter::shuffled(Axes axes) {
  for (size_t i = axes.size(); i > 1; --i) std::swap(axes[i - 1], axes[below(i)]);
  return axes;
}

int64_t RandomWriter::count(const Axes& axes) const {
  int64_t n = 1;
  for (const auto& axis : axes) n *= size(axis);
  return n;
}

Axes RandomWriter::equal_dims(const std::string& axis) const {
  Axes equal;
  for (const auto& [name, dim] : dims_)
    if (dim.formula == dims_.at(axis).formula) equal.push_back(name);
  return equal;
}

std::string RandomWriter::derived(const std::string& prefix, const std::string& formula, int64_t value) {
  for (const auto& [name, dim] : dims_)
    if (dim.formula == formula) return name;
  const std::string name = fmt::format("{}_{}", prefix, dims_.size());
  line(fmt::format("dim {} = {}", name, formula));
  dims_[name] = {value, formula};
  return name;
}

std::string RandomWriter::new_axis(const Axes& axes) {
  const Axes order = shuffled({"a", "b", "c", "d", "e", "f"});
  for (const auto& axis : order)
    if (!has(axes, axis)) return axis;
  return "";
}

Axes RandomWriter::random_axes(size_t most) {
  // The first dims more often than the last ones: shapes recur.
  const Axes all = chance(3) ? shuffled({"a", "b", "c", "d", "e", "f"}) : chance(2) ? Axes{"a", "b", "c", "d"} : Axes{"b", "c", "a"};
  Axes axes;
  for (size_t i = 0, n = std::min(all.size(), chance(5) ? below(most + 1) : 1 + below(most)); i < n; ++i)
    if (count(axes) * size(all[i]) <= kLargestValue) axes.push_back(all[i]);
  return axes;
}

void RandomWriter::line(std::string text, std::string as_input) { program.lines.push_back({std::move(text), std::move(as_input)}); }

void RandomWriter::count_readers(const std::string& text) {
  const auto part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (RandomValue& value : values_)
    for (size_t at = text.find(value.name); at != std::string::npos; at = text.find(value.name, at + 1)) {
      const size_t end = at + value.name.size();
      if ((at == 0 || !part(text[at - 1])) && (end == text.size() || !part(text[end]))) {
        ++value.readers;
        break;
      }
    }
}

RandomValue RandomWriter::bind(const std::string& annotation, const std::string& expression, const Axes& axes, const std::string& dtype) {
  const std::string name = fresh("v");
  count_readers(expression);
  line(fmt::format("{}{} = {}", name, annotation, expression), fmt::format("input {}: {}[{}]", name, dtype, list(axes)));
  return values_.emplace_back(RandomValue{name, dtype, axes});
}

RandomValue RandomWriter::let(const std::string& expression, const Axes& axes, const std::string& dtype) {
  return bind(chance(6) ? fmt::format(": [{}]", list(axes)) : "", expression, axes, dtype);
}

RandomValue RandomWriter::let_as(const std::string& expression, const Axes& axes, const std::string& dtype) {
  return bind(fmt::format(": [{}]", list(axes)), expression, axes, dtype);
}

RandomValue RandomWriter::let_aligned(const std::string& expression, const RandomValue& x, const RandomValue& y, const Axes& axes,
                                      const std::string& dtype) {
  return covers(x.axes, axes) || covers(y.axes, axes) ? let(expression, axes, dtype) : let_as(expression, axes, dtype);
}

// Inputs are x1, those of integers n1, params w1, states s1.
RandomValue RandomWriter::declare(const char* kind, const Axes& axes, const std::string& dtype, const std::string& init) {
  const char* prefix = kind[0] == 's' ? "s" : kind[0] != 'i' ? "w" : is_real(dtype) ? "x" : "n";
  const RandomValue value{fresh(prefix), dtype.empty() ? "f32" : dtype, axes, true};
  line(fmt::format("{} {}: {}[{}]{}", kind, value.name, dtype, list(axes), init.empty() ? "" : " ~ " + init));
  values_.push_back(value);
  return value;
}

RandomValue RandomWriter::input(const Axes& axes) {
  const std::string dtype = one_of(formats.declared);
  return declare("input", axes, dtype.empty() ? "f32" : dtype, "");
}

RandomValue RandomWriter::param(const Axes& axes, const std::string& init) {
  return declare(chance(12) ? "frozen param" : "param", axes, one_of(formats.declared), init);
}

RandomValue RandomWriter::state(const Axes& axes, const std::string& dtype) {
  return declare("state", axes, dtype, chance(2) ? "ones" : chance(2) || !is_real(dtype) ? "zeros" : "normal(0, 0.5)");
}

RandomValue RandomWriter::integers(const Axes& axes) {
  constexpr const char* dtypes[] = {"i32", "i32", "i64", "u8", "bool"};
  return declare("input", axes, one_of(dtypes), "");
}

RandomValue RandomWriter::positions(const std::string& axis, const Axes& axes) {
  const RandomValue ids{fmt::format("ids_{}_{}", axis, names_++), chance(5) ? "i64" : "i32", axes, true};
  line(fmt::format("input {}: {}[{}]", ids.name, ids.dtype, list(axes)));
  return ids;
}

RandomValue RandomWriter::any() {
  std::vector<const RandomValue*> real, unread;
  for (const RandomValue& x : values_)
    if (is_real(x.dtype)) {
      real.push_back(&x);
      if (x.readers == 0) unread.push_back(&x);
    }
  if (!unread.empty() && chance(2)) return *one_of(unread);
  const size_t recent = std::min<size_t>(5, real.size());
  return chance(3) ? *one_of(real) : *real[real.size() - 1 - below(recent)];
}

RandomValue RandomWriter::with_axis() {
  for (int i = 0; i < 8; ++i)
    if (RandomValue x = any(); !x.axes.empty()) return x;
  return {};
}

RandomValue RandomWriter::any_integers() {
  std::vector<const RandomValue*> found;
  for (const RandomValue& x : values_)
    if (!is_real(x.dtype)) found.push_back(&x);
  return found.empty() || chance(5) ? integers(random_axes(2)) : *one_of(found);
}

RandomValue RandomWriter::like(const RandomValue& x) {
  std::vector<const RandomValue*> found;
  for (const RandomValue& y : values_)
    if (y.axes == x.axes && y.name != x.name && is_real(y.dtype)) found.push_back(&y);
  return found.empty() ? x : *one_of(found);
}

RandomValue RandomWriter::source() {
  std::vector<const RandomValue*> found;
  for (const RandomValue& x : values_)
    if (x.is_source && is_real(x.dtype)) found.push_back(&x);
  return *one_of(found);
}

RandomValue RandomWriter::projection(const std::string& from, const std::string& to) {
  if (from != to) return param({from, to});
  const std::string name = fresh("w"), dtype = one_of(formats.declared);  // square: the second axis has a name of its own
  line(fmt::format("param {}: {}[{} z={}] ~ normal(0, 0.6)", name, dtype, from, from));
  return {name, dtype.empty() ? "f32" : dtype, {from, "z"}, true};
}

RandomValue RandomWriter::projected(const RandomValue& x, const RandomValue& weights, const std::string& from, const std::string& to) {
  const Axes axes = replaced(x.axes, from, to);
  const std::string label = from == to ? "z" : to, dtype = promoted(x.dtype, weights.dtype);
  const std::string made = fmt::format("einsum({}, {}, \"{}, {} {} -> {}\")", x.name, weights.name, list(x.axes), from, label,
                                       list(replaced(x.axes, from, label)));
  return from == to ? let_as(made, axes, dtype) : let(made, axes, dtype);
}

RandomValue RandomWriter::projected(const RandomValue& x, const std::string& from, const std::string& to) {
  return projected(x, projection(from, to), from, to);
}

}  // namespace einc
