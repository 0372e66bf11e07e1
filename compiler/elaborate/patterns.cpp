// SPDX-License-Identifier: Apache-2.0
// einsum, rearrange, reduce and repeat: solve the pattern, open the operands, sum and multiply, close the output.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "compiler/contraction/order.h"
#include "compiler/elaborate/pattern_call.h"
#include "compiler/elaborate/pattern_lower.h"
#include "compiler/elaborate/reductions.h"
#include "dsl/foreign_functions.h"
#include "dsl/near_name.h"

namespace einc {

namespace {

static_assert(kMaxContractionOperands == static_cast<int>(kMaxEinsumOperands), "the parser's limit is the contraction's");

// Truth values count as 0 and 1 of the other operands' dtype; sums of nothing else are i64, as those of `sum`.
void count_truths(Builder& build, const SolvedPattern& pattern, std::vector<NodeId>& tensors) {
  DType dtype = build.type(tensors[0]).dtype;
  for (const NodeId x : tensors) dtype = promote(dtype, build.type(x).dtype);
  if (dtype == DType::boolean) {
    if (pattern.output_labels().size() == pattern.labels.size()) return;
    dtype = DType::i64;
  }
  for (NodeId& x : tensors)
    if (build.type(x).dtype == DType::boolean) x = build.cast(x, dtype);
}

std::optional<Value> elaborate_einsum(Context& context, const ast::Call& call) {
  auto arguments = read_pattern_call(context, call, PatternOp::einsum);
  if (!arguments) return std::nullopt;
  const auto pattern = solve_pattern(context, *arguments->pattern, arguments->operands, arguments->given);
  if (!pattern) return std::nullopt;
  Builder& build = context.build();
  const uint32_t first_own = build.graph().size();
  count_truths(build, *pattern, arguments->tensors);
  std::vector<LabelledTensor> terms;
  std::vector<std::string> texts;
  for (size_t t = 0; t < arguments->tensors.size(); ++t) {
    terms.push_back(open_operand(build, *pattern, t, arguments->tensors[t]));
    texts.push_back(arguments->term_text(arguments->pattern->inputs[t]));
  }
  const auto product = contract_terms(context, *pattern, std::move(terms), pattern->output_labels(), texts, arguments->span);
  if (!product) return std::nullopt;
  return Value{close_output(build, *pattern, *product, first_own)};
}

// rearrange and repeat: views alone.
std::optional<Value> elaborate_view(Context& context, const ast::Call& call, PatternOp op) {
  const auto arguments = read_pattern_call(context, call, op);
  if (!arguments) return std::nullopt;
  const auto pattern = solve_pattern(context, *arguments->pattern, arguments->operands, arguments->given);
  if (!pattern) return std::nullopt;
  Builder& build = context.build();
  const uint32_t first_own = build.graph().size();
  return Value{close_output(build, *pattern, open_operand(build, *pattern, 0, arguments->tensors[0]), first_own)};
}

std::optional<Value> elaborate_rearrange(Context& context, const ast::Call& call) {
  return elaborate_view(context, call, PatternOp::rearrange);
}
std::optional<Value> elaborate_repeat(Context& context, const ast::Call& call) { return elaborate_view(context, call, PatternOp::repeat); }

std::string reductions_text() {
  std::vector<std::string> quoted;
  for (const std::string_view name : reduction_names()) quoted.push_back(fmt::format("\"{}\"", name));
  const std::string last = std::move(quoted.back());
  quoted.pop_back();
  return fmt::format("there are {} and {}", fmt::join(quoted, ", "), last);
}

std::optional<Reduction> read_reduction(Context& context, const ast::Expr& expr) {
  if (expr.kind() == ast::ExprKind::invalid) return std::nullopt;
  const auto* text = expr.as<ast::String>();
  if (text == nullptr) {
    context.diagnostics()
        .report(Code::pattern_call, expr.span, "reduce", "the name of a reduction behind its pattern")
        .hint("{}", reductions_text());
    return std::nullopt;
  }
  if (const auto reduction = parse_reduction(text->value)) return reduction;
  auto report = context.diagnostics().report(Code::unknown_reduction, text->contents, text->value);
  if (text->value == "avg" || text->value == "average")
    report.hint("did you mean \"mean\"?").replace(text->contents, "mean");
  else if (const std::string foreign = foreign_function_hint(text->value); !foreign.empty())
    report.hint("{}", foreign);
  else if (const auto near = near_name(text->value, reduction_names()))
    report.hint("did you mean \"{}\"?", *near).replace(text->contents, *near);
  else
    report.hint("{}", reductions_text());
  return std::nullopt;
}

// any and all of numbers ask whether they differ from 0, as in einops.
NodeId prepare(Builder& build, Reduction reduction, NodeId x) {
  const DType dtype = build.type(x).dtype;
  if ((reduction != Reduction::any && reduction != Reduction::all) || dtype == DType::boolean) return x;
  return build.map(MapFn::not_equal, {x, build.constant(Poly(0), dtype)});
}

std::optional<Value> elaborate_reduce(Context& context, const ast::Call& call) {
  const auto arguments = read_pattern_call(context, call, PatternOp::reduce);
  if (!arguments) return std::nullopt;
  const auto reduction = read_reduction(context, *arguments->after[0]);
  const auto pattern = solve_pattern(context, *arguments->pattern, arguments->operands, arguments->given);
  if (!reduction || !pattern) return std::nullopt;
  Builder& build = context.build();
  const uint32_t first_own = build.graph().size();
  const LabelledTensor opened = open_operand(build, *pattern, 0, prepare(build, *reduction, arguments->tensors[0]));
  const std::vector<int> kept = pattern->output_labels();
  const LabelledTensor reduced{build_reduction(build, *reduction, opened.node, opened.axes_without(kept)), opened.labels_in(kept)};
  return Value{close_output(build, *pattern, reduced, first_own)};
}

constexpr Builtin kBuiltins[] = {
    {"einsum", elaborate_einsum, "einsum(a, b, ..., \"pa, pb, ... -> out\")", "sums of products, of any number of tensors"},
    {"rearrange", elaborate_rearrange, "rearrange(x, \"p -> q\", h = 8)", "axes permuted, split and merged"},
    {"reduce", elaborate_reduce, "reduce(x, \"p -> q\", \"mean\", k = 2)",
     "what the right lacks is reduced: sum mean max min prod var logsumexp any all"},
    {"repeat", elaborate_repeat, "repeat(x, \"p -> q\", c = 3)", "new axes, along which x is the same"},
    {"pack", elaborate_pack, "pack(a, b, ..., \"* c\")", "several tensors along one axis, the axes in the star's place merged"},
    {"unpack", elaborate_unpack, "unpack(p, like(a), like(b), ..., \"* c\")", "the tensors that were packed"},
    {"like", elaborate_like, "like(x)", "a piece of unpack in the shape of x"},
};

}  // namespace

std::span<const Builtin> pattern_builtins() { return kBuiltins; }

}  // namespace einc
