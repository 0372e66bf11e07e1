// SPDX-License-Identifier: Apache-2.0
// Statements of random programs that contract, reduce, rearrange or resize axes.
#include "tests/fuzz/random_writer.h"

namespace einc {
namespace {

// Each axis under its own name or that of another dim of its size.
Axes labels(RandomWriter& w, const RandomValue& x) {
  Axes names;
  for (const auto& axis : x.axes) {
    const std::string name = w.chance(4) ? w.one_of(w.equal_dims(axis)) : axis;
    names.push_back(has(names, name) || has(x.axes, name) ? axis : name);
  }
  return names;
}

bool contraction(RandomWriter& w) {
  const size_t operands = w.chance(5) ? 3 : w.chance(8) ? 1 : 2;
  std::string names, patterns;
  Axes all, out;
  std::string dtype;
  for (size_t i = 0; i < operands; ++i) {
    const RandomValue x = i > 0 && w.chance(8) ? w.like(w.any()) : w.any();
    const Axes axes = labels(w, x);
    for (const auto& axis : axes)
      if (!has(all, axis)) all.push_back(axis);
    names += x.name + ", ";
    patterns += (i > 0 ? ", " : "") + list(axes);
    dtype = i > 0 ? promoted(dtype, x.dtype) : x.dtype;
  }
  if (w.count(all) > RandomWriter::kLargestProduct) return false;
  for (const auto& axis : all)
    if (!w.chance(3)) out.push_back(axis);
  if (w.chance(2)) out = w.shuffled(out);
  if (!w.fits(out)) return false;
  w.let(fmt::format("einsum({}\"{} -> {}\")", names, patterns, list(out)), out, dtype);
  return true;
}

// Products of a value with params, behind an epilogue each.
bool chain(RandomWriter& w) {
  constexpr const char* epilogues[] = {"tanh({0})", "relu({0})", "{0} + {1}", "gelu({0} + {1})", "{0} * {1}", "silu({0}) * {1} + {0}"};
  RandomValue x = w.with_axis();
  if (!x.found()) return false;
  for (size_t i = 1 + w.below(3); i > 0; --i) {
    const std::string from = w.one_of(x.axes), to = w.chance(3) ? from : w.new_axis(x.axes);
    if (to.empty() || !w.fits(replaced(x.axes, from, to))) return false;
    x = w.projected(x, from, to);
    const RandomValue bias = w.chance(2) ? w.like(x) : w.param({to});
    x = w.let(fmt::format(fmt::runtime(w.one_of(epilogues)), x.name, bias.name), x.axes, promoted(x.dtype, bias.dtype));
  }
  return true;
}

bool reduction(RandomWriter& w) {
  const RandomValue x = w.with_axis();
  if (!x.found()) return false;
  constexpr const char* reductions[] = {"sum", "mean", "max", "min", "prod", "var", "logsumexp", "sum", "mean"};
  const std::string f = w.one_of(reductions);
  Axes kept, gone;
  for (const auto& axis : x.axes) (w.chance(2) ? gone : kept).push_back(axis);
  if (gone.empty() || ((f == "logsumexp" || f == "var") && gone.size() > 1)) return false;
  w.let(fmt::format("{}({}, {})", f, x.name, fmt::join(gone, ", ")), kept, x.dtype);
  return true;
}

bool integer_reduction(RandomWriter& w) {
  const RandomValue n = w.any_integers();
  if (n.axes.empty()) return false;
  const std::string axis = w.one_of(n.axes);
  if (n.dtype == "bool") {
    constexpr const char* reductions[] = {"any", "all"};
    w.let(fmt::format("{}({}, {})", w.one_of(reductions), n.name, axis), without(n.axes, axis), "bool");
    return true;
  }
  constexpr const char* reductions[] = {"sum", "max", "min"};
  w.let(fmt::format("{}({}, {})", w.one_of(reductions), n.name, axis), without(n.axes, axis), n.dtype);
  return true;
}

bool along_axis(RandomWriter& w) {
  const RandomValue x = w.with_axis();
  if (!x.found()) return false;
  constexpr const char* functions[] = {"softmax({0}, {1})",
                                       "log_softmax({0}, {1})",
                                       "cumsum({0}, {1}) * 0.5",
                                       "({0} - mean({0}, {1})) * rsqrt(var({0}, {1}) + 0.01)",
                                       "{0} * rsqrt(mean({0}^2, {1}) + 0.01)",
                                       "{0} - max({0}, {1})",
                                       "flip({0}, {1})",
                                       "sort({0}, {1})",
                                       "sort({0}, {1}, descending = true)",
                                       "cummax({0}, {1})",
                                       "cummin({0}, {1}) + {0}",
                                       "cumprod(tanh({0}), {1})",
                                       "logcumsumexp({0}, {1}) * 0.5",
                                       "{0} / (norm({0}, {1}) + 0.1)",
                                       "{0} - std({0}, {1})",
                                       "{0} * sigmoid(mean({0}, {1}))"};
  w.let(fmt::format(fmt::runtime(w.one_of(functions)), x.name, w.chance(2) ? x.axes.back() : w.one_of(x.axes)), x.axes, x.dtype);
  return true;
}

bool rearranged(RandomWriter& w) {
  const RandomValue x = w.with_axis();
  if (!x.found()) return false;
  const Axes axes = w.shuffled(x.axes);
  w.let(fmt::format("rearrange({}, \"{} -> {}\")", x.name, list(x.axes), list(axes)), axes, x.dtype);
  return true;
}

// Merged, worked on, and every other time split again.
bool merged(RandomWriter& w) {
  const RandomValue x = w.any();
  if (x.axes.size() < 2) return false;
  const std::string p = x.axes[0], q = x.axes[1], both = w.derived("m", fmt::format("{} * {}", p, q), w.size(p) * w.size(q));
  if (has(x.axes, both)) return false;
  const Axes rest(x.axes.begin() + 2, x.axes.end());
  Axes flat = rest, split = {q};
  flat.push_back(both);
  split.insert(split.end(), rest.begin(), rest.end());
  split.push_back(p);
  const RandomValue y = w.let_as(fmt::format("rearrange({}, \"{} -> {} ({} {})\")", x.name, list(x.axes), list(rest), p, q), flat, x.dtype);
  if (w.chance(2))
    w.let(fmt::format("rearrange(tanh({}), \"{} ({} {}) -> {}\", {}={})", y.name, list(rest), p, q, list(split), p, p), split, x.dtype);
  return true;
}

bool repeated(RandomWriter& w) {
  const RandomValue x = w.any();
  const std::string added = w.new_axis(x.axes);
  Axes axes = x.axes;
  if (added.empty()) return false;
  axes.insert(axes.begin() + static_cast<int64_t>(w.below(axes.size() + 1)), added);
  if (!w.fits(axes)) return false;
  w.let(fmt::format("repeat({}, \"{} -> {}\", {}={})", x.name, list(x.axes), list(axes), added, added), axes, x.dtype);
  return true;
}

bool stacked(RandomWriter& w) {
  const RandomValue x = w.any(), y = w.like(x);
  constexpr const char* reductions[] = {"sum", "max", "mean"};
  w.let(fmt::format("{}(stack({}, {}, pair), pair)", w.one_of(reductions), x.name, y.name), x.axes, promoted(x.dtype, y.dtype));
  return true;
}

// One axis gets another size: a slice, a pad, a concat; or is picked from.
bool resized(RandomWriter& w) {
  const RandomValue x = w.with_axis();
  if (!x.found()) return false;
  const std::string old = w.one_of(x.axes);
  if (!w.is_declared(old)) return false;
  const int64_t n = w.size(old);
  const auto made = [&](const std::string& text, const std::string& axis) {
    if (has(x.axes, axis) || !w.fits(replaced(x.axes, old, axis))) return false;
    w.let_as(text, replaced(x.axes, old, axis), x.dtype);
    return true;
  };
  switch (w.below(4)) {
    case 0: {
      if (n < 2) return false;
      const std::string bounds = w.chance(2) ? fmt::format("0:{} - 1", old) : fmt::format("1:{}", old);
      return made(fmt::format("{}[{} = {}]", x.name, old, bounds), w.derived("s", old + " - 1", n - 1));
    }
    case 1: {
      const auto before = static_cast<int64_t>(w.below(3)), after = static_cast<int64_t>(w.below(3));
      if (before + after == 0) return false;
      return made(fmt::format("pad({}, {} = ({}, {}), value = 0.5)", x.name, old, before, after),
                  w.derived("p", fmt::format("{} + {}", old, before + after), n + before + after));
    }
    case 2: {
      const RandomValue y = w.like(x);
      if (promoted(x.dtype, y.dtype) != x.dtype) return false;
      return made(fmt::format("concat({}, {} * 2, {})", x.name, y.name, old), w.derived("t", fmt::format("{} + {}", old, old), 2 * n));
    }
    default:
      w.let(fmt::format("{}[{} = {}]", x.name, old, w.chance(2) ? "0" : "-1"), without(x.axes, old), x.dtype);
      return true;
  }
}

// Sums, means, maxima and convolutions of windows: contiguous, dilated or two apart.
bool window(RandomWriter& w) {
  const RandomValue x = w.with_axis();
  if (!x.found()) return false;
  const std::string old = w.one_of(x.axes);
  const int64_t n = w.size(old), dilation = w.chance(4) ? 2 : 1, taps = w.chance(3) && n > 4 ? 3 : 2, reach = dilation * (taps - 1);
  if (!w.is_declared(old) || n < reach + 2) return false;
  constexpr const char* reductions[] = {"sum", "max", "mean"};
  if (w.chance(4)) {
    const Axes rest = without(x.axes, old);
    w.let(fmt::format("reduce({}, \"{} -> {}\", \"{}\", ky=2)", x.name, list(replaced(x.axes, old, "(2*y + ky)")), list(rest),
                      w.chance(2) ? "sum" : "max"),
          rest, x.dtype);
    return true;
  }
  const std::string shorter = w.derived("s", fmt::format("{} - {}", old, reach), n - reach);
  if (has(x.axes, shorter)) return false;
  const Axes axes = replaced(x.axes, old, shorter);
  const std::string left = list(replaced(x.axes, old, dilation == 1 ? "(y + ky)" : "(y + 2*ky)")), right = list(replaced(x.axes, old, "y"));
  if (w.chance(3)) {
    w.let_as(fmt::format("reduce({}, \"{} -> {}\", \"{}\", ky={})", x.name, left, right, w.one_of(reductions), taps), axes, x.dtype);
    return true;
  }
  // Channels, where another axis is there to be one: from that axis to another.
  const Axes channels = without(x.axes, old);
  const std::string weights = w.fresh("k"), to = w.new_axis(axes);
  if (!channels.empty() && !to.empty() && w.chance(2)) {
    const std::string from = w.one_of(channels);
    if (!w.fits(replaced(axes, from, to))) return false;
    w.line(fmt::format("param {}: f32[tap={} {} {}] ~ normal(0, 0.6)", weights, taps, from, to));
    w.let_as(fmt::format("einsum({}, {}, \"{}, ky {} {} -> {}\")", x.name, weights, left, from, to,
                         list(replaced(replaced(x.axes, old, "y"), from, to))),
             replaced(axes, from, to), promoted(x.dtype, "f32"));
    return true;
  }
  w.line(fmt::format("param {}: f32[tap={}] ~ normal(0, 0.6)", weights, taps));
  w.let_as(fmt::format("einsum({}, {}, \"{}, ky -> {}\")", x.name, weights, left, right), axes, promoted(x.dtype, "f32"));
  return true;
}

constexpr StatementKind kKinds[] = {{"contraction", 8, contraction},
                                    {"chain of products", 5, chain},
                                    {"reduction", 6, reduction},
                                    {"integer reduction", 1, integer_reduction},
                                    {"along an axis", 6, along_axis},
                                    {"rearranged", 2, rearranged},
                                    {"merged", 2, merged},
                                    {"repeated", 1, repeated},
                                    {"stacked", 1, stacked},
                                    {"resized", 3, resized},
                                    {"window", 4, window}};

}  // namespace

// Of an image with as many channels as convolutions have that read windows where they lie; one number is made of it.
void image(RandomWriter& w) {
  const size_t height = 4 + w.below(4), width = 4 + w.below(5), from = 8 + 4 * w.below(3), to = 8 + w.below(13), up = 2 + w.below(2),
               across = 2 + w.below(2);
  const std::string picture = w.fresh("i"), kernel = w.fresh("k"), step = w.chance(4) ? "2*" : "";
  w.line(fmt::format("param {}: f32[pn=2 ph={} pw={} pc={}] ~ normal(0, 0.6)", picture, height, width, from));
  w.line(fmt::format("param {}: f32[up={} on={} pc={} po={}] ~ normal(0, 0.2)", kernel, up, across, from, to));
  if (w.chance(4)) {  // a transposed one: what falls on one place is added
    w.let(fmt::format("sum(tanh(einsum({}, {}, \"pn ph pw pc, up on pc po -> pn (2*ph + up) ({}pw + on) po\"))) * 0.05", picture, kernel,
                      step),
          {}, "f32");
    return;
  }
  const std::string padded =
      w.chance(2) ? picture : fmt::format("pad({}, ph = ({}, 1), pw = (0, {}))", picture, w.below(2), 1 + w.below(2));
  w.let(fmt::format("sum(tanh(einsum({}, {}, \"pn ({}py + up) ({}px + on) pc, up on pc po -> pn py px po\"))) * 0.05", padded, kernel, step,
                    step),
        {}, "f32");
}

std::span<const StatementKind> axis_statements() { return kKinds; }

}  // namespace einc
