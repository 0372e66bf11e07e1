#include "tests/fuzz/random_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>

namespace einc {
namespace {

using Axes = std::vector<std::string>;

constexpr int64_t kLargestValue = 3000, kLargestProduct = 30000;

struct Value {
  std::string name, dtype;
  Axes axes;
};

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed * 0x9E3779B97F4A7C15u + 1) {
    constexpr int64_t sizes[] = {1, 2, 3, 5, 2, 3, 5, 17, 33};
    for (const char* name : {"a", "b", "c", "d"}) {
      dims_[name] = {sizes[below(9)], name};
      program_.dims.push_back({name, dims_[name].value});
    }
    derived("e", "a");
    derived("f", "b");
    only_f64_ = chance(3);
    for (int i = 2 + below(2); i > 0; --i) source("input");
    for (int i = 1 + below(2); i > 0; --i) source("param");
    sources_ = values_.size();
    const int wanted = 3 + below(4);
    for (int tries = 0, made = 0; tries < 60 && made < wanted; ++tries) made += statement() ? 1 : 0;
    finish();
  }

  RandomProgram program() && { return std::move(program_); }

 private:
  struct DimInfo {
    int64_t value;
    std::string same_as;  // equal sizes have equal text here
  };

  int below(size_t n) { return static_cast<int>(random_() % n); }
  bool chance(size_t n) { return below(n) == 0; }
  int64_t size(const std::string& axis) const { return dims_.at(axis).value; }
  int64_t count(const Axes& axes) const {
    int64_t n = 1;
    for (const auto& axis : axes) n *= size(axis);
    return n;
  }
  static bool has(const Axes& axes, const std::string& axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); }
  static std::string list(const Axes& axes) { return fmt::format("{}", fmt::join(axes, " ")); }
  template <class T>
  T& one_of(std::vector<T>& from) {
    return from[static_cast<size_t>(below(from.size()))];
  }
  std::string one_of(std::initializer_list<const char*> from) { return *(from.begin() + below(from.size())); }
  void shuffle(Axes& axes) {
    for (size_t i = axes.size(); i > 1; --i) std::swap(axes[i - 1], axes[static_cast<size_t>(below(i))]);
  }

  void line(std::string text, std::string as_input = "") { program_.lines.push_back({std::move(text), std::move(as_input)}); }

  // A dim of that size, declared where it is first wanted.
  std::string derived(const std::string& prefix, const std::string& formula) {
    for (const auto& [name, info] : dims_)
      if (info.same_as == formula && !formula.empty() && formula.find(' ') != std::string::npos) return name;
    const std::string name = formula.find(' ') == std::string::npos ? prefix : fmt::format("{}{}", prefix, dims_.size());
    line(fmt::format("dim {} = {}", name, formula));
    dims_[name] = {value_of(formula), formula.find(' ') == std::string::npos ? dims_.at(formula).same_as : formula};
    return name;
  }
  // "a", "a + b", "a - 1", "a * b"
  int64_t value_of(const std::string& formula) const {
    const size_t space = formula.find(' ');
    const int64_t left = term(formula.substr(0, space));
    if (space == std::string::npos) return left;
    const int64_t right = term(formula.substr(space + 3));
    return formula[space + 1] == '+' ? left + right : formula[space + 1] == '-' ? left - right : left * right;
  }
  int64_t term(const std::string& text) const {
    return text[0] >= '0' && text[0] <= '9' ? std::stoll(text) : text.find(' ') != std::string::npos ? value_of(text) : size(text);
  }

  Axes random_axes(size_t most) {
    Axes all = {"a", "b", "c", "d", "e", "f"}, axes;
    shuffle(all);
    for (size_t i = 0, n = static_cast<size_t>(below(most + 1)); i < n; ++i)
      if (count(axes) * size(all[i]) <= kLargestValue) axes.push_back(all[i]);
    return axes;
  }

  Value source(const std::string& kind) {
    const Axes axes = random_axes(3);
    const Value value{fmt::format("{}{}", kind[0] == 'i' ? 'x' : 'w', values_.size()), only_f64_ || chance(4) ? "f64" : "f32", axes};
    const std::string init = kind == "input" ? "" : kind == "state" ? " ~ ones" : " ~ normal(0, 0.7)";
    line(fmt::format("{} {}: {}[{}]{}", kind, value.name, value.dtype, list(axes), init));
    if (kind == "param") has_params_ = true;
    values_.push_back(value);
    return value;
  }

  std::string positions(const std::string& axis) {
    const Axes axes = random_axes(1);
    const std::string name = fmt::format("ids_{}_{}", axis, program_.lines.size());
    line(fmt::format("input {}: i32[{}]", name, list(axes)));
    last_ids_axes_ = axes;
    return name;
  }

  bool let(const std::string& expression, const Axes& axes, const std::string& dtype, const std::string& annotation = "") {
    const std::string name = fmt::format("v{}", values_.size());
    line(fmt::format("{}{} = {}", name, annotation, expression), fmt::format("input {}: {}[{}]", name, dtype, list(axes)));
    values_.push_back({name, dtype, axes});
    return true;
  }
  bool let_as(const std::string& expression, const Axes& axes, const std::string& dtype) {
    return let(expression, axes, dtype, fmt::format(": [{}]", list(axes)));
  }

  Value any() {
    const size_t recent = std::min<size_t>(4, values_.size());
    return chance(3) ? one_of(values_) : values_[values_.size() - 1 - static_cast<size_t>(below(recent))];
  }
  // A value with at least one axis, else one of no name.
  Value with_axis() {
    for (int i = 0; i < 8; ++i)
      if (Value x = any(); !x.axes.empty()) return x;
    return {};
  }
  static std::string wider(const Value& x, const Value& y) { return x.dtype == "f64" || y.dtype == "f64" ? "f64" : "f32"; }

  static Axes aligned(const Axes& x, const Axes& y) {
    const auto covers = [](const Axes& all, const Axes& some) {
      return std::all_of(some.begin(), some.end(), [&](const auto& axis) { return has(all, axis); });
    };
    if (covers(y, x) && !covers(x, y)) return y;
    Axes axes = x;
    for (const auto& axis : y)
      if (!has(axes, axis)) axes.push_back(axis);
    return axes;
  }

  bool statement() {
    switch (below(17)) {
      case 0:
        return unary();
      case 1:
      case 2:
        return binary();
      case 3:
      case 4:
      case 5:
        return contraction();
      case 6:
      case 7:
        return reduction();
      case 8:
        return along_axis();
      case 9:
      case 10:
        return view();
      case 11:
        return resized();
      case 12:
        return window();
      case 13:
        return indexed();
      case 14:
        return masked();
      case 15:
        return drawn();
      default:
        return rounded();
    }
  }

  bool unary() {
    const Value x = any();
    const std::string f =
        one_of({"tanh({})",      "sigmoid({})",      "erf({})",           "gelu({})",           "gelu_tanh({})",   "silu({})",
                "softplus({})",  "sin({})",          "cos({})",           "relu({})",           "abs({})",         "-{}",
                "exp(-abs({}))", "sqrt({}^2 + 0.5)", "log(1.5 + {}^2)",   "rsqrt(1 + {}^2)",    "expm1(tanh({}))", "log1p({}^2)",
                "{}^3",          "sign({} - 0.25)",  "stop_gradient({})", "cast({} > 0.1, f32)"});
    return let(fmt::format(fmt::runtime(f), x.name), x.axes, f[0] == 'c' && f[1] == 'a' ? "f32" : x.dtype);
  }

  bool binary() {
    const Value x = any(), y = any();
    const Axes axes = aligned(x.axes, y.axes);
    if (count(axes) > kLargestValue || axes.size() > 4) return false;
    const std::string f = one_of({"{} + {}", "{} - {}", "{} * {}", "{} * 0.5 - {}", "{} / ({}^2 + 1)", "max({}, {} * 0.7)",
                                  "min({}, {} + 0.1)", "pow(abs({}) + 0.5, tanh({}))", "tanh({}) * {} + 0.3"});
    const std::string expression = fmt::format(fmt::runtime(f), x.name, y.name);
    const bool outer = axes.size() > x.axes.size() && axes.size() > y.axes.size();  // a sum of that kind states its axes
    return outer ? let_as(expression, axes, wider(x, y)) : let(expression, axes, wider(x, y));
  }

  // Each axis under its own name or that of another dim of its size.
  Axes labels(const Value& x) {
    Axes names;
    for (const auto& axis : x.axes) {
      Axes equal;
      for (const auto& [name, info] : dims_)
        if (info.same_as == dims_.at(axis).same_as) equal.push_back(name);
      names.push_back(chance(3) ? one_of(equal) : axis);
    }
    return names;
  }

  bool contraction() {
    const size_t operands = chance(4) ? 3 : chance(6) ? 1 : 2;
    std::string names, patterns;
    Axes all, out;
    std::string dtype = "f32";
    for (size_t i = 0; i < operands; ++i) {
      const Value x = any();
      const Axes axes = labels(x);
      for (const auto& axis : axes)
        if (!has(all, axis)) all.push_back(axis);
      names += x.name + ", ";
      patterns += (i > 0 ? ", " : "") + list(axes);
      if (x.dtype == "f64") dtype = "f64";
    }
    if (count(all) > kLargestProduct) return false;
    for (const auto& axis : all)
      if (!chance(3)) out.push_back(axis);
    if (chance(2)) shuffle(out);
    if (count(out) > kLargestValue || out.size() > 4) return false;
    return let(fmt::format("einsum({}\"{} -> {}\")", names, patterns, list(out)), out, dtype);
  }

  bool reduction() {
    const Value x = with_axis();
    if (x.name.empty()) return false;
    Axes kept, gone;
    const std::string f = one_of({"sum", "mean", "max", "min", "prod", "var", "logsumexp", "sum", "mean"});
    for (const auto& axis : x.axes) (chance(2) ? gone : kept).push_back(axis);
    if (gone.empty()) return false;
    if ((f == "logsumexp" || f == "var") && gone.size() > 1) return false;
    return let(fmt::format("{}({}, {})", f, x.name, fmt::join(gone, ", ")), kept, x.dtype);
  }

  bool along_axis() {
    const Value x = with_axis();
    if (x.name.empty()) return false;
    const std::string axis = x.axes[static_cast<size_t>(below(x.axes.size()))], n = x.name;
    switch (below(5)) {
      case 0:
        return let(fmt::format("softmax({}, {})", n, axis), x.axes, x.dtype);
      case 1:
        return let(fmt::format("log_softmax({}, {})", n, axis), x.axes, x.dtype);
      case 2:
        return let(fmt::format("cumsum({}, {}) * 0.5", n, axis), x.axes, x.dtype);
      case 3:
        return let(fmt::format("({0} - mean({0}, {1})) * rsqrt(var({0}, {1}) + 0.01)", n, axis), x.axes, x.dtype);
      default:
        return let(fmt::format("{0} * rsqrt(mean({0}^2, {1}) + 0.01)", n, axis), x.axes, x.dtype);
    }
  }

  bool view() {
    const Value x = with_axis();
    if (x.name.empty()) return false;
    Axes axes = x.axes;
    switch (below(4)) {
      case 0:
        shuffle(axes);
        return let(fmt::format("rearrange({}, \"{} -> {}\")", x.name, list(x.axes), list(axes)), axes, x.dtype);
      case 1: {  // merged, worked on, split again
        if (axes.size() < 2) return false;
        const std::string p = axes[0], q = axes[1], merged = derived("m", fmt::format("{} * {}", p, q));
        if (has(axes, merged)) return false;
        Axes rest(axes.begin() + 2, axes.end()), flat = rest;
        flat.push_back(merged);
        return let_as(fmt::format("rearrange({}, \"{} -> {} ({} {})\")", x.name, list(axes), list(rest), p, q), flat, x.dtype) &&
               (chance(2) || let(fmt::format("rearrange(tanh(v{}), \"{} ({} {}) -> {} {} {}\", {}={})", values_.size() - 1, list(rest), p,
                                             q, q, list(rest), p, p, p),
                                 joined({q}, rest, {p}), x.dtype));
      }
      case 2: {
        const std::string added = one_of({"a", "b", "c", "d"});
        if (has(axes, added) || axes.size() > 3 || count(axes) * size(added) > kLargestValue) return false;
        axes.insert(axes.begin() + below(axes.size() + 1), added);
        return let(fmt::format("repeat({}, \"{} -> {}\", {}={})", x.name, list(x.axes), list(axes), added, added), axes, x.dtype);
      }
      default: {
        const Value y = any();
        if (y.axes != x.axes) return false;
        return let(fmt::format("{}(stack({}, {}, pair), pair)", one_of({"sum", "max", "mean"}), x.name, y.name), axes, wider(x, y));
      }
    }
  }
  static Axes joined(const Axes& x, const Axes& y, const Axes& z) {
    Axes all = x;
    all.insert(all.end(), y.begin(), y.end());
    all.insert(all.end(), z.begin(), z.end());
    return all;
  }

  // One axis gets another size: a slice, a pad, a concat.
  bool resized() {
    const Value x = with_axis();
    if (x.name.empty()) return false;
    Axes axes = x.axes;
    std::string& axis = axes[static_cast<size_t>(below(axes.size()))];
    const std::string old = axis;
    if (old.size() > 1) return false;
    switch (below(4)) {
      case 0: {
        if (size(old) < 2) return false;
        axis = derived("s", old + " - 1");
        const bool first = chance(2);
        return !has(x.axes, axis) &&
               let_as(fmt::format("{}[{} = {}:{}]", x.name, old, first ? "0" : "1", first ? old + " - 1" : old), axes, x.dtype);
      }
      case 1: {
        const int before = below(3), after = below(3);
        if (before + after == 0) return false;
        axis = derived("p", fmt::format("{} + {}", old, before + after));
        return !has(x.axes, axis) && let_as(fmt::format("pad({}, {} = ({}, {}), value = 0.5)", x.name, old, before, after), axes, x.dtype);
      }
      case 2: {
        axis = derived("t", fmt::format("{} + {}", old, old));
        return !has(x.axes, axis) && let_as(fmt::format("concat({0}, {0} * 2, {1})", x.name, old), axes, x.dtype);
      }
      default: {
        std::erase(axes, old);
        return let(fmt::format("{}[{} = {}]", x.name, old, chance(2) ? "0" : "-1"), axes, x.dtype);
      }
    }
  }

  bool window() {
    const Value x = with_axis();
    if (x.name.empty() || x.axes[0].size() > 1 || size(x.axes[0]) < 3) return false;
    const std::string old = x.axes[0];
    Axes rest(x.axes.begin() + 1, x.axes.end());
    if (chance(3))
      return let(fmt::format("reduce({}, \"(2*y + ky) {} -> {}\", \"{}\", ky=2)", x.name, list(rest), list(rest), one_of({"sum", "max"})),
                 rest, x.dtype);
    const std::string shorter = derived("s", old + " - 1");
    if (has(x.axes, shorter)) return false;
    const Axes axes = joined({shorter}, rest, {});
    if (chance(2))
      return let_as(
          fmt::format("reduce({}, \"(y + ky) {} -> y {}\", \"{}\", ky=2)", x.name, list(rest), list(rest), one_of({"max", "mean", "sum"})),
          axes, x.dtype);
    const std::string weights = fmt::format("k{}", program_.lines.size());
    line(fmt::format("param {}: {}[tap=2] ~ normal(0, 0.7)", weights, x.dtype));
    has_params_ = true;
    return let_as(fmt::format("einsum({}, {}, \"(y + ky) {}, ky -> y {}\")", x.name, weights, list(rest), list(rest)), axes, x.dtype);
  }

  bool indexed() {
    const Value x = with_axis();
    if (x.name.empty()) return false;
    const std::string axis = x.axes[static_cast<size_t>(below(x.axes.size()))];
    Axes rest = x.axes;
    std::erase(rest, axis);
    switch (below(4)) {
      case 0: {
        const size_t at = static_cast<size_t>(std::find(x.axes.begin(), x.axes.end(), axis) - x.axes.begin());
        const std::string ids = positions(axis);
        Axes axes = x.axes, fresh;
        for (const auto& a : last_ids_axes_)
          if (!has(rest, a)) fresh.push_back(a);
        axes.erase(axes.begin() + static_cast<int64_t>(at));
        axes.insert(axes.begin() + static_cast<int64_t>(at), fresh.begin(), fresh.end());
        if (count(axes) > kLargestValue || axes.size() > 4) return false;
        return let(fmt::format("{}[{} = {}]", x.name, axis, ids), axes, x.dtype);
      }
      case 1: {
        const std::string ids = positions("a");
        if (has(last_ids_axes_, "a")) return false;
        return let(fmt::format("cast(one_hot({}, a), f32)", ids), joined(last_ids_axes_, {"a"}, {}), "f32");
      }
      case 2:
        return let(fmt::format("cast({}({}, {}), f32) * 0.1", one_of({"argmax", "argmin"}), x.name, axis), rest, "f32");
      default: {
        if (size(axis) < 2) return false;
        return let(fmt::format("top_k({0}, {1}, 2)[{1} = {2}]", x.name, axis, one_of({"0", "1"})), rest, x.dtype);
      }
    }
  }

  bool masked() {
    const Value x = any(), y = any();
    if (chance(2)) {
      const Axes axes = aligned(x.axes, y.axes);
      if (count(axes) > kLargestValue || axes.size() > 4) return false;
      return let(fmt::format("where({} > {} + 0.01, {} * {}, -0.5)", x.name, y.name, y.name, x.name), axes_of_where(x, y), wider(x, y));
    }
    if (x.axes.size() < 2) return false;
    const std::string row = x.axes[0], column = x.axes.back();
    if (chance(2))
      return let(fmt::format("softmax(where(iota({1}) <= iota({2}), {0}, -inf), {1})", x.name, column, row), mask_axes(x, column, row),
                 x.dtype);
    return let(fmt::format("where(iota({1}) * 2 < iota({2}) + 3, {0}, 0)", x.name, column, row), mask_axes(x, column, row), x.dtype);
  }
  static Axes axes_of_where(const Value& x, const Value& y) {
    const Axes condition = aligned(x.axes, y.axes), product = aligned(y.axes, x.axes);
    return aligned(condition, product);
  }
  // where's condition comes first: it decides the order where it holds all axes.
  static Axes mask_axes(const Value& x, const std::string& column, const std::string& row) {
    return x.axes.size() == 2 ? Axes{column, row} : x.axes;
  }

  bool drawn() {
    const Value x = with_axis();
    if (x.name.empty()) return false;
    switch (below(3)) {
      case 0:
        return let(fmt::format("dropout({}, 0.25)", x.name), x.axes, x.dtype);
      case 1:
        return let(fmt::format("{} + 0.5 * {}({})", x.name, one_of({"uniform", "normal"}), fmt::join(x.axes, ", ")), x.axes, x.dtype);
      default: {
        const std::string name = fmt::format("s{}x", program_.lines.size());
        line(fmt::format("state {}: {}[{}] ~ ones", name, x.dtype, list(x.axes)));
        if (chance(2)) {
          line(fmt::format("{} <- {} * 0.9 + tanh({})", name, name, x.name));
        } else {
          const std::string& axis = x.axes[0];
          line(fmt::format("input ids_{}_{}: i32[]", axis, name));
          Axes rest(x.axes.begin() + 1, x.axes.end());
          line(fmt::format("{}[{} = ids_{}_{}] <- sum({}, {}) * 0.5", name, axis, axis, name, x.name, axis));
        }
        return let(fmt::format("{} * {}", x.name, name), x.axes, x.dtype);
      }
    }
  }

  // Of values that are known exactly, so that all that compute it round alike.
  bool rounded() {
    const Value x = values_[static_cast<size_t>(below(sources_))];
    return let(fmt::format("stop_gradient(cast(cast({}, {}), f32))", x.name, one_of({"bf16", "f16"})), x.axes, "f32");
  }

  // A small eps would divide gradients that are 0 but for rounding by their own size.
  void finish() {
    const Value x = values_.back(), y = any();
    line(fmt::format("loss = mean(sin({})) + mean(tanh({}))", x.name, y.name));
    if (has_params_ && chance(2))
      line(fmt::format("minimize loss using {}",
                       one_of({"sgd(lr = 0.1)", "momentum(lr = 0.1)", "adagrad(lr = 0.1, eps = 0.1)", "rmsprop(lr = 0.1, eps = 0.1)",
                               "adam(lr = 0.1, eps = 0.1)", "adamw(lr = 0.1, eps = 0.1, clip_norm = 0.5)"})));
    line(fmt::format("output last = {}", x.name));
    if (chance(2)) line(fmt::format("output other = {}", any().name));
    for (int i = 0; i < 2; ++i) line(fmt::format("output d{} = grad(loss, {})", i, values_[static_cast<size_t>(i)].name));
    if (chance(6)) line(fmt::format("output second = grad(sum(grad(loss, {0})^2), {0})", values_[0].name));
  }

  std::mt19937_64 random_;
  RandomProgram program_;
  std::map<std::string, DimInfo> dims_;
  std::vector<Value> values_;
  Axes last_ids_axes_;
  size_t sources_ = 0;  // inputs and params among the values, which come first
  bool only_f64_ = false, has_params_ = false;
};

}  // namespace

RandomProgram random_program(uint64_t seed) { return Generator(seed).program(); }

}  // namespace einc
