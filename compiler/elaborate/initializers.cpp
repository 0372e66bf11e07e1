// SPDX-License-Identifier: Apache-2.0
#include "compiler/elaborate/initializers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "compiler/elaborate/arguments.h"
#include "compiler/elaborate/numbers.h"
#include "compiler/symbolic/order.h"
#include "dsl/near_name.h"

namespace einc {
namespace {

enum class Family : uint8_t { zeros, ones, constant, normal, uniform, trunc_normal, xavier };

struct Parameter {
  std::string_view name;
  std::optional<double> otherwise;  // empty: must be given
};
struct Row {
  std::string_view name;
  Family family;
  std::vector<Parameter> parameters;
  std::string_view usage;
};

const std::array<Row, 7>& rows() {
  static const std::array<Row, 7> table{{
      {"zeros", Family::zeros, {}, "`zeros`"},
      {"ones", Family::ones, {}, "`ones`"},
      {"constant", Family::constant, {{"value", {}}}, "`constant(0.5)`"},
      {"normal", Family::normal, {{"mean", 0}, {"std", 1}}, "`normal(mean = 0, std = 0.02)`"},
      {"uniform", Family::uniform, {{"lo", 0}, {"hi", 1}}, "`uniform(lo = -0.1, hi = 0.1)`"},
      {"trunc_normal",
       Family::trunc_normal,
       {{"std", 1}, {"lo", -2}, {"hi", 2}, {"mean", 0}},
       "`trunc_normal(std = 0.02, lo = -0.04, hi = 0.04)`"},
      {"xavier", Family::xavier, {{"fan_in", {}}, {"fan_out", 0}}, "`xavier(fan_in = d)` or `xavier(fan_in = d, fan_out = k)`"},
  }};
  return table;
}

// A value as sign(square) * sqrt(|square|).
using Square = Poly;

// sign(x) * x^2, where the sign is the same for all dims >= 1.
std::optional<Square> squared(const Poly& x) {
  if (provably_at_least(x, Poly(0))) return x * x;
  if (provably_at_least(-x, Poly(0))) return -(x * x);
  return std::nullopt;
}

std::optional<Poly> exact_value(const ScalarValue& value) {
  if (const Poly* poly = std::get_if<Poly>(&value)) return *poly;
  if (const auto rational = constant_rational(Number{value, false})) return Poly(*rational);
  return std::nullopt;
}

std::optional<Poly> plain_value(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  return node.op == Op::constant ? exact_value(node.as<ConstantAttr>().value) : std::nullopt;
}

// x^e for a value x >= 0 where 2*e is a whole number.
std::optional<Square> half_power(const Poly& x, double twice) {
  if (twice != std::floor(twice) || std::fabs(twice) > 8 || !provably_positive(x)) return std::nullopt;
  return pow(x, static_cast<int>(twice));
}

// Scalar arithmetic that elaboration left to the graph, because a square root of a free dim stands in it.
std::optional<Square> square_of(const Graph& graph, NodeId id, int depth = 0) {
  constexpr int kDepth = 32;
  const Node& node = graph[id];
  if (depth > kDepth) return std::nullopt;
  if (node.op == Op::constant) {
    const auto value = plain_value(graph, id);
    return value ? squared(*value) : std::nullopt;
  }
  if (node.op != Op::map || node.type.rank() != 0) return std::nullopt;
  const MapFn fn = node.as<MapAttr>().fn;
  const auto plain = plain_value(graph, node.operands[0]);
  if (fn == MapFn::sqrt) return plain ? half_power(*plain, 1) : std::nullopt;
  if (fn == MapFn::rsqrt) return plain ? half_power(*plain, -1) : std::nullopt;
  if (fn == MapFn::pow) {
    const auto exponent = plain_value(graph, node.operands[1]);
    const auto number = exponent ? exponent->as_rational() : std::nullopt;
    return plain && number ? half_power(*plain, 2 * number->to_double()) : std::nullopt;
  }
  const auto left = square_of(graph, node.operands[0], depth + 1);
  if (!left) return std::nullopt;
  if (fn == MapFn::neg) return -*left;
  if (fn != MapFn::mul && fn != MapFn::div) return std::nullopt;
  const auto right = square_of(graph, node.operands[1], depth + 1);
  if (!right || (fn == MapFn::div && right->is_zero())) return std::nullopt;
  return fn == MapFn::mul ? *left * *right : divide(*left, *right);  // signs multiply as they should
}

// The arguments of one initialiser, by parameter.
class Reader {
 public:
  Reader(Context& context, const ast::Initializer& initializer, const Row& row) : context_(context), initializer_(initializer), row_(row) {}

