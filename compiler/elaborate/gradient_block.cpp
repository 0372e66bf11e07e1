// SPDX-License-Identifier: Apache-2.0
// `fn f(x, w) { ... return y } gradient(dy) { ... return dx, dw, p = dp }`: elaborated where the fn is called, behind its body, with
// placeholders for the cotangents (autodiff/custom_gradients.h). The block sees the body's names; it returns a gradient for each
// floating argument in order, and by name for each param that the results read.
#include <algorithm>

#include "compiler/elaborate/elaborator.h"
#include "compiler/elaborate/indexing.h"
#include "compiler/elaborate/show.h"

namespace einc {
namespace {

void add_floating(const Builder& build, const Value& value, std::vector<NodeId>& out) {
  if (const auto* tuple = std::get_if<Tuple>(&value.data)) {
    for (const Value& item : tuple->items) add_floating(build, item, out);
  } else if (const NodeId* node = std::get_if<NodeId>(&value.data); node && is_floating(build.type(*node).dtype)) {
    out.push_back(*node);
  }
}

bool is_trained(const Node& node) { return node.op == Op::param && !node.as<ParamAttr>().frozen; }

}  // namespace

// Params that the results read, behind the arguments. False where one has no name here, so that no gradient can be returned for it.
bool Elaborator::collect_inputs(const Frame& callee, const std::vector<BoundArgument>& arguments, uint32_t first_body_node,
                                std::span<const NodeId> results, std::vector<NodeId>& inputs) {
  for (const BoundArgument& argument : arguments)
    if (argument.value) add_floating(build_, *argument.value, inputs);
  std::vector<bool> read(graph_.size(), false);
  for (const NodeId result : results) read[result.index] = true;
  for (uint32_t i = graph_.size(); i-- > first_body_node;)
    if (read[i])
      for (const NodeId operand : graph_.nodes[i].operands) read[operand.index] = true;
  for (uint32_t i = first_body_node; i < graph_.size(); ++i) {
    const Node& node = graph_.nodes[i];
    if (!read[i] || !is_trained(node)) continue;
    const std::string path = node.as<ParamAttr>().path.str();
    const Binding* bound = callee.outermost.find(Name(path.substr(path.rfind('.') + 1)));
    const NodeId* named = bound && bound->value ? std::get_if<NodeId>(&bound->value->data) : nullptr;
    if (!named || *named != NodeId{i}) {
      diagnostics_.report(Code::gradient_effect, callee.fn->gradient->span, "has no name for param `" + path + "`, which its fn reads")
          .hint("declare the param in the fn itself, or pass it as an argument");
      return false;
    }
    inputs.push_back(NodeId{i});
  }
  return true;
}

// With the input's axes in its order, and its dtype. A number is the same everywhere.
std::optional<NodeId> Elaborator::fit_gradient(const Value& value, NodeId input, std::string_view what, Span span) {
  const Type type = build_.type(input);
  const bool number = std::holds_alternative<Number>(value.data);
  const NodeId* node = std::get_if<NodeId>(&value.data);
  const auto names_of = [](const Type& t) {
    std::vector<std::string> names;
    for (const Axis& axis : t.axes) names.push_back(axis.name.str());
    std::ranges::sort(names);
    return names;
  };
  const bool wrong = !number && (!node || !is_floating(build_.type(*node).dtype) || names_of(build_.type(*node)) != names_of(type));
  if (wrong) {
    diagnostics_.report(Code::gradient_axes, span, what, show(type), node ? show(build_.type(*node)) : "a tuple");
    return std::nullopt;
  }
  const auto tensor = to_tensor(*this, value, type.dtype, span);
  if (!tensor) return std::nullopt;
  const auto fitted = fit_axes(*this, *tensor, type.axes, span);
  return fitted && build_.type(*fitted).dtype != type.dtype ? build_.cast(*fitted, type.dtype) : fitted;
}

std::optional<Value> Elaborator::with_gradient_block(Frame& callee, const std::vector<BoundArgument>& arguments, uint32_t first_body_node) {
  const ast::GradientBlock& block = *callee.fn->gradient;
  const Name fn = callee.fn->name.name;
  const bool unknown = std::ranges::any_of(arguments, [](const BoundArgument& a) { return a.state == BoundArgument::State::unknown; });
  std::vector<Value> returned;
  if (const auto* tuple = std::get_if<Tuple>(&callee.result->data))
    returned = tuple->items;
  else
    returned = {*callee.result};
  std::vector<NodeId> results;
  for (const Value& value : returned) {
    if (std::holds_alternative<Tuple>(value.data)) {
      diagnostics_.report(Code::several_values, block.span, std::get<Tuple>(value.data).items.size());
      return std::nullopt;
    }
    const auto node = to_tensor_alone(*this, value, block.span);
    if (!node) return std::nullopt;
    results.push_back(*node);
  }
  if (results.size() != block.cotangents.size()) {
    diagnostics_
        .report(Code::cotangent_count, block.span, fn, counted(results.size(), "value"), counted(block.cotangents.size(), "gradient"))
        .hint("gradient(dy): one name for the gradient of each returned value");
    return std::nullopt;
  }
  CustomGradient custom;
  if (!collect_inputs(callee, arguments, first_body_node, results, custom.inputs)) return std::nullopt;
  Scope scope;
  scope.parent = &callee.outermost;
  scope.is_branch = true;
  for (size_t i = 0; i < results.size(); ++i) {
    custom.cotangents.push_back(zeros_like(results[i]));
    scope.bindings.emplace(block.cotangents[i].name,
                           Binding{Value{custom.cotangents.back()}, BindingKind::value, block.cotangents[i].span});
  }
  const Value body_result = *callee.result;
  const size_t updates = graph_.updates.size();
  std::vector<NamedGradient> outer = std::exchange(named_gradients_, {});
  custom.first = graph_.size();
  callee.scope = &scope;
  callee.returned = false;
  callee.result.reset();
  execute(block.body);
  callee.scope = &callee.outermost;
  std::vector<NamedGradient> named = std::exchange(named_gradients_, std::move(outer));
  const std::optional<Value> positional = std::exchange(callee.result, body_result);
  if (graph_.updates.size() != updates) {
    diagnostics_.report(Code::gradient_effect, block.span, "updates no state");
    return std::nullopt;
  }
  for (uint32_t i = custom.first; i < graph_.size(); ++i)
    if (const Op op = graph_.nodes[i].op; op == Op::param || op == Op::state) {
      diagnostics_.report(Code::gradient_effect, block.span, "calls no fn that declares params or states");
      return std::nullopt;
    }
  if (unknown) return body_result;  // a trial (check_fns.cpp): nothing to count
  const size_t params = static_cast<size_t>(
      std::ranges::count_if(custom.inputs, [&](NodeId id) { return id.index >= first_body_node && graph_[id].op == Op::param; }));
  const size_t wanted = custom.inputs.size() - params;
  const auto* tuple = positional ? std::get_if<Tuple>(&positional->data) : nullptr;
  if (tuple == nullptr && callee.returned) return std::nullopt;  // wrong already
  const size_t given = tuple ? tuple->items.size() : 0;
  if (given != wanted) {
    diagnostics_.report(Code::gradient_count, block.span, fn, wanted, given);
    return std::nullopt;
  }
  bool whole = true;
  for (size_t i = 0; i < custom.inputs.size(); ++i) {
    std::optional<NodeId> gradient;
    if (i < wanted) {
      gradient = fit_gradient(tuple->items[i], custom.inputs[i], "argument " + std::to_string(i + 1), block.span);
    } else {
      const std::string path = graph_[custom.inputs[i]].as<ParamAttr>().path.str();
      const Name name(path.substr(path.rfind('.') + 1));
      const auto found = std::ranges::find_if(named, [&](const NamedGradient& n) { return n.param.name == name; });
      if (found == named.end()) {
        diagnostics_.report(Code::gradient_missing, block.span, fn, name).hint("return ..., {} = ...", name);
      } else {
        if (found->value) gradient = fit_gradient(*found->value, custom.inputs[i], "`" + name.str() + "`", found->span);
        named.erase(found);
      }
    }
    whole = whole && gradient;
    if (gradient) custom.gradients.push_back(*gradient);
  }
  for (const NamedGradient& rest : named) {
    const Binding* bound = callee.outermost.find(rest.param.name);
    const NodeId* node = bound && bound->value ? std::get_if<NodeId>(&bound->value->data) : nullptr;
    if (node && graph_[*node].op == Op::param && bound->kind == BindingKind::param) continue;  // one that the results do not read
    diagnostics_.report(Code::gradient_of_unknown, rest.param.span, rest.param.name, fn);
    whole = false;
  }
  custom.last = graph_.size();
  if (!whole) return std::nullopt;
  Tuple hidden;  // identities, one behind the other
  for (const NodeId result : results) {
    custom.results.push_back(build_.permute(result, AxisList::range(build_.type(result).rank())));
    hidden.items.push_back(Value{custom.results.back()});
  }
  if (custom.results.empty()) return body_result;
  custom_gradients_.add(std::move(custom));
  return hidden.items.size() == 1 && !std::holds_alternative<Tuple>(body_result.data) ? hidden.items[0] : Value{std::move(hidden)};
}

}  // namespace einc
