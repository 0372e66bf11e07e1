// SPDX-License-Identifier: Apache-2.0
// `grad(y, x)` and `minimize`: the loss is differentiated once for all trained params; what each optimizer does with a
// gradient is written in the language (dsl/stdlib/optim.ein) and instantiated here once per param:
//   clip:      g * clip_scale(sum over the group of square_sum(g), clip_norm)
//   decay:     decoupled_decay(p, lr, weight_decay) for adamw, l2_decay(p, g, weight_decay) otherwise
//   step:      p <- OPT(p, g, t, settings...)
// Of a step in micro-batches g is the mean over them, whose sum lies in a state.
// t is a state that counts runs from 0; where nothing reads it, it is dead code. Under f16 the loss is scaled: loss_scale.h.
#include "compiler/elaborate/training.h"

#include <algorithm>

#include "compiler/autodiff/differentiate.h"
#include "compiler/elaborate/elaborator.h"
#include "compiler/elaborate/suggest.h"
#include "dsl/parser.h"
#include "runtime/base/training_names.h"

namespace einc {

bool matches_glob(std::string_view glob, std::string_view path) {
  size_t g = 0, p = 0, star = std::string_view::npos, resume = 0;
  while (p < path.size()) {
    if (g < glob.size() && (glob[g] == path[p] || glob[g] == '?')) {
      ++g, ++p;
    } else if (g < glob.size() && glob[g] == '*') {
      star = g++;
      resume = p;
    } else if (star != std::string_view::npos) {
      g = star + 1;
      p = ++resume;
    } else {
      return false;
    }
  }
  while (g < glob.size() && glob[g] == '*') ++g;
  return g == glob.size();
}

// ---- grad(y, x)

std::optional<Value> Elaborator::gradient(const ast::Call& call, Span whole) {
  if (call.arguments.size() != 2 || call.arguments[0].name || call.arguments[1].name) {
    diagnostics_.report(Code::grad_arguments, whole).hint("write grad(y, x): the derivative of the scalar y by x");
    return std::nullopt;
  }
  const ast::Expr &y_expr = *call.arguments[0].value, &x_expr = *call.arguments[1].value;
  const auto y = evaluate_tensor(y_expr);
  const auto x = evaluate_tensor(x_expr);
  if (!y || !x) return std::nullopt;
  if (build_.type(*y).rank() > 0 && build_.type(*x).rank() == 0) {
    diagnostics_.report(Code::loss_has_axes, y_expr.span, "grad", show(build_.type(*y)))
        .hint("the scalar comes first: grad({}, {})", quote(x_expr.span), quote(y_expr.span))
        .replace(y_expr.span, sources_.text(x_expr.span))
        .replace(x_expr.span, sources_.text(y_expr.span));
    return std::nullopt;
  }
  if (!check_scalar(*y, y_expr.span, "grad")) return std::nullopt;
  if (!is_floating(build_.type(*x).dtype)) {
    diagnostics_.report(Code::grad_not_floating, x_expr.span, show(build_.type(*x)));
    return std::nullopt;
  }
  const NodeId wrt[] = {*x};
  const NodeId result = known_gradients_.of(build_, *y, wrt, custom_gradients_, KnownGradients::Made::sources_too)[0];
  if (result.valid()) return Value{result};
  diagnostics_.report(Code::zero_gradient, whole, "this").label(x_expr.span, "nothing between this value and y depends on it");
  return Value{zeros_like(*x)};
}

bool Elaborator::check_scalar(NodeId y, Span span, std::string_view what) {
  const Type& type = build_.type(y);
  if (type.rank() != 0) {
    diagnostics_.report(Code::loss_has_axes, span, what, show(type)).hint("take sum(...) or mean(...) of it");
    return false;
  }
  if (is_floating(type.dtype)) return true;
  diagnostics_.report(Code::loss_not_floating, span, what, to_string(type.dtype)).hint("cast it: cast(..., f32)");
  return false;
}

// ---- minimize

void Elaborator::minimize(const ast::Minimize& statement, Span span) {
  const auto loss = evaluate_tensor(*statement.loss);
  if (minimized_.statement) {
    diagnostics_.report(Code::minimized_twice, span).label(minimized_.span, "first here").hint("minimize the sum of the losses");
    return;
  }
  minimized_ = {&statement, NodeId{}, span};
  if (loss && check_scalar(*loss, statement.loss->span, "minimize")) minimized_.loss = *loss;
}

void Elaborator::finish_training() {
  if (!minimized_.loss.valid() || exhausted_) return;
  graph_.loss = minimized_.loss;
  const size_t errors = diagnostics_.error_count();
  const TrainingOptions& options = options_.training;
  const bool grouped = options.optimizer.rfind("over ", 0) == 0;
  const auto optimizer = parse_option(
      "--optimizer", options.optimizer.empty() ? "" : (grouped ? "minimize loss " : "minimize loss using ") + options.optimizer);
  const auto rate =
      parse_option("--lr", options.learning_rate.empty() ? "" : "minimize loss using sgd(lr = " + options.learning_rate + ")");
  if (diagnostics_.error_count() != errors) return;
  const auto groups = [](const ast::Program& program) -> const std::vector<ast::ParamGroup>& {
    return program.statements.front().as<ast::Minimize>()->groups;
  };
  if (rate && (groups(*rate).size() != 1 || groups(*rate)[0].arguments.size() != 1)) {
    diagnostics_.report(Code::bad_setting, rate->statements.front().span, "--lr", "one number or schedule", "more than that");
    return;
  }
  Training(*this, optimizer ? groups(*optimizer) : minimized_.statement->groups, rate ? &groups(*rate)[0].arguments[0] : nullptr).run();
}

std::optional<ast::Program> Elaborator::parse_option(std::string_view option, const std::string& text) {
  if (text.empty()) return std::nullopt;
  const size_t errors = diagnostics_.error_count();
  const auto file = sources_.add(std::string(option), text + "\n", diagnostics_);
  if (!file) return std::nullopt;
  ast::Program program = parse(sources_, *file, diagnostics_);
  if (diagnostics_.error_count() != errors) return std::nullopt;
  if (program.statements.size() == 1 && program.statements.front().as<ast::Minimize>()) return program;
  diagnostics_.report(Code::bad_setting, Span{*file, 0, static_cast<uint32_t>(text.size())}, option,
                      "an optimizer such as adamw(lr = 1e-3)", "more than that");
  return std::nullopt;
}

Training::Training(Elaborator& elaborator, const std::vector<ast::ParamGroup>& groups, const ast::Argument* rate)
    : e_(elaborator),
      build_(elaborator.build_),
      groups_(groups),
      rate_(rate),
      options_(elaborator.options_.training),
      library_(elaborator.units_.load_bundled("optim")) {}

void Training::run() {
  collect_params();
  if (trained_.empty()) return;
  const Origin saved = build_.origin;
  build_.origin = Origin{};
  build_.origin.location = e_.locate(e_.minimized_.span);
  build_.origin.phase = Phase::optimizer;
  if (e_.graph_.policy == Policy::f16) loss_scale_.emplace(build_);
  differentiate_loss();
  if (options_.gradients == GradientUse::gather) {
    build_.origin = saved;
    return;
  }
  const size_t first_update = e_.graph_.updates.size();
  step_ = build_.state(StateAttr{Name("optimizer.step"), Init{}, StateRole::scalar}, Type{DType::i64, {}});
  e_.graph_[step_].origin.label = Name("step");
  for (size_t g = 0; g < groups_.size(); ++g) optimize_group(g);
  e_.graph_.updates.push_back(Update{step_, build_.map(MapFn::add, {step_, build_.constant(Poly(1), DType::i64)})});
  if (loss_scale_ && !trained_.empty()) loss_scale_->guard(first_update);
  clear_sums();
  build_.origin = saved;
}

// The learned params of each group: the first glob that matches a path takes it.
void Training::collect_params() {
  std::vector<bool> used(groups_.size(), false);
  std::vector<Name> left;
  const Graph& graph = e_.graph_;
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.op != Op::param || node.as<ParamAttr>().frozen) continue;
    for (size_t g = 0; g < groups_.size(); ++g) {
      const ast::ParamGroup& group = groups_[g];
      if (group.glob && !matches_glob(group.glob->value, node.as<ParamAttr>().path.str())) continue;
      trained_.push_back({NodeId{i}, NodeId{}, g});
      used[g] = true;
      break;
    }
    if (trained_.empty() || trained_.back().param != NodeId{i}) left.push_back(node.as<ParamAttr>().path);
  }
  if (trained_.empty()) {
    if (e_.diagnostics_.has_errors()) return;  // it may be what a mistake above left out
    if (left.empty())
      e_.diagnostics_.report(Code::nothing_to_train, e_.minimized_.span).hint("declare one: param w: [...] ~ normal(std = 0.02)");
    else
      suggest_path(e_.diagnostics_.report(Code::nothing_to_train, groups_[0].glob_span), groups_[0], left);
    return;
  }
  for (size_t g = 0; g < used.size(); ++g)
    if (!used[g])
      suggest_path(e_.diagnostics_.report(Code::group_without_params, groups_[g].glob_span, groups_[g].glob ? groups_[g].glob->value : "*"),
                   groups_[g], left);
  warn_of_left(left);
}