  bool assign() {
    given_.assign(row_.parameters.size(), nullptr);
    size_t position = 0;
    for (const ast::Argument& argument : initializer_.arguments) {
      size_t index = position;
      if (argument.name) {
        index = 0;
        while (index < row_.parameters.size() && row_.parameters[index].name != argument.name.name.str()) ++index;
        if (index == row_.parameters.size()) {
          context_.diagnostics()
              .report(Code::builtin_keyword, argument.name.span, row_.name, argument.name.name)
              .hint("write {}", row_.usage);
          return false;
        }
      } else {
        ++position;
      }
      if (index >= row_.parameters.size() || given_[index] != nullptr) return wrong_count();
      given_[index] = &argument;
    }
    for (size_t i = 0; i < given_.size(); ++i)
      if (given_[i] == nullptr && !row_.parameters[i].otherwise) return wrong_count();
    return true;
  }

  bool is_given(size_t parameter) const { return given_[parameter] != nullptr; }

  // Evaluates every argument; afterwards scalar() and form() stand.
  bool evaluate() {
    bool fine = true;
    for (size_t i = 0; i < given_.size(); ++i) fine = read(i) && fine;
    if (!fine) return false;
    if (form_ == InitForm::root)
      for (size_t i = 0; i < given_.size(); ++i) fine = to_root(i) && fine;
    return fine;
  }

  InitForm form() const { return form_; }
  const ScalarValue& scalar(size_t parameter) const { return values_[parameter]; }

  bool complain(size_t parameter, std::string_view wanted) {
    const Span span = given_[parameter] == nullptr ? initializer_.span : given_[parameter]->span;
    context_.diagnostics()
        .report(Code::initializer_argument, span, row_.parameters[parameter].name, row_.name, wanted)
        .hint("write {}", row_.usage);
    return false;
  }

 private:
  bool wrong_count() {
    size_t least = 0;
    for (const Parameter& parameter : row_.parameters) least += parameter.otherwise ? 0 : 1;
    const size_t most = row_.parameters.size();
    const std::string wanted = most == 0       ? "no arguments"
                               : least == most ? fmt::format("{} argument", most)
                                               : fmt::format("{} to {} arguments", least, most);
    context_.diagnostics()
        .report(Code::initializer_arguments, initializer_.span, row_.name, wanted, initializer_.arguments.size())
        .hint("write {}", row_.usage);
    return false;
  }

  bool read(size_t i) {
    values_.resize(given_.size());
    roots_.resize(given_.size());
    if (given_[i] == nullptr) {
      values_[i] = Poly(static_cast<int64_t>(*row_.parameters[i].otherwise));
      return true;
    }
    const auto value = context_.evaluate(*given_[i]->value);
    if (!value) return false;
    if (const Number* number = std::get_if<Number>(&value->data)) {
      values_[i] = number->value;
      return true;
    }
    if (const NodeId* node = std::get_if<NodeId>(&value->data)) roots_[i] = square_of(context_.build().graph(), *node);
    if (!roots_[i]) return complain(i, "made of numbers and dims with + - * / and square roots");
    form_ = InitForm::root;
    return true;
  }

  bool to_root(size_t i) {
    if (!roots_[i])
      if (const auto exact = exact_value(values_[i])) roots_[i] = squared(*exact);
    if (!roots_[i]) return complain(i, "of one sign for all values of its dims");
    values_[i] = *roots_[i];
    return true;
  }

