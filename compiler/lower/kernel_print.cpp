// SPDX-License-Identifier: Apache-2.0
// The text of a kernel: buffers, then each stage with its values. It holds all that code generation reads and no names,
// so equal texts are equal code.
#include <fmt/format.h>

#include "compiler/lower/kernel_names.h"

namespace einc {
namespace {

std::string text_of(const Subscript& index) {
  std::string text;
  auto append = [&](const std::string& term, int64_t c) {
    if (!text.empty()) text += " + ";
    text += c == 1 ? term : fmt::format("{}*{}", c, term);
  };
  for (const Affine::Term& t : index.affine.terms) append(fmt::format("a{}", t.axis), t.coefficient);
  for (const Subscript::Dynamic& d : index.dynamic) append(fmt::format("v{}", d.value), d.coefficient);
  if (index.affine.constant != 0 || text.empty()) text += fmt::format("{}{}", text.empty() ? "" : " + ", index.affine.constant);
  return text;
}

std::string operands(const Scalar& v) {
  std::string text;
  for (ValueId x : v.operands) text += fmt::format("{}v{}", text.empty() ? "" : ", ", x);
  return text;
}

std::string expression(const Scalar& v) {
  switch (v.kind) {
    case ScalarKind::constant:
      return is_floating(v.dtype) ? fmt::format("{:a}", v.real) : std::to_string(v.integer);
    case ScalarKind::index:
      return fmt::format("index {}", text_of(v.index));
    case ScalarKind::quotient:
      return fmt::format("{} div {}", operands(v), v.integer);
    case ScalarKind::remainder:
      return fmt::format("{} mod {}", operands(v), v.integer);
    case ScalarKind::load:
      return fmt::format("b{}[{}]", v.slot, text_of(v.index));
    case ScalarKind::checked:
      return fmt::format("check {} < {} site {} [{}]", operands(v), v.integer, v.slot, text_of(v.index));
    case ScalarKind::map:
      return fmt::format("{}({})", to_string(v.fn), operands(v));
    case ScalarKind::cast:
      return fmt::format("cast({})", operands(v));
    case ScalarKind::random:
      return fmt::format("random {} stream {} keep {:a} [{}]", to_string(v.random), v.slot, v.real, text_of(v.index));
    case ScalarKind::in_range:
      return "in_range";
    case ScalarKind::reduction:
      return fmt::format("r{}", v.slot);
    case ScalarKind::running:
      return fmt::format("running r{}", v.slot);
  }
  return "";
}

std::string axis_list(const std::vector<AxisId>& axes) {
  std::string text;
  for (AxisId a : axes) text += fmt::format("{}a{}", text.empty() ? "" : " ", a);
  return text;
}

std::string_view name_of(StoreMode mode) {
  switch (mode) {
    case StoreMode::set:
      return "=";
    case StoreMode::add:
      return "+=";
    case StoreMode::sum:
      return "= sum of";
    case StoreMode::max:
      return "max=";
    case StoreMode::min:
      return "min=";
  }
  return "";
}

std::string text_of(const Store& s) { return fmt::format("  b{}[{}] {} v{}\n", s.buffer, text_of(s.index), name_of(s.mode), s.value); }

std::string text_of(const SoftmaxAttention& s) {
  std::string text = fmt::format("softmax scale {:a}{}", s.scale, s.causal ? " causal" : "");
  if (s.log_sums) text += fmt::format(" log_sums b{}", *s.log_sums);
  if (s.deltas) text += fmt::format(" deltas b{}", *s.deltas);
  return text + "\n";
}

std::string text_of(const Attention& a, const Kernel& kernel) {
  std::string text = fmt::format("attention batch {} turns {} row a{} key a{} in blocks of {} rows and {} keys\n", axis_list(a.batch),
                                 axis_list(a.turns), a.row, a.key, a.block_rows, a.block_keys);
  for (const KeyBound& b : a.bounds) {
    Subscript limit(Affine::of_axis(a.row, b.factor) + Affine{b.limit, {}});
    if (b.base != kNoValue) limit = limit + Subscript::of_value(b.base);
    text += fmt::format("  keys a{} {} {}\n", a.key, b.side == BoundSide::least ? ">=" : "<=", text_of(limit));
  }
  if (a.softmax) text += text_of(*a.softmax);
  for (const AttentionStep& step : a.steps) {
    const Accumulation& r = kernel.reductions[step.reduction];
    text += fmt::format("{} over {}{}{}", name_of(step.part), axis_list(step.over), step.free.empty() ? "" : " for ", axis_list(step.free));
    if (step.pair != PairValue::other) text += fmt::format(" of {}", name_of(step.pair));
    text += fmt::format("\n  r{}: {} = {} v{}", step.reduction, to_string(r.dtype), name_of(r.fold), r.value);
    text += step.left == kNoValue ? "\n" : fmt::format(" = v{} * v{}\n", step.left, step.right);
    for (const Store& s : step.stores) text += text_of(s);
  }
  return text;
}

}  // namespace

std::string to_string(const Kernel& kernel) {
  std::string text = "axes";
  for (size_t a = 0; a < kernel.axes.size(); ++a) text += fmt::format(" a{}={}", a, kernel.axes[a].extent);
  text += fmt::format("\nouter {}\n", axis_list(kernel.outer));
  if (kernel.sequence) text += fmt::format("sequence a{}\n", *kernel.sequence);
  if (kernel.part) text += fmt::format("part a{}\n", *kernel.part);
  for (size_t b = 0; b < kernel.buffers.size(); ++b)
    text +=
        fmt::format("b{}: {} {}[{}]\n", b, name_of(kernel.buffers[b].access), to_string(kernel.buffers[b].dtype), kernel.buffers[b].count);
  for (size_t i = 0; i < kernel.values.size(); ++i) {
    const Scalar& v = kernel.values[i];
    text += fmt::format("v{}: {} = {}", i, to_string(v.dtype), expression(v));
    for (const Range& g : v.guards) text += fmt::format(" if {} <= {} < {}", g.lower, text_of(g.index), g.upper);
    text += '\n';
  }
  for (const Stage& stage : kernel.stages) {
    text += fmt::format("{}stage {}\n", stage.ordered ? "ordered " : "", axis_list(stage.axes));
    for (uint16_t r : stage.reductions) {
      const Accumulation& x = kernel.reductions[r];
      text += fmt::format("  r{}: {} = {} v{}", r, to_string(x.dtype), name_of(x.fold), x.value);
      text += x.position == kNoValue ? "\n" : fmt::format(" at v{}\n", x.position);
    }
    for (const Store& s : stage.stores) text += text_of(s);
  }
  if (kernel.collective) text += "collective\n";
  if (kernel.attention) text += text_of(*kernel.attention, kernel);
  if (const auto& c = kernel.contraction) {
    text += fmt::format("contraction r{} = v{} * v{} batch {} rows {} columns {} depth {}\n", c->reduction, c->left, c->right,
                        axis_list(c->batch), axis_list(c->rows), axis_list(c->columns), axis_list(c->depth));
    for (const PaddedAxis& p : c->padded)
      text += fmt::format("padded beyond {}: {}*(row div {} mod {}) + {}*(depth div {} mod {}) + {}\n", p.size, p.step, p.row_apart,
                          p.places, p.dilation, p.depth_apart, p.elements, p.first);
  }
  return text;
}

}  // namespace einc
