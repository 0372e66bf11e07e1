// SPDX-License-Identifier: Apache-2.0
// Statements of random programs that keep something from one run to the next: averages, caches, counters.
#include "tests/fuzz/random_writer.h"

namespace einc {
namespace {

bool read_and_updated(RandomWriter& w) {
  const RandomValue x = w.with_axis();
  if (!x.found()) return false;
  const RandomValue s = w.state(x.axes, x.dtype);
  constexpr const char* updates[] = {"{0} * 0.9 + tanh({1})", "max({0}, {1})", "{1} * {0} + 0.5", "{0} + 0.1 * ({1} - {0})"};
  w.line(fmt::format("{} <- {}", s.name, fmt::format(fmt::runtime(w.one_of(updates)), s.name, x.name)));
  w.let(fmt::format("{} * {}", x.name, w.chance(3) ? fmt::format("updated({})", s.name) : s.name), x.axes, x.dtype);
  return true;
}

// Statistics of a batch and their moving average, as of batch norm.
bool running_average(RandomWriter& w) {
  const RandomValue x = w.with_axis();
  if (!x.found()) return false;
  const std::string axis = w.one_of(x.axes);
  const Axes kept = without(x.axes, axis);
  const RandomValue s = w.state(kept, x.dtype), m = w.let(fmt::format("mean({}, {})", x.name, axis), kept, x.dtype);
  w.line(fmt::format("{0} <- 0.9 * {0} + 0.1 * {1}", s.name, m.name));
  w.let(fmt::format("{0} * rsqrt(var({1}, {2}) + 0.01) - {3}", x.name, x.name, axis, w.chance(2) ? m.name : s.name), x.axes, x.dtype);
  return true;
}

// One place of a cache is written and all of it read.
bool cache(RandomWriter& w) {
  const RandomValue x = w.with_axis();
  if (!x.found()) return false;
  const std::string axis = w.one_of(x.axes);
  const RandomValue s = w.state(x.axes, x.dtype), at = w.positions(axis, {});
  w.line(fmt::format("{}[{} = {}] <- sum({}, {}) * 0.5", s.name, axis, at.name, x.name, axis));
  const char* read = w.chance(2) ? "{0} * {1}" : "{0} + tanh(updated({1}))";
  w.let(fmt::format(fmt::runtime(read), x.name, s.name), x.axes, x.dtype);
  return true;
}

bool counter(RandomWriter& w) {
  const RandomValue s = w.state({}, w.chance(2) ? "f32" : "i32"), x = w.any();
  w.line(s.dtype == "i32" ? fmt::format("{0} <- {0} + 1", s.name) : fmt::format("{0} <- {0} * 0.5 + mean({1})", s.name, x.name));
  w.let(fmt::format("{} * cos({} * 0.5)", x.name, s.name), x.axes, promoted(x.dtype, "f32"));
  return true;
}

// Two states take each other's values.
bool exchanged(RandomWriter& w) {
  const RandomValue x = w.with_axis();
  if (!x.found()) return false;
  const RandomValue s = w.state(x.axes, x.dtype), t = w.state(x.axes, x.dtype);
  w.line(fmt::format("{} <- {} * 0.5 + {}", s.name, t.name, x.name));
  w.line(fmt::format("{} <- {}", t.name, s.name));
  w.let(fmt::format("{} * {} - {}", x.name, s.name, t.name), x.axes, x.dtype);
  return true;
}

// Statistics that a training step takes from the batch and keeps, and that inference reads; or any other choice between two values.
bool while_training(RandomWriter& w) {
  const RandomValue x = w.with_axis();
  if (!x.found()) return false;
  const std::string y = w.fresh("v");
  if (w.chance(2)) {
    const std::string axis = w.one_of(x.axes);
    const RandomValue s = w.state(without(x.axes, axis), x.dtype);
    w.line(fmt::format("if {0} {{ {1} = {2} - mean({2}, {3}); {4} <- 0.5 * {4} + 0.5 * mean({2}, {3}) }} else {{ {1} = {2} - {4} }}",
                       w.chance(3) ? "training or a < 1" : "training", y, x.name, axis, s.name));
  } else {
    const RandomValue made = w.param(x.axes), p = made.dtype == x.dtype ? made : x;  // one type in both branches
    w.line(fmt::format("{1} = tanh({0})", x.name, y));
    constexpr const char* choices[] = {"if not training {{ {0} = {0} * {1} }}",
                                       "if training {{ for i in 2 {{ {0} = {0} * 0.5 + {1} }} }} else {{ {0} = {0} + {1} }}",
                                       "if a > 0 and training {{ {0} = {1} - {0} }} else if a < 1 {{ {0} = {1} }}"};
    w.line(fmt::format(fmt::runtime(w.one_of(choices)), y, p.name));
  }
  w.let(fmt::format("{} * 1.5", y), x.axes, x.dtype);
  return true;
}

constexpr StatementKind kStateKinds[] = {{"read and updated", 2, read_and_updated},
                                         {"running average", 1, running_average},
                                         {"cache", 1, cache},
                                         {"counter", 1, counter},
                                         {"exchanged", 1, exchanged},
                                         {"while training", 1, while_training}};

}  // namespace

std::span<const StatementKind> state_statements() { return kStateKinds; }

}  // namespace einc