// No param is taken by the group: the one whose path its glob is near, or the paths there are.
void Training::suggest_path(Diagnostics::Builder report, const ast::ParamGroup& group, const std::vector<Name>& left) {
  constexpr size_t kShownPaths = 8;
  std::vector<std::string> paths;
  for (const Name path : left) paths.push_back(path.str());
  if (paths.empty() || !group.glob) return;
  if (const auto near = near_name(group.glob->value, paths)) {
    report.hint("did you mean \"{}\"?", *near).replace(group.glob->contents, *near);
    return;
  }
  const bool cut = paths.size() > kShownPaths;
  if (cut) paths.resize(kShownPaths);
  report.hint("the paths of the params are {}{}", fmt::to_string(fmt::join(paths, ", ")), cut ? ", ..." : "");
}

void Training::warn_of_left(const std::vector<Name>& left) {
  if (left.empty()) return;
  const Span where = join(groups_.front().glob_span, groups_.back().optimizer.span);
  auto report = e_.diagnostics_.report(Code::params_without_group, where,
                                       left.size() == 1 ? "param `" + left[0].str() + "`: it is not trained"
                                                        : std::to_string(left.size()) + " params: they are not trained");
  constexpr size_t kShown = 3;
  Span last;
  for (size_t i = 0; i < std::min(left.size(), kShown); ++i) {
    const Span made = e_.param_span(left[i]);
    if (!(made == last)) report.label(made, "`{}`", left[i]);
    last = made;
  }
  report.hint("declare what is not to be trained `frozen param`, or end with: over \"*\" using ...");
}

