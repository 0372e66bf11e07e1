// SPDX-License-Identifier: Apache-2.0
// Reductions, running sums, extremes and the softmax family of the interpreter.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "compiler/ir/interpret_ops.h"

namespace einc {
namespace {

template <class T>
bool is_nan(T x) {
  return x != x;
}

double add(double a, double b) { return a + b; }
double multiply(double a, double b) { return a * b; }
int64_t add(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); }
int64_t multiply(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b)); }

// log(e^a + e^b), of infinities too.
double log_add(double a, double b) {
  const double most = is_nan(a) || a > b ? a : b;
  return most + std::log1p(std::exp(a == b ? 0 : -std::fabs(a - b)));
}
int64_t log_add(int64_t, int64_t) { internal_error(__FILE__, __LINE__, "a logarithm of integers"); }

template <class T>
T combine(ReduceFn fn, T a, T b) {
  switch (fn) {
    case ReduceFn::sum:
      return add(a, b);
    case ReduceFn::prod:
      return multiply(a, b);
    case ReduceFn::max:
      return is_nan(a) || a > b ? a : b;
    case ReduceFn::min:
      return is_nan(a) || a < b ? a : b;
    case ReduceFn::any:
      return a != 0 || b != 0;
    case ReduceFn::all:
      return a != 0 && b != 0;
    case ReduceFn::logsumexp:
      return log_add(a, b);
  }
  return a;
}

template <class T>
T identity(ReduceFn fn) {
  using Limits = std::numeric_limits<T>;
  switch (fn) {
    case ReduceFn::sum:
    case ReduceFn::any:
      return 0;
    case ReduceFn::prod:
    case ReduceFn::all:
      return 1;
    case ReduceFn::max:
    case ReduceFn::logsumexp:
      return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    case ReduceFn::min:
      return Limits::has_infinity ? Limits::infinity() : Limits::max();
  }
  return 0;
}

// Strides of the result over the operand's axes: 0 along reduced ones.
std::vector<int64_t> result_strides(const Tensor& in, const AxisList& reduced) {
  std::vector<int64_t> strides(in.shape.size(), 0);
  int64_t step = 1;
  for (size_t i = in.shape.size(); i-- > 0;) {
    if (reduced.contains(static_cast<int>(i))) continue;
    strides[i] = step;
    step *= in.shape[i];
  }
  return strides;
}

template <class T>
void reduce_into(Evaluation& e, const std::vector<T>& in, std::vector<T>& out) {
  const ReduceAttr& attr = e.node.as<ReduceAttr>();
  std::fill(out.begin(), out.end(), identity<T>(attr.fn));
  walk<2>(e.in[0]->shape, {row_major_strides(e.in[0]->shape), result_strides(*e.in[0], attr.axes)}, {},
          [&](const std::array<int64_t, 2>& at) {
            T& total = out[static_cast<size_t>(at[1])];
            total = combine(attr.fn, total, in[static_cast<size_t>(at[0])]);
            ++e.counts.reduction;
          });
}

// Calls visit(start, step, size, line number) for every line of the operand along an axis.
template <class Visit>
void each_line(const Tensor& in, int axis, Visit visit) {
  const auto a = static_cast<size_t>(axis);
  const std::vector<int64_t> strides = row_major_strides(in.shape);
  std::vector<int64_t> starts = in.shape;
  starts[a] = 1;
  int64_t line = 0;
  walk<1>(starts, {strides}, {}, [&](const std::array<int64_t, 1>& at) { visit(at[0], strides[a], in.shape[a], line++); });
}

template <class T>
void scan_into(Evaluation& e, const std::vector<T>& in, std::vector<T>& out) {
  const CumulateAttr& attr = e.node.as<CumulateAttr>();
  each_line(*e.in[0], attr.axis, [&](int64_t start, int64_t step, int64_t size, int64_t) {
    T total = identity<T>(attr.fn);
    for (int64_t i = 0; i < size; ++i) {
      const auto at = static_cast<size_t>(start + (attr.direction == Direction::forward ? i : size - 1 - i) * step);
      total = combine(attr.fn, total, in[at]);
      out[at] = total;
      ++e.counts.reduction;
    }
  });
}

// True when a comes before b among the extremes; NaN comes before every number.
template <class T>
bool precedes(ReduceFn fn, T a, T b) {
  if (is_nan(a) || is_nan(b)) return is_nan(a) && !is_nan(b);
  return fn == ReduceFn::max ? a > b : a < b;
}

template <class T>
void arg_reduce_of(Evaluation& e, const std::vector<T>& in) {
  const ArgReduceAttr& attr = e.node.as<ArgReduceAttr>();
  each_line(*e.in[0], attr.axis, [&](int64_t start, int64_t step, int64_t size, int64_t line) {
    int64_t best = 0;
    for (int64_t i = 0; i < size; ++i) {
      if (precedes(attr.fn, in[static_cast<size_t>(start + i * step)], in[static_cast<size_t>(start + best * step)])) best = i;
      ++e.counts.reduction;
    }
    e.out.ints[static_cast<size_t>(line)] = best;
  });
}

// In the order of a sort: NaN is the greatest.
template <class T>
bool sorts_before(ReduceFn fn, T a, T b) {
  return fn == ReduceFn::max ? precedes(fn, a, b) : precedes(ReduceFn::max, b, a);
}