  Context& context_;
  const ast::Initializer& initializer_;
  const Row& row_;
  std::vector<const ast::Argument*> given_;
  std::vector<ScalarValue> values_;
  std::vector<std::optional<Square>> roots_;
  InitForm form_ = InitForm::plain;
};

// False only when it is certain: a formula in free dims may be anything. Signs and order survive the root form.
bool may_be_at_least(const ScalarValue& a, const ScalarValue& b) {
  const auto x = constant_value(Number{a, false}), y = constant_value(Number{b, false});
  return !x || !y || *x >= *y;
}
bool may_be_finite(const ScalarValue& a) {
  const auto x = constant_value(Number{a, false});
  return !x || std::isfinite(*x);
}

// xavier(fan_in): normal with std 1/sqrt(fan_in), cut at three of them. xavier(fan_in, fan_out): uniform within
// sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio, Understanding the difficulty of training deep feedforward networks).
std::optional<Init> xavier(Reader& reader) {
  for (size_t i = 0; i < 2; ++i) {
    if (i == 1 && !reader.is_given(i)) continue;
    const Poly* fan = std::get_if<Poly>(&reader.scalar(i));
    if (fan == nullptr || reader.form() == InitForm::root || !provably_positive(*fan)) {
      reader.complain(i, "a positive integer or a product of dims");
      return std::nullopt;
    }
  }
  const Poly fan_in = std::get<Poly>(reader.scalar(0));
  if (reader.is_given(1)) {
    const Poly bound = divide(Poly(6), fan_in + std::get<Poly>(reader.scalar(1)));
    return Init{InitKind::uniform, InitForm::root, {-bound, bound}};
  }
  const Poly variance = divide(Poly(1), fan_in);
  return Init{InitKind::trunc_normal, InitForm::root, {Poly(0), variance, Poly(-9) * variance, Poly(9) * variance}};
}

std::optional<Init> make(Reader& reader, Family family) {
  const auto init = [&](InitKind kind, std::initializer_list<size_t> order) {
    Init result{kind, reader.form(), {}};
    for (size_t i : order) result.args.push_back(reader.scalar(i));
    return result;
  };
  const ScalarValue zero = Poly(0);
  switch (family) {
    case Family::zeros:
      return Init{};
    case Family::ones:
      return Init{InitKind::ones, InitForm::plain, {}};
    case Family::constant:
      return init(InitKind::constant, {0});
    case Family::normal:
      if (!may_be_at_least(reader.scalar(1), zero)) return reader.complain(1, "0 or more"), std::nullopt;
      return init(InitKind::normal, {0, 1});
    case Family::uniform:
      if (!may_be_at_least(reader.scalar(1), reader.scalar(0))) return reader.complain(1, "at least `lo`"), std::nullopt;
      return init(InitKind::uniform, {0, 1});
    case Family::trunc_normal:
      if (!may_be_at_least(reader.scalar(0), zero)) return reader.complain(0, "0 or more"), std::nullopt;
      if (!may_be_at_least(reader.scalar(2), reader.scalar(1))) return reader.complain(2, "at least `lo`"), std::nullopt;
      return init(InitKind::trunc_normal, {3, 0, 1, 2});
    case Family::xavier:
      return xavier(reader);
  }
  return std::nullopt;
}

// Initial values are made as f64 (runtime/base/init.h): an i64 beyond 2^53 would not arrive.
bool is_exact_in_f64(const ScalarValue& value) {
  const Poly* poly = std::get_if<Poly>(&value);
  const std::optional<int64_t> number = poly ? poly->evaluate_integer({}) : std::nullopt;
  if (!number || *number == 0) return true;
  const uint64_t magnitude = *number < 0 ? uint64_t{0} - static_cast<uint64_t>(*number) : static_cast<uint64_t>(*number);
  return std::bit_width(magnitude) - std::countr_zero(magnitude) <= std::numeric_limits<double>::digits;
}

// Random values are floating; a constant must be a value of the dtype.
bool check_dtype(Context& context, const ast::Initializer& initializer, const Init& init, DType dtype) {
  if (init.kind == InitKind::zeros || init.kind == InitKind::ones) return true;
  if (init.kind == InitKind::constant) {
    if (!is_floating(dtype) && !is_exact_in_f64(init.args[0])) {
      context.diagnostics().report(Code::initializer_argument, initializer.span, "value", "constant", "an integer that f64 holds exactly");
      return false;
    }
    const Number number{init.args[0], false};
    if (init.form == InitForm::root || representable(number, dtype)) return true;
    context.diagnostics().report(Code::number_not_in_dtype, initializer.span, describe(number), to_string(dtype));
    return false;
  }
  if (is_floating(dtype)) return true;
  context.diagnostics()
      .report(Code::floating_expected, initializer.span, initializer.name.name, to_string(dtype))
      .hint("integers start as `zeros`, `ones` or `constant(3)`");
  return false;
}

// Of PyTorch, JAX and Keras, by their formulas.
constexpr std::pair<std::string_view, std::string_view> kForeignInitializers[] = {
    {"glorot_normal", "~ xavier(fan_in = d, fan_out = k)"},
    {"glorot_uniform", "~ uniform(-sqrt(6/(d + k)), sqrt(6/(d + k)))"},
    {"he_normal", "~ normal(std = sqrt(2/d)), d being the fan-in"},
    {"he_uniform", "~ uniform(-sqrt(6/d), sqrt(6/d)), d being the fan-in"},
    {"kaiming_normal", "~ normal(std = sqrt(2/d)), d being the fan-in"},
    {"kaiming_uniform", "~ uniform(-sqrt(6/d), sqrt(6/d)), d being the fan-in"},
    {"lecun_normal", "~ xavier(fan_in = d)"},
    {"orthogonal", "~ xavier(fan_in = d), which keeps the variance as well"},
    {"rand", "~ uniform(0, 1)"},
    {"randn", "~ normal(std = 1)"},
    {"truncated_normal", "~ trunc_normal(std = 0.02)"},
    {"xavier_normal", "~ xavier(fan_in = d, fan_out = k)"},
    {"xavier_uniform", "~ uniform(-sqrt(6/(d + k)), sqrt(6/(d + k)))"},
};

std::string_view foreign_initializer_hint(std::string name) {
  if (name.ends_with('_')) name.pop_back();  // torch.nn.init.normal_
  const auto* found = std::ranges::find_if(kForeignInitializers, [&](const auto& row) { return row.first == name; });
  return found == std::end(kForeignInitializers) ? std::string_view() : found->second;
}

}  // namespace

std::optional<Init> elaborate_initializer(Context& context, const ast::Initializer& initializer, DType dtype) {
  const auto row = std::find_if(rows().begin(), rows().end(), [&](const Row& r) { return r.name == initializer.name.name.str(); });
  if (row == rows().end()) {
    std::vector<std::string_view> names;
    for (const Row& r : rows()) names.push_back(r.name);
    auto report = context.diagnostics().report(Code::unknown_initializer, initializer.name.span, initializer.name.name);
    if (const std::string_view foreign = foreign_initializer_hint(initializer.name.name.str()); !foreign.empty())
      report.hint("write {}", foreign);
    else if (const auto near = near_name(initializer.name.name.str(), names))
      report.did_you_mean(initializer.name.span, *near);
    else
      report.hint("there are {}", fmt::format("{}", fmt::join(names, ", ")));
    return std::nullopt;
  }
  Reader reader(context, initializer, *row);
  if (!reader.assign() || !reader.evaluate()) return std::nullopt;
  if (row->family != Family::constant)
    for (size_t i = 0; i < row->parameters.size(); ++i)
      if (!may_be_finite(reader.scalar(i))) return reader.complain(i, "finite"), std::nullopt;
  auto init = make(reader, row->family);
  if (!init || !check_dtype(context, initializer, *init, dtype)) return std::nullopt;
  return init;
}

}  // namespace einc