void Training::differentiate_loss() {
  std::vector<NodeId> wrt;
  for (const Trained& param : trained_) wrt.push_back(param.param);
  const NodeId loss = loss_scale_ ? loss_scale_->scaled(e_.graph_.loss) : e_.graph_.loss;
  const std::vector<NodeId> gradients = e_.known_gradients_.of(build_, loss, wrt, e_.custom_gradients_, KnownGradients::Made::as_asked);
  const std::vector<bool> read = read_in_training(loss);
  for (size_t i = 0; i < trained_.size(); ++i) {
    if (gradients[i].valid() && read[trained_[i].param.index]) {
      stamp(trained_[i].param);
      const NodeId gradient = options_.micro_batches > 1 ? summed(trained_[i].param, gradients[i]) : gradients[i];
      if (options_.gradients == GradientUse::gather) continue;
      trained_[i].gradient = loss_scale_ ? loss_scale_->unscaled(gradient) : gradient;
      e_.graph_.gradients.push_back(Update{trained_[i].param, trained_[i].gradient});
      continue;
    }
    const Name path = e_.graph_[trained_[i].param].as<ParamAttr>().path;
    e_.diagnostics_.report(Code::param_without_gradient, e_.param_span(path), path);
  }
  unstamp();
  std::erase_if(trained_, [](const Trained& param) { return !param.gradient.valid(); });
}

// What the loss of a training step is made of: where(training, a, b) is a there.
std::vector<bool> Training::read_in_training(NodeId loss) const {
  const Graph& graph = e_.graph_;
  std::vector<bool> read(graph.size(), false);
  read[loss.index] = true;
  for (uint32_t i = loss.index + 1; i-- > 0;) {
    if (!read[i]) continue;
    const Node& node = graph.nodes[i];
    if (const CustomGradient* custom = e_.custom_gradients_.of(NodeId{i}))
      for (const NodeId input : custom->inputs) read[input.index] = true;
    const bool chosen = is_map(node, MapFn::where) && graph[node.operands[0]].op == Op::training;
    for (size_t k = 0; k < node.operands.size(); ++k)
      if (!chosen || k != 2) read[node.operands[k].index] = true;
  }
  return read;
}