template <class T>
void top_k_of(Evaluation& e, const std::vector<T>& in) {
  const auto [axis, fn] = e.node.as<TopKAttr>();
  std::vector<int64_t> first_of_line;  // in the result, whose lines are shorter
  each_line(e.out, axis, [&](int64_t start, int64_t, int64_t, int64_t) { first_of_line.push_back(start); });
  const int64_t k = e.out.shape[static_cast<size_t>(axis)];
  const int64_t out_step = row_major_strides(e.out.shape)[static_cast<size_t>(axis)];
  each_line(*e.in[0], axis, [&](int64_t start, int64_t step, int64_t size, int64_t line) {
    EINC_CHECK(k <= size, "top_k_index: {} of {}", k, size);
    std::vector<int64_t> order(static_cast<size_t>(size));
    std::iota(order.begin(), order.end(), 0);
    const auto value = [&](int64_t i) { return in[static_cast<size_t>(start + i * step)]; };
    std::stable_sort(order.begin(), order.end(), [&, fn = fn](int64_t a, int64_t b) { return sorts_before(fn, value(a), value(b)); });
    for (int64_t i = 0; i < size; ++i) {
      if (i < k) e.out.ints[static_cast<size_t>(first_of_line[static_cast<size_t>(line)] + i * out_step)] = order[static_cast<size_t>(i)];
      ++e.counts.reduction;
    }
  });
}

}  // namespace

void evaluate_reduce(Evaluation& e) {
  if (e.in[0]->is_real()) return reduce_into(e, e.in[0]->reals, e.out.reals);
  reduce_into(e, e.in[0]->ints, e.out.ints);
  for (int64_t& x : e.out.ints) x = wrap_integer(e.out.dtype, x);
}

void evaluate_cumulate(Evaluation& e) {
  if (e.in[0]->is_real()) return scan_into(e, e.in[0]->reals, e.out.reals);
  scan_into(e, e.in[0]->ints, e.out.ints);
  for (int64_t& x : e.out.ints) x = wrap_integer(e.out.dtype, x);
}

void evaluate_shift(Evaluation& e) {
  const ShiftAttr& attr = e.node.as<ShiftAttr>();
  EINC_CHECK(attr.mesh < 0, "a shift along the mesh is carried out by several devices");
  const auto move = [&](const auto& x, auto& y) {
    each_line(*e.in[0], attr.axis, [&](int64_t start, int64_t step, int64_t size, int64_t) {
      for (int64_t i = 0; i < size; ++i)
        y[static_cast<size_t>(start + i * step)] = x[static_cast<size_t>(start + (i + attr.by) % size * step)];
    });
  };
  if (e.in[0]->is_real()) return move(e.in[0]->reals, e.out.reals);
  move(e.in[0]->ints, e.out.ints);
}

void evaluate_arg_reduce(Evaluation& e) {
  if (e.in[0]->is_real()) return arg_reduce_of(e, e.in[0]->reals);
  arg_reduce_of(e, e.in[0]->ints);
}

void evaluate_top_k(Evaluation& e) {
  if (e.in[0]->is_real()) return top_k_of(e, e.in[0]->reals);
  top_k_of(e, e.in[0]->ints);
}

// max, sub, exp, sum, div
void evaluate_softmax(Evaluation& e) {
  const std::vector<double>& x = e.in[0]->reals;
  std::vector<double>& y = e.out.reals;
  each_line(*e.in[0], e.node.as<ReduceAttr>().axes[0], [&](int64_t start, int64_t step, int64_t size, int64_t) {
    const auto at = [&](int64_t i) { return static_cast<size_t>(start + i * step); };
    double largest = identity<double>(ReduceFn::max), total = 0;
    for (int64_t i = 0; i < size; ++i) {
      largest = combine(ReduceFn::max, largest, x[at(i)]);
      ++e.counts.reduction;
    }
    for (int64_t i = 0; i < size; ++i) {
      y[at(i)] = std::exp(x[at(i)] - largest);
      e.counts.elementwise += 2;
      ++e.counts.transcendental;
      total += y[at(i)];
      ++e.counts.reduction;
    }
    for (int64_t i = 0; i < size; ++i) {
      y[at(i)] /= total;
      ++e.counts.elementwise;
    }
  });
}

// max, sub, exp, sum, log, add
void evaluate_logsumexp(Evaluation& e) {
  const Tensor& in = *e.in[0];
  const AxisList& axes = e.node.as<ReduceAttr>().axes;
  const std::array<std::vector<int64_t>, 2> strides{row_major_strides(in.shape), result_strides(in, axes)};
  std::vector<double> largest(e.out.reals.size(), identity<double>(ReduceFn::max));
  walk<2>(in.shape, strides, {}, [&](const std::array<int64_t, 2>& at) {
    double& most = largest[static_cast<size_t>(at[1])];
    most = combine(ReduceFn::max, most, in.reals[static_cast<size_t>(at[0])]);
    ++e.counts.reduction;
  });
  for (double& most : largest)
    if (std::isinf(most)) most = 0;  // the logarithm of a row without finite elements is its largest
  walk<2>(in.shape, strides, {}, [&](const std::array<int64_t, 2>& at) {
    const auto o = static_cast<size_t>(at[1]);
    e.out.reals[o] += std::exp(in.reals[static_cast<size_t>(at[0])] - largest[o]);
    e.counts.elementwise += 2;
    ++e.counts.transcendental;
    ++e.counts.reduction;
  });
  for (size_t o = 0; o < largest.size(); ++o) {
    e.out.reals[o] = std::log(e.out.reals[o]) + largest[o];
    e.counts.elementwise += 2;
    ++e.counts.transcendental;
  }
}

}  // namespace einc
