// SPDX-License-Identifier: Apache-2.0
// rename(x, p = rows): axis p of x under the name rows. Like a padded axis, it may have another size than the axis of a signature
// that it is called after; only a dim of the file has one size.
#include "compiler/elaborate/arguments.h"
#include "compiler/elaborate/elaborator.h"
#include "compiler/elaborate/show.h"

namespace einc {

std::optional<Value> Elaborator::renamed(const ast::Call& call, Span whole) {
  constexpr std::string_view kUsage = "`rename(x, old = new, ...)`";
  size_t positional = 0;
  for (const ast::Argument& argument : call.arguments) positional += !argument.name;
  if (positional != 1 || call.arguments.size() < 2) {
    diagnostics_.report(Code::builtin_arguments, whole, "rename", kUsage, counted(call.arguments.size(), "argument"));
    return std::nullopt;
  }
  const auto x = evaluate_tensor(*call.arguments[0].value);
  if (!x) return std::nullopt;
  const Type type = build_.type(*x);
  std::vector<Axis> axes = type.axes;
  for (size_t i = 1; i < call.arguments.size(); ++i) {
    const ast::Argument& argument = call.arguments[i];
    const auto axis = einc::find_axis(*this, type, argument.name.name, argument.name.span);
    if (!axis) return std::nullopt;
    const auto* to = argument.value->as<ast::NameRef>();
    if (to == nullptr) {
      diagnostics_.report(Code::axis_name_expected, argument.value->span).hint("write {}", kUsage);
      return std::nullopt;
    }
    Axis& renamed = axes[static_cast<size_t>(*axis)];
    renamed.name = to->name;
    if (frame().find_axis(to->name)) continue;
    if (const auto declared = declared_size(to->name); declared && *declared != renamed.size) {
      diagnostics_.report(Code::axis_is_declared, argument.value->span, to->name, describe_size(*declared), describe_size(renamed.size))
          .hint("give the axis a name of its own");
      return std::nullopt;
    }
    introduce_local(to->name, renamed.size, argument.value->span);
  }
  for (size_t i = 0; i < axes.size(); ++i)
    for (size_t k = 0; k < i; ++k)
      if (axes[i].is_named() && axes[i].name == axes[k].name && !(type.axes[i].name == axes[i].name && type.axes[k].name == axes[k].name)) {
        diagnostics_.report(Code::axis_exists, whole, "the result", without_marks(axes[i].name));
        return std::nullopt;
      }
  return Value{build_.rename(*x, std::move(axes))};
}

}  // namespace einc