// With those of the micro-batches before: the sum so far, or the mean when the step takes it.
NodeId Training::summed(NodeId param, NodeId gradient) {
  const Phase phase = build_.origin.phase;
  build_.origin.phase = Phase::backward;
  const Name path = e_.graph_[param].as<ParamAttr>().path;
  const Type type = build_.type(param);
  const NodeId sum = build_.state(StateAttr{Name("optimizer." + path.str() + std::string(kGradientSum)), Init{}, StateRole::moment}, type);
  NodeId result = build_.map(MapFn::add, {sum, gradient});
  if (options_.gradients == GradientUse::gather)
    e_.graph_.updates.push_back(Update{sum, result});
  else
    result = build_.map(MapFn::mul, {result, build_.constant(1.0 / static_cast<double>(options_.micro_batches), type.dtype)}),
    sums_.push_back(sum);
  build_.origin.phase = phase;
  return result;
}

// After the loss scale's guard: sums that are not finite go too.
void Training::clear_sums() {
  for (const NodeId sum : sums_) {
    const Type type = build_.type(sum);
    const NodeId zero = build_.constant(Poly(0), type.dtype);
    e_.graph_.updates.push_back(Update{sum, type.rank() == 0 ? zero : build_.broadcast(zero, {}, type.axes)});
  }
}

// ---- one group

std::optional<FnRef> Training::find_optimizer(const ast::ParamGroup& group) {
  const auto is_optimizer = [](const ast::Fn& fn) {
    return fn.params.size() >= 3 && fn.params[0].name.name == Name("p") && fn.params[1].name.name == Name("g") &&
           fn.params[2].name.name == Name("t");
  };
  const Name name = group.optimizer.name;
  if (const auto found = library_->fns.find(name); found != library_->fns.end() && is_optimizer(*found->second.fn)) return found->second;
  if (const auto own = e_.find_fn(name, group.optimizer.span)) {
    if (!own->fn) return std::nullopt;
    if (is_optimizer(*own->fn)) return own;
    e_.diagnostics_.report(Code::not_an_optimizer, group.optimizer.span, name)
        .label(own->fn->name.span, "the fn")
        .hint("an optimizer's first parameters are p, g and t: fn {}(p: [...], g: [...], t, lr = 0.01) {{ return p - lr * g }}", name);
    return std::nullopt;
  }
  auto report = e_.diagnostics_.report(Code::unknown_optimizer, group.optimizer.span, name);
  std::vector<std::string> names;
  for (const auto& entry : library_->fns)
    if (is_optimizer(*entry.second.fn)) names.push_back(entry.first.str());
  std::sort(names.begin(), names.end());
  if (const auto near = near_name(name.str(), names))
    report.did_you_mean(group.optimizer.span, *near);
  else
    report.hint("there are adagrad, adam, adamw, momentum, rmsprop and sgd");
  return std::nullopt;
}

void Training::optimize_group(size_t index) {
  const ast::ParamGroup& group = groups_[index];
  const auto optimizer = find_optimizer(group);
  Settings settings;
  if (!optimizer || !read_settings(group, *optimizer, settings)) return;
  if (is_watched() && settings.lr > 0)
    if (const auto rate = learning_rate(*optimizer, settings))
      watch("learning_rate", index, to_tensor_alone(e_, *rate, e_.minimized_.span));
  if (settings.clip_norm && !clip(index, *settings.clip_norm)) return;
  for (const Trained& trained : trained_)
    if (trained.group == index && !optimize(trained, *optimizer, settings)) return;
}

bool Training::is_watched() const { return options_.watched == Watched::training; }

void Training::watch(std::string_view name, size_t group, std::optional<NodeId> value) {
  if (!value) return;
  const std::string suffix = group == 0 ? "" : "." + std::to_string(group);
  e_.graph_.outputs.push_back({Name(std::string(kAddedByTraining) + std::string(name) + suffix), *value});
}

