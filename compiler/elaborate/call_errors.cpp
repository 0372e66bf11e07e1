// SPDX-License-Identifier: Apache-2.0
// Errors inside a fn that a call brought about: they say which call it was. The bundled library is right, so what goes wrong in
// one of its fns is the fault of the call: one error, at the argument if it is about one, and a look at the place inside.
#include <algorithm>
#include <utility>

#include "compiler/elaborate/elaborator.h"

namespace einc {
namespace {

constexpr std::string_view kCalled = "in this call";
constexpr std::ptrdiff_t kShownCalls = 3;
constexpr size_t kLongestQuote = 48;

// Wrong for these arguments, perhaps not for others: shapes, types, values.
bool depends_on_call(Code code) {
  const std::string_view number = info(code).code;
  return number.starts_with("E03") || number.starts_with("E05") || number.starts_with("E08") || code == Code::not_a_size ||
         code == Code::inexact_division || code == Code::size_below_one || code == Code::condition_never;
}

}  // namespace

void Elaborator::explain_errors(size_t first, const Frame& callee, const std::vector<BoundArgument>& arguments) {
  const bool from_outside = callee.unit->bundled && !callee.caller->unit->bundled;
  if (callee.call == callee.fn->name.span) return;  // a trial
  bool blamed_call = false;
  diagnostics_.revise(first, [&](Diagnostic& d) {
    if (!d.span.known()) return true;
    if (from_outside && sources_.file(d.span.file).name().starts_with('<')) {
      if (std::exchange(blamed_call, true)) return false;
      d.labels.insert(d.labels.begin(), Label{d.span, "inside `" + callee.fn->name.name.str() + "`"});
      d.span = blamed(d, callee, arguments);
      return true;
    }
    const auto shown = std::count_if(d.labels.begin(), d.labels.end(), [](const Label& label) { return label.text == kCalled; });
    const bool inside = d.span.file == callee.unit->file && d.span.begin >= callee.fn->name.span.end;
    if (!callee.unit->bundled && inside && depends_on_call(d.code) && shown < kShownCalls)
      d.labels.push_back({callee.call, std::string(kCalled)});
    return true;
  });
}

// The argument whose parameter the error points at, or the call.
Span Elaborator::blamed(const Diagnostic& diagnostic, const Frame& callee, const std::vector<BoundArgument>& arguments) const {
  const std::string_view text = sources_.text(diagnostic.span);
  for (size_t i = 0; i < arguments.size(); ++i)
    if (callee.fn->params[i].name.name.str() == text && arguments[i].state == BoundArgument::State::given) return arguments[i].span;
  return callee.call;
}

std::string Elaborator::quote(Span span) const {
  std::string_view text = sources_.text(span);
  const ast::Fn* fn = frame().unit->bundled ? frame().fn : nullptr;
  for (size_t i = 0; fn && i < fn->params.size(); ++i)
    if (fn->params[i].name.name.str() == text && frame().arguments[i].known()) {
      text = sources_.text(frame().arguments[i]);
      break;
    }
  // The span of a call to a built-in ends before its parenthesis.
  const auto open = std::count(text.begin(), text.end(), '(') - std::count(text.begin(), text.end(), ')');
  if (open == 1 && text.data()[text.size()] == ')') text = {text.data(), text.size() + 1};
  return text.size() <= kLongestQuote && text.find('\n') == std::string_view::npos ? std::string(text) : "...";
}

Name Elaborator::known_name(Name axis) const {
  const SignatureAxis* bound = frame().unit->bundled ? frame().find_axis(axis) : nullptr;
  return without_marks(bound ? bound->caller.name : axis);
}

}  // namespace einc
