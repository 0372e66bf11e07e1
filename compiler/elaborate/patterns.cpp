// einsum, rearrange, reduce and repeat: solve the pattern, open the operands, sum and multiply, close the output.
#include "compiler/contraction/order.h"
#include "compiler/elaborate/pattern_call.h"
#include "compiler/elaborate/pattern_lower.h"

namespace einc {

namespace {

std::optional<Value> elaborate_einsum(Context& context, const ast::Call& call) {
  const auto arguments = read_pattern_call(context, call, PatternOp::einsum);
  if (!arguments) return std::nullopt;
  if (arguments->tensors.size() > static_cast<size_t>(kMaxContractionOperands)) {
    context.diagnostics().report(Code::einsum_too_many_operands, arguments->span, arguments->tensors.size()).hint("split it into several");
    return std::nullopt;
  }
  const auto pattern = solve_pattern(context, PatternOp::einsum, *arguments->pattern, arguments->operands, arguments->given);
  if (!pattern) return std::nullopt;
  Builder& build = context.build();
  const uint32_t first_own = build.graph().size();
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
  const auto pattern = solve_pattern(context, op, *arguments->pattern, arguments->operands, arguments->given);
  if (!pattern) return std::nullopt;
  Builder& build = context.build();
  const uint32_t first_own = build.graph().size();
  return Value{close_output(build, *pattern, open_operand(build, *pattern, 0, arguments->tensors[0]), first_own)};
}

std::optional<Value> elaborate_rearrange(Context& context, const ast::Call& call) { return elaborate_view(context, call, PatternOp::rearrange); }
std::optional<Value> elaborate_repeat(Context& context, const ast::Call& call) { return elaborate_view(context, call, PatternOp::repeat); }

enum class Mean : uint8_t { no, yes };
struct Reduction {
  ReduceFn fn;
  Mean mean;
};

std::optional<Reduction> read_reduction(Context& context, const ast::Expr& expr) {
  if (expr.kind() == ast::ExprKind::invalid) return std::nullopt;
  const auto* text = expr.as<ast::String>();
  if (text == nullptr) {
    context.diagnostics().report(Code::pattern_call, expr.span, "reduce", "its reduction as a string: \"sum\", \"mean\", \"max\", \"min\", \"prod\", \"any\", \"all\"");
    return std::nullopt;
  }
  if (text->value == "mean") return Reduction{ReduceFn::sum, Mean::yes};
  if (const auto fn = parse_reduce_fn(text->value)) return Reduction{*fn, Mean::no};
  context.diagnostics().report(Code::unknown_reduction, text->contents, text->value).hint("there are sum, mean, max, min, prod, any and all");
  return std::nullopt;
}

// What a reduction takes: any and all take truth values, sums of truth values count, means are real.
NodeId prepare(Builder& build, NodeId x, const Reduction& reduction) {
  const DType dtype = build.type(x).dtype;
  if (reduction.mean == Mean::yes) return is_floating(dtype) ? x : build.cast(x, DType::real);
  if (reduction.fn == ReduceFn::any || reduction.fn == ReduceFn::all)
    return dtype == DType::boolean ? x : build.map(MapFn::not_equal, {x, build.constant(Poly(0), dtype)});
  return dtype == DType::boolean ? build.cast(x, DType::i32) : x;
}

NodeId divide_by_count(Builder& build, const SolvedPattern& pattern, const LabelledTensor& before, const LabelledTensor& after) {
  Poly count(1);
  for (const int label : before.labels)
    if (!after.has(label)) count *= pattern.size(label);
  if (count.is_one()) return after.node;
  const NodeId scale = build.constant(divide(Poly(1), count), build.type(after.node).dtype);
  return build.map(MapFn::mul, {after.node, scale});
}

std::optional<Value> elaborate_reduce(Context& context, const ast::Call& call) {
  const auto arguments = read_pattern_call(context, call, PatternOp::reduce);
  if (!arguments) return std::nullopt;
  const auto reduction = read_reduction(context, *arguments->after[0]);
  const auto pattern = solve_pattern(context, PatternOp::reduce, *arguments->pattern, arguments->operands, arguments->given);
  if (!reduction || !pattern) return std::nullopt;
  Builder& build = context.build();
  const uint32_t first_own = build.graph().size();
  const NodeId x = prepare(build, arguments->tensors[0], *reduction);
  const LabelledTensor opened = open_operand(build, *pattern, 0, x);
  LabelledTensor reduced = reduce_to(build, reduction->fn, opened, pattern->output_labels());
  if (reduction->mean == Mean::yes) reduced.node = divide_by_count(build, *pattern, opened, reduced);
  return Value{close_output(build, *pattern, reduced, first_own)};
}

constexpr Builtin kBuiltins[] = {
    {"einsum", elaborate_einsum}, {"rearrange", elaborate_rearrange}, {"reduce", elaborate_reduce}, {"repeat", elaborate_repeat},
    {"pack", elaborate_pack},     {"unpack", elaborate_unpack},       {"like", elaborate_like},
};

}  // namespace

std::span<const Builtin> pattern_builtins() { return kBuiltins; }

}  // namespace einc