// All gradients of the group times min(1, limit/(norm + 1e-6)).
bool Training::clip(size_t group, const Value& limit) {
  std::optional<NodeId> total;
  for (const Trained& trained : trained_) {
    if (trained.group != group) continue;
    stamp(trained.param);
    const auto squares = call("square_sum", {Value{trained.gradient}}, "");
    if (!squares) return false;
    const NodeId node = std::get<NodeId>(squares->data);
    total = total ? build_.map(MapFn::add, {*total, node}) : node;
  }
  if (!total) return true;
  unstamp();
  if (is_watched()) watch("gradient_norm", group, build_.map(MapFn::sqrt, {*total}));
  const auto scale = call("clip_scale", {Value{*total}, limit}, "");
  if (!scale) return false;
  for (Trained& trained : trained_) {
    if (trained.group != group) continue;
    stamp(trained.param);
    trained.gradient = build_.map(MapFn::mul, {trained.gradient, std::get<NodeId>(scale->data)});
  }
  return true;
}

// Schedules and step counts are one for all params: beside a param of f64 they must not bring f32's rounding in.
Value Training::beside_param(const Value& value) {
  const NodeId* node = std::get_if<NodeId>(&value.data);
  if (!node || e_.optimizer_dtype_ != DType::f64) return value;
  const Type& type = build_.type(*node);
  if (type.rank() > 0 || type.dtype == DType::f64 || type.dtype == DType::boolean) return value;
  return Value{build_.cast(*node, DType::f64)};
}

bool Training::optimize(const Trained& trained, const FnRef& optimizer, const Settings& settings) {
  const Type type = build_.type(trained.param);
  const std::string path = "optimizer." + e_.graph_[trained.param].as<ParamAttr>().path.str();
  stamp(trained.param);
  e_.optimizer_dtype_ = type.dtype == DType::f64 ? DType::f64 : DType::real;
  Value p{trained.param}, g{trained.gradient};
  bool whole = true;
  const bool none = settings.weight_decay && is_zero(*settings.weight_decay);
  if (settings.weight_decay && !none && (type.rank() >= 2 || settings.decay_all)) {
    std::optional<Value> decayed;
    if (!settings.decoupled) {
      decayed = call("l2_decay", {p, g, *settings.weight_decay}, path);
      if (decayed) g = *decayed;
    } else if (const auto lr = learning_rate(optimizer, settings)) {
      decayed = call("decoupled_decay", {p, beside_param(*lr), *settings.weight_decay}, path);
      if (decayed) p = *decayed;
    }
    whole = decayed.has_value();
  }
  if (whole) {
    std::vector<BoundArgument> arguments = settings.arguments;
    arguments[0].value = p;
    arguments[1].value = g;
    for (size_t i = 2; i < arguments.size(); ++i)
      if (arguments[i].value) arguments[i].value = beside_param(*arguments[i].value);
    const auto result = e_.instantiate(optimizer, std::move(arguments), Instance{path, build_.origin.module.str()}, e_.minimized_.span);
    whole = result && finish(trained.param, *result);
  }
  e_.optimizer_dtype_.reset();
  return whole;
}

bool Training::finish(NodeId param, const Value& result) {
  const Type type = build_.type(param);
  const NodeId* node = std::get_if<NodeId>(&result.data);
  if (!node || !(build_.type(*node).axes == type.axes)) {
    e_.diagnostics_.report(Code::optimizer_result, e_.minimized_.span, e_.graph_[param].as<ParamAttr>().path, e_.show(type));
    return false;
  }
  NodeId value = *node;
  if (build_.type(value).dtype != type.dtype) value = build_.cast(value, type.dtype);
  e_.graph_.updates.push_back(Update{param, value});
  return true;
}

std::optional<Value> Training::call(std::string_view fn, std::vector<Value> values, const std::string& path) {
  std::vector<BoundArgument> arguments;
  for (Value& value : values) arguments.push_back({std::move(value), e_.minimized_.span, BoundArgument::State::given});
  return e_.instantiate(library_->fns.at(Name(fn)), std::move(arguments), Instance{path, build_.origin.module.str()}, e_.minimized_.span);
}

// Optimizer nodes count for the module and the loop iteration of their param.
void Training::stamp(NodeId param) {
  const Origin& origin = e_.graph_[param].origin;
  build_.origin.module = origin.module;
  build_.origin.loop_context = origin.loop_context;
}

void Training::unstamp() {
  build_.origin.module = Name();
  build_.origin.loop_context = 0;
}

}  // namespace einc
