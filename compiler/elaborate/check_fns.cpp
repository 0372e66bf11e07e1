// SPDX-License-Identifier: Apache-2.0
// Bodies of fns that nobody calls. Each is elaborated once more on the side, with stand-ins for its arguments: an axis that the
// signature leaves open has a size of its own, `...` is one axis, and an argument without a type is unknown, so that whatever
// depends on it says nothing. Since a caller may give axes the same size and `...` another rank, only errors count that come
// with every such choice. All trials share one elaborator and its limits: a program cannot make this long.
#include <algorithm>
#include <span>

#include "compiler/elaborate/elaborator.h"

namespace einc {
namespace {

struct Choice {
  int ellipsis_axes;
  enum class Sizes : uint8_t { distinct, same } sizes;
};
constexpr Choice kChoices[] = {{1, Choice::Sizes::distinct},
                               {0, Choice::Sizes::distinct},
                               {2, Choice::Sizes::distinct},
                               {1, Choice::Sizes::same},
                               {2, Choice::Sizes::same}};
constexpr size_t kMaxTrialCalls = 20'000;
constexpr int64_t kMaxTrialIterations = 100'000;

// What a fn is tried with: its stand-ins have these sizes.
class StandIns {
 public:
  StandIns(DimTable& dims, Bindings& order_values, Choice choice, int source)
      : dims_(dims), order_values_(order_values), choice_(choice), source_(source) {}

  Axis open_axis(Name name) {
    const Name size = choice_.sizes == Choice::Sizes::same ? Name("...") : name;
    if (!dims_.find(size)) dims_.declare_free(size, source_);
    order_values_.try_emplace(size, 1024);
    return Axis{name, Poly::dim(size)};
  }
  void ellipsis(std::vector<Axis>& axes) {
    for (int i = 0; i < choice_.ellipsis_axes; ++i) axes.push_back(open_axis(Name(i == 0 ? "..." : "...2")));
  }

 private:
  DimTable& dims_;
  Bindings& order_values_;
  Choice choice_;
  int source_;  // the fn, for messages
};

// A limit is no fault of a fn that is not called.
bool counts(const Diagnostic& diagnostic) {
  return diagnostic.severity == Severity::error && !info(diagnostic.code).code.starts_with("E09");
}

bool said_in(const std::vector<Diagnostic>& list, const Diagnostic& wanted) {
  return std::any_of(list.begin(), list.end(), [&](const Diagnostic& d) { return d.code == wanted.code && d.span == wanted.span; });
}

}  // namespace

// Calls the fn with stand-ins.
void Elaborator::try_fn(FnRef ref, const std::function<Axis(Name)>& open_axis, const std::function<void(std::vector<Axis>&)>& ellipsis) {
  paths_.clear();
  std::vector<BoundArgument> arguments(ref.fn->params.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const ast::FnParam& param = ref.fn->params[i];
    arguments[i].span = param.span;
    if (!param.type && param.default_value) continue;
    arguments[i].state = BoundArgument::State::unknown;
    if (!param.type) continue;
    Type type{param.type->dtype.value_or(DType::real), {}};
    bool known = true;
    for (const ast::Axis& axis : param.type->axes) {
      if (axis.kind == ast::AxisKind::ellipsis) {
        ellipsis(type.axes);
      } else if (axis.kind == ast::AxisKind::named) {
        const auto declared = declared_size(axis.name.name);
        type.axes.push_back(declared ? Axis{axis.name.name, *declared} : open_axis(axis.name.name));
      } else {
        const Diagnostics before = diagnostics_;
        const auto size = axis_size(*axis.size);
        diagnostics_ = before;  // it may name an axis that is open here; the call itself reports what is wrong
        known = known && size;
        if (size) type.axes.push_back(Axis{axis.kind == ast::AxisKind::number ? Name() : axis.name.name, *size});
      }
    }
    if (!known || type.rank() > kMaxRank) continue;
    arguments[i].value = Value{build_.input(param.name.name, std::move(type))};
    arguments[i].state = BoundArgument::State::given;
  }
  const std::string name = ref.fn->name.name.str();
  instantiate(ref, std::move(arguments), Instance{name, name}, ref.fn->name.span);
}

// The errors that the fn has whatever it is called with.
std::vector<Diagnostic> Elaborator::errors_of(FnRef ref, Diagnostics& said) {
  Frame outside;
  outside.unit = ref.unit;
  frame_ = &outside;
  std::vector<Diagnostic> found;
  for (const Choice& choice : kChoices) {
    said = Diagnostics();
    StandIns stand_ins(graph_.dims, order_values_, choice, tag(ref.fn->name.span));
    bool open = false;
    try_fn(
        ref, [&](Name name) { return open = true, stand_ins.open_axis(name); },
        [&](std::vector<Axis>& axes) { open = true, stand_ins.ellipsis(axes); });
    if (exhausted_) return {};
    if (&choice == kChoices)
      found = said.list();
    else
      std::erase_if(found, [&](const Diagnostic& d) { return !said_in(said.list(), d); });
    std::erase_if(found, [](const Diagnostic& d) { return !counts(d); });
    if (found.empty() || !open) break;
  }
  frame_ = nullptr;
  return found;
}

void Elaborator::check_uncalled_fns() {
  std::vector<FnRef> fns;
  for (const auto& unit : units_.all())
    for (const auto& [name, ref] : unit->fns)
      if (!unit->bundled && !called_.contains(ref.fn)) fns.push_back(ref);
  if (fns.empty() || exhausted_) return;
  const auto place = [](Span span) { return std::pair(span.file, span.begin); };
  std::sort(fns.begin(), fns.end(), [&](const FnRef& a, const FnRef& b) { return place(a.fn->name.span) > place(b.fn->name.span); });
  Diagnostics said;
  Elaborator trial(sources_, options_, said);
  trial.checking_ = true;
  trial.graph_.dims = graph_.dims;
  trial.tags_ = tags_;
  trial.values_ = values_;
  trial.order_values_ = order_values_;
  trial.calls_ = kMaxCalls - kMaxTrialCalls;
  trial.iterations_ = kMaxIterations - kMaxTrialIterations;
  std::vector<Diagnostic> found;
  for (const FnRef& ref : fns) {  // callers mostly stand behind what they call: with their calls it is checked as well
    if (trial.called_.contains(ref.fn)) continue;
    const std::vector<Diagnostic> errors = trial.errors_of(ref, said);
    if (trial.exhausted_) break;
    found.insert(found.end(), errors.begin(), errors.end());
  }
  std::stable_sort(found.begin(), found.end(), [&](const Diagnostic& a, const Diagnostic& b) { return place(a.span) < place(b.span); });
  for (const Diagnostic& diagnostic : found) {
    auto report = diagnostics_.add(diagnostic.code, diagnostic.span, diagnostic.message);
    for (const Label& label : diagnostic.labels) report.label(label.span, label.text);
    report.hint(diagnostic.hint);
    for (const Replacement& replacement : diagnostic.replacements) report.replace(replacement.span, replacement.text);
  }
}

}  // namespace einc
