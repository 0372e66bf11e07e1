// SPDX-License-Identifier: Apache-2.0
// pack, unpack and like: several tensors as one along a star axis, and back (einops' pack: each tensor's axes in the place
// of the star are merged to one, then these are joined). The pieces of unpack are shapes: like(x), a size, or a tuple of
// sizes, of which one in all may be -1. Names around the star bind by position and have one size everywhere.
#include <algorithm>
#include <unordered_map>

#include "compiler/elaborate/arguments.h"
#include "compiler/elaborate/pattern_call.h"
#include "compiler/elaborate/show.h"
#include "compiler/elaborate/size_limit.h"
#include "compiler/symbolic/order.h"

namespace einc {

namespace {

// A pattern with a star, and what its names are known to be.
class StarPattern {
 public:
  StarPattern(Context& context, const Pattern& pattern) : context_(context), pattern_(pattern) {
    for (const Atom& atom : pattern.inputs[0].atoms)
      if (atom.kind == AtomKind::star)
        before_ = names_.size();
      else
        names_.push_back(&atom);
    for (const Atom* atom : names_)
      if (const auto size = context.declared_size(atom->name)) known_.try_emplace(atom->name, Known{*size, ""});
  }

  size_t before() const { return before_; }
  size_t after() const { return names_.size() - before_; }
  Span span() const { return pattern_.span; }

  // Binds the names to the axes of a tensor; `stars` is the number of axes in the star's place, or kAnyStars.
  static constexpr size_t kAnyStars = static_cast<size_t>(-1);
  bool bind(const PatternOperand& operand, size_t stars) {
    const std::vector<Axis>& axes = operand.type.axes;
    if (!check_size_terms(context_.diagnostics(), axes, pattern_.span)) return false;
    const size_t wanted = names_.size() + (stars == kAnyStars ? 0 : stars);
    if (stars == kAnyStars ? axes.size() < wanted : axes.size() != wanted) {
      context_.diagnostics()
          .report(Code::pattern_rank, pattern_.span, fmt::format("{}{}", stars == kAnyStars ? "at least " : "", count_of(wanted, "axis")),
                  operand.text, count_of(axes.size(), "axis"), show(context_.build().graph(), operand.type))
          .label(operand.where, "{} is `{}`", operand.text, show(context_.build().graph(), operand.type));
      return false;
    }
    bool fits = true;
    for (size_t i = 0; i < names_.size(); ++i)
      fits = bind_name(*names_[i], operand, i < before_ ? i : axes.size() - names_.size() + i) && fits;
    return fits;
  }

  // The pattern's names around these axes.
  std::vector<Axis> around(const std::vector<Axis>& stars) const {
    std::vector<Axis> axes;
    for (size_t i = 0; i < before_; ++i) axes.push_back(named(i));
    axes.insert(axes.end(), stars.begin(), stars.end());
    for (size_t i = before_; i < names_.size(); ++i) axes.push_back(named(i));
    return axes;
  }

  void introduce() const {
    for (const Atom* atom : names_)
      if (!context_.declared_size(atom->name)) context_.introduce_local(atom->name, known_.at(atom->name).size, atom->span);
  }

 private:
  struct Known {
    Poly size;
    std::string source;
  };

  Axis named(size_t i) const { return {names_[i]->name, known_.at(names_[i]->name).size}; }

  bool bind_name(const Atom& atom, const PatternOperand& operand, size_t position) {
    const Axis& axis = operand.type.axes[position];
    const auto [it, added] = known_.try_emplace(atom.name, Known{axis.size, fmt::format("axis {} of {}", position + 1, operand.text)});
    if (added || it->second.size == axis.size) return true;
    const Graph& graph = context_.build().graph();
    auto report =
        context_.diagnostics().report(Code::pattern_size, atom.span, fmt::format("axis {}", position + 1), operand.text,
                                      show(graph, axis.size), fmt::format("`{}` is {}", atom.name.str(), show(graph, it->second.size)));
    report.label(operand.where, "{} is `{}`", operand.text, show(context_.build().graph(), operand.type));
    if (it->second.source.empty())
      report.hint("a declared name has its declared size, {}: use another name for this axis", context_.describe_size(it->second.size));
    else
      report.hint("`{}` has the size of {}", atom.name, it->second.source);
    return false;
  }

