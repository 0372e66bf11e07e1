// SPDX-License-Identifier: Apache-2.0
// Recurrences of random programs: carries of several kinds, what iterations collect, scans in each other.
#include "tests/fuzz/random_writer.h"

namespace einc {
namespace {

// One scan while it is written: over an axis of x, whose iterations read elements of it, or over an axis of its own.
struct ScanText {
  RandomValue x;
  std::string time;
  bool sliced = false;
  Axes axes;  // of an iteration's values
  std::string dtype;
  std::string index, element;
  std::string before, body, after;  // lines

  void declare(const std::string& line) { before += line + "\n"; }
  void run(const std::string& line) { body += "  " + line + "\n"; }
};

bool is_scannable(const RandomWriter& w, const std::string& axis) { return w.is_declared(axis) && w.size(axis) <= 5; }

ScanText begin(RandomWriter& w, const RandomValue& x) {
  ScanText s;
  s.x = x;
  s.time = w.one_of(x.axes);
  s.sliced = x.axes.size() > 1 && is_scannable(w, s.time) && !w.chance(4);
  s.axes = s.sliced ? without(x.axes, s.time) : x.axes;
  s.dtype = promoted(x.dtype, "f32");
  s.index = w.fresh("i");
  if (!s.sliced) {
    const int64_t length = 2 + static_cast<int64_t>(w.below(3));
    s.time = w.derived("l", fmt::format("{}", length), length);
  }
  if (!s.sliced && has(x.axes, s.time)) s.axes.clear();  // given up by the caller
  s.element = s.sliced ? fmt::format("{}[{} = {}]", x.name, s.time, s.index) : x.name;
  return s;
}

// What the carry `h` becomes. Products keep its axes; what is chosen by the index or drawn anew is in some.
std::string next_of(RandomWriter& w, ScanText& s, const std::string& h) {
  const std::string axis = w.one_of(s.axes);
  switch (w.below(7)) {
    case 0: {
      const std::string own = w.fresh("w"), n = w.fresh("n");
      s.declare(fmt::format("param {}: f32[{} z={}] ~ normal(0, 0.5)", own, axis, axis));
      s.run(fmt::format("{}: [{}] = einsum({}, {}, \"{}, {} z -> {}\")", n, list(s.axes), h, own, list(s.axes), axis,
                        list(replaced(s.axes, axis, "z"))));
      return fmt::format("tanh({} + {})", n, s.element);
    }
    case 1: {
      const std::string own = w.fresh("w");
      const std::string line = fmt::format("param {}: f32[{}] ~ normal(0, 0.5)", own, axis);
      w.chance(2) ? s.declare(line) : s.run(line);
      return fmt::format("{} * sigmoid({} * {}) + 0.5 * tanh({})", h, s.element, own, s.element);
    }
    case 2:
      return fmt::format("where({} < {}, {} * 0.5 + {}, tanh({}))", s.index, 1 + w.below(2), h, s.element, h);
    case 3:
      return fmt::format("dropout({}, 0.3) * 0.9 + {}", h, s.element);
    case 4:
      return fmt::format("softmax({} + {}, {}) + 0.3 * {}", h, s.element, axis, h);
    case 5:
      return fmt::format("({} - mean({}, {})) * 0.7 + {} * sin({})", h, h, axis, s.element, h);
    default:
      return fmt::format("0.6 * {} + {}", h, s.element);
  }
}

// A value before the scan: a number, a state or what the program has made.
std::string first_of(RandomWriter& w, ScanText& s) {
  const std::string h = w.fresh("h");
  const size_t kind = w.below(3);
  if (kind == 0) {
    s.declare(fmt::format("{} = {}", h, w.chance(2) ? "0" : "0.5"));
  } else if (kind == 1) {
    const RandomValue state = w.state(s.axes, "f32");
    s.declare(fmt::format("{} = {}", h, s.dtype == "f32" ? state.name : fmt::format("cast({}, {})", state.name, s.dtype)));
    if (w.chance(2)) s.after = fmt::format("{} <- {}", state.name, s.dtype == "f32" ? h : fmt::format("cast({}, f32)", h));
  } else {
    const RandomValue own = w.param(s.axes);
    s.declare(fmt::format("{} = cast({}, {})", h, own.name, s.dtype));
  }
  return h;
}

bool scanned(RandomWriter& w) {
  const RandomValue x = w.with_axis();
  if (!x.found()) return false;
  ScanText s = begin(w, x);
  if (s.axes.empty() || has(s.axes, s.time)) return false;
  const Axes stacked = [&] {
    Axes axes{s.time};
    axes.insert(axes.end(), s.axes.begin(), s.axes.end());
    return axes;
  }();
  const std::string h = first_of(w, s), next = next_of(w, s, h), type = fmt::format("{}[{}]", s.dtype, list(s.axes));
  // Under a policy the elements of an iteration have its dtype; the carry keeps its own.
  s.run(fmt::format("{}: {} = cast({}, {})", h, type, next, s.dtype));
  const bool counts = w.chance(4), collects = w.fits(stacked) && w.chance(2);
  const std::string count = w.fresh("c"), sums = w.fresh("s"), all = w.fresh("y");
  if (counts) {
    s.declare(fmt::format("{} = 0", count));
    s.declare(fmt::format("{} = 0.5", sums));
    s.run(fmt::format("{0} = {0} + {1} * 2 + 1", count, s.index));
    s.run(fmt::format("{0} = 0.5 * {0} + mean({1}) * 0.1", sums, h));
  }
  if (collects) s.run(fmt::format("collect {} = {} * 0.5 + {}", all, h, s.element));
  if (!s.before.empty()) s.before.pop_back();
  if (!s.before.empty()) w.line(s.before);
  const std::string saved = w.chance(3) ? fmt::format(", save every {}", 1 + w.below(3)) : "";
  w.line(fmt::format("scan {} in {}{} {{\n{}}}", s.index, w.chance(3) ? fmt::format("reversed({})", s.time) : s.time, saved, s.body));
  w.let(h, s.axes, s.dtype);
  if (collects) w.let(all, stacked, s.dtype);
  if (counts) w.let(fmt::format("{} * (1 + {}) + 0.01 * cast({}, f32)", h, sums, count), s.axes, s.dtype);
  if (!s.after.empty()) w.line(s.after);
  return true;
}

// A scan of rows inside a scan of columns, both over elements of one value.
bool scanned_twice(RandomWriter& w) {
  const RandomValue x = w.with_axis();
  if (!x.found() || x.axes.size() < 2 || !is_scannable(w, x.axes[0]) || !is_scannable(w, x.axes[1])) return false;
  const Axes axes = without(without(x.axes, x.axes[0]), x.axes[1]);
  const std::string i = w.fresh("i"), j = w.fresh("j"), h = w.fresh("h"), last = w.fresh("y"), dtype = promoted(x.dtype, "f32");
  const RandomValue own = w.param({});
  w.line(fmt::format("{} = 0", h));
  w.line(
      fmt::format("scan {} in {} {{\n  scan {} in {} {{\n    {}: {}[{}] = cast(tanh({} * {} + {}[{} = {}, {} = {}]), {})\n  }}\n  "
                  "collect {} = {} * {}\n}}",
                  i, x.axes[0], j, x.axes[1], h, dtype, list(axes), h, own.name, x.name, x.axes[0], i, x.axes[1], j, dtype, last, h,
                  w.chance(2) ? h : "0.5"));
  w.let(h, axes, dtype);
  Axes stacked{x.axes[0]};
  stacked.insert(stacked.end(), axes.begin(), axes.end());
  w.let(last, stacked, dtype);
  return true;
}

constexpr StatementKind kScanKinds[] = {{"scanned", 5, scanned}, {"scanned twice", 1, scanned_twice}};

}  // namespace

std::span<const StatementKind> scan_statements() { return kScanKinds; }

}  // namespace einc
