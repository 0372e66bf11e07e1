// SPDX-License-Identifier: Apache-2.0
// Reading the arguments of a call to a built-in: how many there are, which names they have, and which axes they mean.
// Every function here reports what is wrong and gives nothing then.
#pragma once
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "compiler/elaborate/context.h"

namespace einc {

// Nodes built while it lives come from `span`.
class NodesFrom {
 public:
  NodesFrom(Context& context, Span span);
  ~NodesFrom();
  NodesFrom(const NodesFrom&) = delete;
  NodesFrom& operator=(const NodesFrom&) = delete;

 private:
  Builder& build_;
  SourceLocation previous_;
};

Span span_of(const ast::Call& call);

// Between `least` and `most` positional arguments, and no keyword that is not listed. `usage` shows a right call.
bool check_arguments(Context& context, const ast::Call& call, size_t least, size_t most, std::string_view usage,
                     std::initializer_list<std::string_view> keywords = {});
const ast::Argument* find_argument(const ast::Call& call, std::string_view keyword);
std::vector<const ast::Argument*> positional_arguments(const ast::Call& call);

// Values of all arguments of an elementwise function; all are evaluated before one that fails ends it.
std::optional<std::vector<Value>> evaluate_operands(Context& context, std::span<const ast::Argument* const> arguments);

// The one axis of that name: reports a name that is missing or stands twice.
std::optional<int> find_axis(Context& context, const Type& type, Name name, Span span);
// The argument read as an axis of `type`.
std::optional<int> axis_argument(Context& context, const Type& type, const ast::Argument& argument);
// Several different axes, or all of them when none is given.
std::optional<AxisList> axes_or_all(Context& context, const Type& type, std::span<const ast::Argument* const> arguments);

// An axis to make: a dim or an axis name that has a size here, or `name = size` for a new one.
std::optional<Axis> new_axis(Context& context, const ast::Argument& argument);

// Several of them, all different.
std::optional<std::vector<Axis>> new_axes(Context& context, std::span<const ast::Argument* const> arguments);

// A number that does not depend on dims.
std::optional<double> constant_argument(Context& context, const ast::Argument& argument, std::string_view what);

// A keyword that is `true` or `false`; false where it is not given.
std::optional<bool> flag_argument(Context& context, const ast::Call& call, std::string_view keyword);

// Reports a result of more than kMaxRank axes.
bool check_rank(Context& context, size_t rank, Span span);

}  // namespace einc