  Context& context_;
  const Pattern& pattern_;
  std::vector<const Atom*> names_;
  size_t before_ = 0;
  std::unordered_map<Name, Known> known_;
};

Poly product_of(const std::vector<Axis>& axes) {
  Poly product(1);
  for (const Axis& axis : axes) product *= axis.size;
  return product;
}

// `counts` of a split or merge that only touches the star's place.
AxisList star_counts(const StarPattern& star, size_t stars) {
  AxisList counts;
  for (size_t i = 0; i < star.before(); ++i) counts.push_back(1);
  counts.push_back(static_cast<int>(stars));
  for (size_t i = 0; i < star.after(); ++i) counts.push_back(1);
  return counts;
}

// ---- the pieces of unpack

struct Piece {
  std::vector<Axis> stars;  // a missing size is 0 until it is known
  Span where;
};

bool is_minus_one(const ast::Expr& expr) {
  const auto* unary = expr.as<ast::Unary>();
  if (unary == nullptr || unary->op != ast::UnaryOp::negate) return false;
  const auto* number = unary->operand->as<ast::Number>();
  return number != nullptr && ast::as_int64(*number) == 1;
}

std::optional<Axis> size_piece(Context& context, const ast::Expr& expr) {
  if (is_minus_one(expr)) return Axis{Name(), Poly()};
  const auto size = context.evaluate_size(expr);
  if (!size) return std::nullopt;
  if (const auto n = size->as_integer(); n && *n < 1) {
    context.diagnostics()
        .report(Code::pattern_pieces, expr.span, fmt::format("a piece of size {}: an axis has at least 1 element", *n))
        .hint("-1 stands for what is left over");
    return std::nullopt;
  }
  return Axis{Name(), *size};
}

std::optional<Piece> like_piece(Context& context, StarPattern& star, const ast::Call& call, Span where, size_t index) {
  if (call.arguments.size() != 1 || call.arguments[0].name) {
    context.diagnostics().report(Code::pattern_call, where, "like", "one tensor: like(x)");
    return std::nullopt;
  }
  const auto tensor = context.evaluate_tensor(*call.arguments[0].value);
  if (!tensor) return std::nullopt;
  const PatternOperand operand = describe_operand(context, *tensor, *call.arguments[0].value, index);
  if (!star.bind(operand, StarPattern::kAnyStars)) return std::nullopt;
  const auto& axes = operand.type.axes;
  return Piece{{axes.begin() + static_cast<std::ptrdiff_t>(star.before()), axes.end() - static_cast<std::ptrdiff_t>(star.after())}, where};
}

std::optional<Piece> read_piece(Context& context, StarPattern& star, const ast::Expr& expr, size_t index) {
  const auto* call = expr.as<ast::Call>();
  if (call != nullptr && call->callee.name == Name("like")) return like_piece(context, star, *call, expr.span, index);
  Piece piece{{}, expr.span};
  const auto add = [&](const ast::Expr& item) {
    const auto axis = size_piece(context, item);
    if (axis) piece.stars.push_back(*axis);
    return axis.has_value();
  };
  if (const auto* tuple = expr.as<ast::Tuple>()) {
    for (const ast::ExprPtr& item : tuple->items)
      if (!add(*item)) return std::nullopt;
    return piece;
  }
  if (!add(expr)) return std::nullopt;
  return piece;
}

// The one missing size, then: all pieces together are the whole axis.
bool complete_pieces(Context& context, std::vector<Piece>& pieces, const Poly& whole, Span where) {
  Axis* missing = nullptr;
  Piece* owner = nullptr;
  Poly rest = whole, known(1);
  for (Piece& piece : pieces) {
    Poly product(1);
    bool open = false;
    for (Axis& axis : piece.stars) {
      if (!axis.size.is_zero()) {
        product *= axis.size;
        continue;
      }
      if (missing != nullptr) {
        context.diagnostics()
            .report(Code::pattern_pieces, piece.where, "more than one size is -1")
            .label(owner->where, "the first one")
            .hint("only one can be told from the others");
        return false;
      }
      missing = &axis;
      owner = &piece;
      open = true;
    }
    if (open)
      known = product;
    else
      rest -= product;
  }
  const auto shown = [&](const Poly& size) { return show(context.build().graph(), size); };
  if (missing == nullptr) {
    if (rest.is_zero()) return true;
    context.diagnostics().report(
        Code::pattern_pieces, where,
        fmt::format("the pieces have {} elements together, the packed axis {}", shown(whole - rest), shown(whole)));
    return false;
  }
  Condition enough{ConditionKind::at_least, rest, known, -1, "the piece of size -1"};
  Condition exact{ConditionKind::divides, rest, known, -1, "the piece of size -1"};
  const bool too_few = decide(enough) == Verdict::never;
  if (too_few || decide(exact) == Verdict::never) {
    const auto n = rest.as_integer();
    auto told = context.diagnostics().report(
        Code::pattern_pieces, owner->where,
        too_few && n && *n < 1 ? fmt::format("nothing is left for the size -1: the other pieces take {} of the packed axis' {} elements",
                                             shown(whole - rest), shown(whole))
                               : fmt::format("{} of the packed axis' {} elements are left for this piece, whose other sizes make {}",
                                             shown(rest), shown(whole), shown(known)));
    told.hint(known == Poly(1) ? "an axis has at least 1 element" : "the size -1 is what is left, divided by the piece's other sizes");
    return false;
  }
  if (decide(enough) == Verdict::depends) context.require(std::move(enough), where);
  if (decide(exact) == Verdict::depends) context.require(std::move(exact), where);
  missing->size = divide(rest, known);
  return true;
}

bool refuse_sizes(Context& context, const PatternCall& call) {
  for (const GivenSize& g : call.given) context.diagnostics().report(Code::pattern_unused_size, g.where, g.name);
  return call.given.empty();
}

}  // namespace

std::optional<Value> elaborate_pack(Context& context, const ast::Call& call) {
  const auto arguments = read_pattern_call(context, call, PatternOp::pack);
  if (!arguments || !refuse_sizes(context, *arguments)) return std::nullopt;
  StarPattern star(context, *arguments->pattern);
  const auto fits = [&](const PatternOperand& operand) { return star.bind(operand, StarPattern::kAnyStars); };
  if (!std::all_of(arguments->operands.begin(), arguments->operands.end(), fits) ||
      !check_rank(context, star.around({}).size() + 1, arguments->span))
    return std::nullopt;
  star.introduce();

  Builder& build = context.build();
  DType dtype = arguments->operands[0].type.dtype;
  for (const PatternOperand& operand : arguments->operands) dtype = promote(dtype, operand.type.dtype);
  std::vector<NodeId> parts;
  for (size_t t = 0; t < arguments->tensors.size(); ++t) {
    const std::vector<Axis>& axes = arguments->operands[t].type.axes;
    const std::vector<Axis> stars(axes.begin() + static_cast<std::ptrdiff_t>(star.before()),
                                  axes.end() - static_cast<std::ptrdiff_t>(star.after()));
    NodeId part = arguments->tensors[t];
    if (arguments->operands[t].type.dtype != dtype) part = build.cast(part, dtype);
    const std::vector<Axis> merged = star.around({Axis{Name(), product_of(stars)}});
    parts.push_back(stars.size() == 1 ? build.rename(part, merged) : build.merge(part, star_counts(star, stars.size()), merged));
  }
  return Value{parts.size() == 1 ? parts[0] : build.concat(parts, static_cast<int>(star.before()))};
}

std::optional<Value> elaborate_unpack(Context& context, const ast::Call& call) {
  const auto arguments = read_pattern_call(context, call, PatternOp::unpack, 1);
  if (!arguments || !refuse_sizes(context, *arguments)) return std::nullopt;
  StarPattern star(context, *arguments->pattern);
  if (!star.bind(arguments->operands[0], 1)) return std::nullopt;
  std::vector<Piece> pieces;
  bool failed = false;
  for (size_t i = 1; i < call.arguments.size() && !call.arguments[i].value->as<ast::String>(); ++i) {
    auto piece = read_piece(context, star, *call.arguments[i].value, i);
    failed = failed || !piece || !check_rank(context, star.around(piece->stars).size(), arguments->span);
    if (piece) pieces.push_back(std::move(*piece));
  }
  if (failed) return std::nullopt;
  if (pieces.empty()) {
    context.diagnostics().report(Code::pattern_call, arguments->span, "unpack", "the pieces' shapes: unpack(p, like(a), like(b), \"* c\")");
    return std::nullopt;
  }
  const auto fits = [&](const Piece& piece) { return check_size_terms(context.diagnostics(), piece.stars, piece.where); };
  if (!std::all_of(pieces.begin(), pieces.end(), fits)) return std::nullopt;
  const int axis = static_cast<int>(star.before());
  if (!complete_pieces(context, pieces, arguments->operands[0].type.axis(axis).size, arguments->span)) return std::nullopt;
  star.introduce();

  Builder& build = context.build();
  Tuple result;
  Poly start;
  for (const Piece& piece : pieces) {
    const Poly size = product_of(piece.stars);
    const NodeId part = pieces.size() == 1 ? arguments->tensors[0] : build.slice(arguments->tensors[0], axis, start, size);
    const std::vector<Axis> axes = star.around(piece.stars);
    result.items.push_back(
        Value{piece.stars.size() == 1 ? build.rename(part, axes) : build.split(part, star_counts(star, piece.stars.size()), axes)});
    start += size;
  }
  if (result.items.size() == 1) return result.items[0];
  return Value{std::move(result)};
}

std::optional<Value> elaborate_like(Context& context, const ast::Call& call) {
  context.diagnostics()
      .report(Code::pattern_pieces, call.callee.span, "`like` is allowed only among the pieces of unpack")
      .hint("as in unpack(p, like(a), like(b), \"* c\")");
  return std::nullopt;
}

}  // namespace einc
