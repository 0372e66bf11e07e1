// SPDX-License-Identifier: Apache-2.0
// Statements of random programs that are patterns of models: several products of one value that meet again, whose forward and backward
// kernels have several results and operands that end there.
#include "tests/fuzz/random_writer.h"

namespace einc {
namespace {

// {0} and {1} are products, {2} a third value of their axes.
constexpr const char* kGates[] = {"{0} * sigmoid({1})",
                                  "silu({0}) * {1}",
                                  "tanh({0}) * sigmoid({1})",
                                  "gelu({0}) * {1}",
                                  "relu({0}) * {1}",
                                  "{0} * exp(-abs({1}))",
                                  "{0} * tanh({1}) + {1}",
                                  "{0} * sigmoid({1}) + {2} * (1 - sigmoid({1}))",
                                  "{2} + {0} * sigmoid({1})",
                                  "tanh({0} + {2}) * sigmoid({1} + {2})",
                                  "sigmoid({0}) * {2} + sigmoid({1}) * tanh({0})"};

struct Projections {
  RandomValue x;
  std::string from, to;
  bool found() const { return x.found(); }
};
// A value and where a product takes it: to an axis of another dim or back to its own.
Projections projections(RandomWriter& w) {
  RandomValue x = w.with_axis();
  if (!x.found()) return {};
  const std::string from = w.one_of(x.axes), to = w.chance(2) ? from : w.new_axis(x.axes);
  if (to.empty() || !w.fits(replaced(x.axes, from, to))) return {};
  return {x, from, to};
}

std::string gated(RandomWriter& w, const RandomValue& u, const RandomValue& v, const RandomValue& third) {
  return fmt::format(fmt::runtime(w.one_of(kGates)), u.name, v.name, third.name);
}

// Two products of one value, one of which gates the other; the gate may be a product of the first, or of low rank.
bool gate(RandomWriter& w) {
  const Projections p = projections(w);
  if (!p.found()) return false;
  RandomValue u = w.projected(p.x, p.from, p.to), v;
  if (w.chance(3)) u = w.let(fmt::format("tanh({})", u.name), u.axes, u.dtype);
  const std::string narrow = w.new_axis(u.axes);
  if (w.chance(3) && !narrow.empty() && w.fits(replaced(u.axes, p.to, narrow)))
    v = w.projected(w.projected(u, p.to, narrow), narrow, p.to);
  else
    v = w.chance(4) ? w.projected(u, p.to, p.to) : w.projected(p.x, p.from, p.to);
  if (w.chance(3)) {
    const RandomValue bias = w.param({p.to});
    v = w.let(fmt::format("{} + {}", v.name, bias.name), v.axes, promoted(v.dtype, bias.dtype));
  }
  const RandomValue third = p.from == p.to ? p.x : w.like(u);
  const RandomValue y = w.let(gated(w, u, v, third), u.axes, promoted(promoted(u.dtype, v.dtype), third.dtype));
  if (w.chance(4)) w.let(fmt::format("sigmoid({})", v.name), v.axes, v.dtype);
  if (w.chance(2)) {  // and back
    const RandomValue z = w.projected(y, p.to, p.from);
    if (z.axes == p.x.axes) w.let(fmt::format("{} + {}", p.x.name, z.name), z.axes, promoted(z.dtype, p.x.dtype));
  }
  return true;
}

// Blocks of highway or residual layers, each with params of its own.
bool residual(RandomWriter& w) {
  RandomValue x = w.with_axis();
  if (!x.found()) return false;
  const std::string axis = w.one_of(x.axes);
  constexpr const char* blocks[] = {"{2} + tanh({0})", "{2} + {0} * sigmoid({1})", "sigmoid({1}) * tanh({0}) + (1 - sigmoid({1})) * {2}",
                                    "{2} * rsqrt(mean({2}^2, {3}) + 0.1) + gelu({0})", "{2} + {0} * {1} * 0.5"};
  const char* block = w.one_of(blocks);
  for (size_t i = 1 + w.below(3); i > 0; --i) {
    const RandomValue u = w.projected(x, axis, axis), v = std::string_view(block).find("{1}") < 99 ? w.projected(x, axis, axis) : u;
    x = w.let(fmt::format(fmt::runtime(block), u.name, v.name, x.name, axis), x.axes, u.dtype);
  }
  return true;
}

// The same weights on two values, as of siamese networks; every other time the second is a difference from the first.
bool shared_weights(RandomWriter& w) {
  const Projections p = projections(w);
  if (!p.found()) return false;
  const RandomValue weights = w.projection(p.from, p.to), other = w.like(p.x);
  const RandomValue u = w.projected(p.x, weights, p.from, p.to), v = w.projected(other, weights, p.from, p.to);
  constexpr const char* meets[] = {"tanh({0}) * tanh({1})", "({0} - {1})^2", "{0} * sigmoid({1})", "max({0}, {1})"};
  w.let(fmt::format(fmt::runtime(w.one_of(meets)), u.name, v.name), u.axes, promoted(u.dtype, v.dtype));
  return true;
}

bool normalised(RandomWriter& w) {
  const RandomValue x = w.with_axis();
  if (!x.found()) return false;
  const std::string axis = w.one_of(x.axes);
  const RandomValue centred = w.let(fmt::format("{0} - mean({0}, {1})", x.name, axis), x.axes, x.dtype),
                    scale = w.param({axis}, "normal(1, 0.1)");  // no ties
  const RandomValue y = w.let(fmt::format("{0} * rsqrt(mean({0}^2, {1}) + 0.1) * {2}", centred.name, axis, scale.name), x.axes,
                              promoted(x.dtype, scale.dtype));
  if (!w.chance(2)) return true;
  const std::string to = w.chance(2) ? axis : w.new_axis(x.axes);
  if (!to.empty() && w.fits(replaced(x.axes, axis, to))) w.projected(y, axis, to);
  return true;
}

// Queries of rows against keys of the same rows; every other time of causal order.
bool attention(RandomWriter& w) {
  const RandomValue x = w.any();
  if (x.axes.size() < 2 || x.axes.size() > 3) return false;
  const std::string row = x.axes[x.axes.size() - 2], width = x.axes.back(), inner = w.new_axis(x.axes);
  if (inner.empty() || !w.is_declared(row) || !w.fits(replaced(x.axes, width, inner))) return false;
  const RandomValue q = w.projected(x, width, inner), k = w.projected(x, width, inner), v = w.projected(x, width, inner);
  const std::string key = "key_" + row;  // a name has one size in a program
  const Axes keys = replaced(k.axes, row, key), scores = replaced(q.axes, inner, key);
  if (w.count(without(q.axes, inner)) * w.size(row) > RandomWriter::kLargestValue) return false;
  const std::string s = w.fresh("t"), m = w.fresh("t"), dtype = promoted(x.dtype, promoted(q.dtype, promoted(k.dtype, v.dtype)));
  w.line(
      fmt::format("{} = einsum({}, {}, \"{}, {} -> {}\") * rsqrt({})", s, q.name, k.name, list(q.axes), list(keys), list(scores), inner));
  if (w.chance(2)) {
    w.line(fmt::format("{} = where(iota({}) <= iota({}), {}, -inf)", m, key, row, s));
    w.let(fmt::format("einsum(softmax({}, {}), {}, \"{}, {} -> {}\")", m, key, v.name,
                      x.axes.size() == 2 ? fmt::format("{} {}", key, row) : list(scores), list(keys), list(q.axes)),
          q.axes, dtype);
    return true;
  }
  w.let(fmt::format("einsum(softmax({}, {}), {}, \"{}, {} -> {}\")", s, key, v.name, list(scores), list(keys), list(q.axes)), q.axes,
        dtype);
  return true;
}

// A loop that is unrolled: a carry, weights outside or, one for each turn, inside, and every other time a value read at its turn.
bool recurrence(RandomWriter& w) {
  const RandomValue x = w.with_axis();
  if (!x.found()) return false;
  const std::string axis = w.one_of(x.axes);
  const bool scans = w.chance(2) && x.axes.size() > 1 && w.is_declared(x.axes[0]) && axis != x.axes[0] && w.size(x.axes[0]) <= 5;
  const Axes axes = scans ? without(x.axes, x.axes[0]) : x.axes;
  const std::string h = w.fresh("h"), loop = scans ? x.axes[0] : fmt::format("{}", 2 + w.below(3));
  const std::string read = scans ? fmt::format("{}[{} = i]", x.name, x.axes[0]) : x.name;
  const std::string pattern = fmt::format("{}, {} z -> {}", list(axes), axis, list(replaced(axes, axis, "z")));
  const bool inside = w.chance(3), gates = w.chance(2);
  std::string body, declared;
  const auto weights = [&](const char* name) {
    const std::string own = w.fresh(name);
    (inside ? body : declared) += fmt::format("{}param {}: f32[{} z={}] ~ normal(0, 0.5)\n", inside ? "  " : "", own, axis, axis);
    return own;
  };
  const std::string first = weights("w"), second = gates ? weights("w") : "";
  body += fmt::format("  n: [{}] = einsum({}, {}, \"{}\")\n", list(axes), h, first, pattern);
  if (gates) {
    body += fmt::format("  g: [{}] = einsum({}, {}, \"{}\")\n", list(axes), h, second, pattern);
    body += fmt::format("  {0} = sigmoid(g) * {0} + (1 - sigmoid(g)) * tanh(n + {1})", h, read);
  } else {
    body += fmt::format("  {0} = tanh(n + {1}){2}", h, read, w.chance(2) ? fmt::format(" + 0.5 * {}", h) : "");
  }
  if (!declared.empty()) {
    declared.pop_back();
    w.line(declared);
  }
  const RandomValue start = w.state(axes, "f32");
  w.line(fmt::format("{} = {}", h, start.name));
  w.line(fmt::format("for i in {} {{\n{}\n}}", loop, body));
  w.let(h, axes, promoted(x.dtype, "f32"));
  if (w.chance(2)) w.line(fmt::format("{} <- {}", start.name, promoted(x.dtype, "f32") == "f32" ? h : fmt::format("cast({}, f32)", h)));
  return true;
}

// A fn that says itself what its gradient is, and products with derivatives.
bool own_gradient(RandomWriter& w) {
  const RandomValue x = w.any(), y = w.like(x);
  if (w.chance(2)) {
    const std::string fn = w.fresh("own");
    w.line(fmt::format(
        "fn {}(x: [...], y: [...]) {{\n  s = sin(x)\n  return s * y\n}} gradient(dy) {{\n  return dy * cos(x) * y, dy * s\n}}", fn));
    w.let(fmt::format("{}({}, {})", fn, x.name, y.dtype == x.dtype ? y.name : x.name), x.axes, x.dtype);
    return true;
  }
  constexpr const char* products[] = {"vjp(tanh({0}) * 2, {0}, {1})", "jvp(sin({0}) * {0}, {0}, {1})", "jvp({0}^2, {0}, 0.5) + {1}"};
  w.let(fmt::format(fmt::runtime(w.one_of(products)), x.name, y.dtype == x.dtype ? y.name : x.name), x.axes, x.dtype);
  return true;
}

// A fn with params and a `...`, called twice.
bool called(RandomWriter& w) {
  const RandomValue x = w.with_axis();
  if (!x.found()) return false;
  const std::string fn = w.fresh("layer"), last = x.axes.back();
  constexpr const char* bodies[] = {"return x + u * sigmoid(v)", "return silu(u) * v", "s = sigmoid(v)\n  return s * tanh(u) + (1 - s) * x",
                                    "return x * rsqrt(mean(x^2, last) + 0.1) + u * v * 0.3"};
  w.line(
      fmt::format("fn {}(x: [... last]) {{\n  param p: [last z=last] ~ normal(0, 0.5)\n  param q: [last z=last] ~ normal(0, 0.5)\n  u: "
                  "[... last] = einsum(x, p, "
                  "\"... last, last z -> ... z\")\n  v: [... last] = einsum(x, q, \"... last, last z -> ... z\")\n  {}\n}}",
                  fn, w.one_of(bodies)));
  const std::string dtype = promoted(x.dtype, "f32");
  const RandomValue y = w.let(fmt::format("{}({}) as {}_1", fn, x.name, fn), x.axes, dtype);
  if (w.chance(2)) w.let(fmt::format("{}({}) as {}_2 + {}", fn, y.name, fn, x.name), x.axes, dtype);
  return true;
}

// Experts' outputs, weighted by a softmax over them or picked by the largest.
bool experts(RandomWriter& w) {
  const RandomValue x = w.with_axis();
  if (!x.found() || x.axes.size() > 2) return false;
  const std::string from = x.axes.back(), e = w.new_axis(x.axes);
  if (e.empty()) return false;
  Axes with_expert = x.axes;
  with_expert.push_back(e);
  const std::string to = w.new_axis(with_expert);
  Axes made = replaced(x.axes, from, to);
  made.insert(made.begin(), e);
  if (to.empty() || !w.fits(made)) return false;
  const RandomValue scores = w.projected(x, from, e), weights = w.param({e, from, to});
  const RandomValue share = w.let(fmt::format("softmax({}, {})", scores.name, e), scores.axes, scores.dtype);
  const RandomValue y =
      w.let(fmt::format("einsum({}, {}, \"{}, {} {} {} -> {}\")", x.name, weights.name, list(x.axes), e, from, to, list(made)), made,
            promoted(x.dtype, weights.dtype));
  const Axes out = without(made, e);
  w.let(fmt::format("einsum({}, {}, \"{}, {} -> {}\")", share.name, y.name, list(share.axes), list(made), list(out)), out,
        promoted(share.dtype, y.dtype));
  return true;
}

// One product that is parted: query, key and value of one weight.
bool parted(RandomWriter& w) {
  const Projections p = projections(w);
  if (!p.found() || p.from == p.to) return false;
  const std::string weights = w.fresh("w"), whole = w.fresh("t");
  w.line(fmt::format("param {}: f32[{} three=3 {}] ~ normal(0, 0.6)", weights, p.from, p.to));
  const Axes axes = replaced(p.x.axes, p.from, p.to);
  w.line(fmt::format("{} = einsum({}, {}, \"{}, {} three {} -> three {}\")", whole, p.x.name, weights, list(p.x.axes), p.from, p.to,
                     list(axes)));
  const std::string dtype = promoted(p.x.dtype, "f32");
  std::vector<RandomValue> parts;
  for (int i = 0; i < 3; ++i) parts.push_back(w.let(fmt::format("{}[three = {}]", whole, i), axes, dtype));
  w.let(gated(w, parts[0], parts[1], parts[2]), axes, dtype);
  return true;
}

// A gradient as a value: penalties, steps within a step.
bool inner_gradient(RandomWriter& w) {
  const RandomValue x = w.source(), y = w.any();
  const std::string inner = w.fresh("t");
  w.line(fmt::format("{} = sum(tanh({}) * {})", inner, y.name, w.chance(2) ? "0.5" : y.name));
  const RandomValue g = w.let(fmt::format("grad({}, {})", inner, x.name), x.axes, x.dtype);
  if (w.chance(2)) w.let(fmt::format("{} - 0.3 * {}", x.name, g.name), x.axes, x.dtype);
  return true;
}

constexpr StatementKind kModelKinds[] = {{"gate", 10, gate},
                                         {"residual", 5, residual},
                                         {"shared weights", 4, shared_weights},
                                         {"normalised", 3, normalised},
                                         {"attention", 3, attention},
                                         {"recurrence", 4, recurrence},
                                         {"called", 3, called},
                                         {"experts", 2, experts},
                                         {"parted", 2, parted},
                                         {"inner gradient", 1, inner_gradient},
                                         {"own gradient", 1, own_gradient}};

}  // namespace

std::span<const StatementKind> model_statements() { return kModelKinds; }

}  // namespace einc
