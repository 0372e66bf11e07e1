// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "compiler/cost/chosen_order.h"
#include "compiler/cost/components.h"
#include "compiler/cost/evaluate.h"
#include "compiler/cost/layout.h"
#include "compiler/cost/memory.h"
#include "compiler/cost/modules.h"
#include "compiler/cost/sum.h"
#include "compiler/cost/tokens.h"
#include "compiler/cost/totals.h"
#include "compiler/ir/examples.h"
#include "compiler/ir/text.h"
#include "compiler/lower/assemble_program.h"
#include "compiler/lower/kernel_work.h"
#include "compiler/report/hold_formulas.h"
#include "compiler/report/like_graphs.h"
#include "compiler/report/lower_bound.h"
#include "compiler/report/mesh_step.h"
#include "compiler/report/report.h"
#include "compiler/report/stage_steps.h"
#include "runtime/base/big_stack.h"
#include "runtime/base/flops_utilisation.h"

namespace einc {

std::optional<double> contraction_peak(const Device& device, Policy policy) {
  switch (policy) {
    case Policy::inherit:
    case Policy::f32:
      return device.contraction_peak(DType::f32);
    case Policy::tf32:
      return device.tf32_peak();
    case Policy::bf16:
      return device.contraction_peak(DType::bf16);
    case Policy::f16:
      return device.contraction_peak(DType::f16);
    case Policy::fp8:
      return device.contraction_peak(DType::f8e4m3);
  }
  return std::nullopt;
}

namespace {

// Without a loss a step is a run.
RunMode mode_of_step(const Graph& graph) { return graph.loss.valid() ? RunMode::training : RunMode::inference; }

// Whether all dims have values that a plan may be made for.
bool can_be_planned(const Graph& graph, const BindResult& bound) {
  return bound.ok() && bound.unset.empty() && sizes_fit(graph, bound.values);
}

std::optional<double> as_double(const Amount& amount) { return amount.value ? std::optional(amount.value->to_double()) : std::nullopt; }

class ReportBuilder {
 public:
  ReportBuilder(const Graph& graph, const ReportOptions& options)
      : graph_(graph),
        options_(options),
        bound_(graph.dims.bind(options.given)),
        evaluate_(bound_.values),
        constant_(constant_nodes(graph)),
        sizes_(graph),
        costs_(flop_costs(graph, sizes_)),
        layouts_(analyse_layouts(graph)),
        saved_(saved_activations(graph, constant_)),
        orders_(graph, constant_, costs_, saved_),
        bytes_(graph, sizes_, layouts_.copies) {}

  // What a run without training takes at its peak.
  void plan_inference() {
    const Graph& inference = options_.inference ? options_.inference() : graph_;
    const PlanStep& plan = options_.plan_inference ? options_.plan_inference : options_.plan;
    inference_is_step_ = !graph_.loss.valid() && plan_alike(inference, graph_);
    if (!inference_is_step_ && sizes_fit(inference, bound_.values))
      inference_bytes_ = plan(inference, options_.given, RunMode::inference, {}).memory.total();
  }

  Report run(std::optional<PlannedStep> step) {
    step_ = std::move(step);
    describe_program();
    list_tensors();
    count_all_flops();
    sum_modules();
    fill_six_nd();
    fill_memory();
    if (step_)
      report_.schedule =
          schedule_report(*step_->formed, {options_.device ? &*options_.device : nullptr, step_->processor}, report_.row_of_launch);
    walk_ops();
    fill_components();
    fill_device();
    fill_training();
    if (options_.partitioned) fill_mesh();
    return std::move(report_);
  }

 private:
  void fill_mesh() {
    const Device* device = options_.device ? &*options_.device : nullptr;
    std::optional<StagedDevice> staged;
    if (graph_.mesh.stages.any() && !(staged = staged_device(*options_.partitioned, options_.given)))
      report_.notes.push_back("stages need a value for each dim: nothing is told of the mesh");
    if (graph_.mesh.stages.any() && !staged) return;
    Localized whole = staged ? Localized() : localize(*options_.partitioned);
    report_.mesh =
        mesh_report(graph_, *options_.partitioned, staged ? staged->whole : whole, options_.given, device, staged ? &*staged : nullptr);
    MeshReport& mesh = *report_.mesh;
    const PlanStep& plan = options_.plan_device ? options_.plan_device : options_.plan;
    if (staged) {
      tell_stages(mesh, *staged, step_ ? plan : PlanStep{}, options_.process_bytes, device);
      fill_mesh_mfu();
    }
    if (!step_ || staged) return;
    const MeshStep step = mesh_step(std::move(whole), options_.given, plan, options_.process_bytes, device, mesh.collective_times);
    mesh.step = planned_report(step);
    const std::optional<DeviceTimeline>& line = step.line;
    if (!line) return;
    mesh.compute_s = line->compute_s, mesh.exposed_s = line->end_s - line->compute_s;
    for (CommunicationRow& row : mesh.rows) row.exposed_s = 0;
    for (size_t i = 0; i < line->exposed_s.size(); ++i) {
      CommunicationRow& row = mesh.rows[mesh.row_of[i]];
      *row.exposed_s += line->exposed_s[i], row.saved_s += line->saved_s[i];
    }
    fill_mesh_mfu();
  }

  void fill_mesh_mfu() {
    MeshReport& mesh = *report_.mesh;
    const double model = as_double(report_.forward.total).value_or(0) + as_double(report_.backward.total).value_or(0);
    const double peak = as_double(mesh.devices).value_or(0) * program_peak().value_or(0);
    mesh.mfu = flops_utilisation(model, mesh.step_time_s().value_or(0), peak);
  }

  static DeviceStepReport planned_report(const MeshStep& step) {
    return {amount_here(step.executed),          amount_here(Rational(step.values)), amount_here(Rational(step.working)),
            amount_here(Rational(step.process)), amount_here(Rational(step.peak())), step.recomputed};
  }

  Amount amount(const Poly& formula, bool holds_here = false) { return {formula, evaluate_(formula), false, holds_here}; }

  void describe_program() {
    report_.model = graph_.name.str();
    if (step_) report_.target = step_->target, report_.threads = step_->threads;
    report_.precision = std::string(to_string(graph_.policy == Policy::inherit ? Policy::f32 : graph_.policy));
    for (const Dim& dim : graph_.dims.dims()) {
      const auto value = bound_.values.find(dim.name);
      report_.dims.emplace_back(dim.name, value == bound_.values.end() ? std::nullopt : std::optional(value->second));
    }
    report_.free_dims = bound_.unset;
    report_.definitions = graph_.dims.definitions();
    for (const Dim& dim : graph_.dims.dims()) {
      const auto is_count = [&](const Loop& loop) { return loop.trip_count == Poly::dim(dim.name); };
      if (std::any_of(graph_.loops.begin(), graph_.loops.end(), is_count)) report_.loop_dims.push_back(dim.name);
    }
    report_.plans = graph_.plans;
    for (const BindProblem& problem : bound_.problems) report_.notes.push_back(problem.message);
  }

  void list_tensors() {
    LoopSum sum(graph_, 2);
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (node.op != Op::param && node.op != Op::input && node.op != Op::state) continue;
      TensorReport tensor{"", node.type, amount(sizes_.count(NodeId{i})), amount(sizes_.bytes(NodeId{i})), false};
      if (node.op == Op::input) {
        tensor.name = node.as<InputAttr>().name.str();
        report_.inputs.push_back(std::move(tensor));
      } else if (node.op == Op::state) {
        tensor.name = node.as<StateAttr>().path.str();
        report_.states.push_back(std::move(tensor));
      } else {
        const ParamAttr& param = node.as<ParamAttr>();
        tensor.name = param.path.str();
        tensor.frozen = param.frozen;
        sum.add(0, node.origin.loop_context, tensor.count.formula);
        if (!param.frozen) sum.add(1, node.origin.loop_context, tensor.count.formula);
        report_.parameters.push_back(std::move(tensor));
      }
    }
    const std::vector<Poly> counts = sum.totals();
    report_.parameter_count = amount(counts[0]);
    report_.trained_count = amount(counts[1]);
  }

  FlopReport flop_report(const FlopTotals& totals, Phase phase) {
    const auto of = [&](FlopClass kind) { return amount(totals.of(phase, kind), orders_.flops(phase, kind)); };
    return {of(FlopClass::contraction),
            of(FlopClass::elementwise),
            of(FlopClass::reduction),
            of(FlopClass::other),
            amount(totals.total(phase), orders_.phase(phase)),
            amount(totals.transcendental[static_cast<size_t>(phase)])};
  }

  void count_all_flops() {
    const FlopTotals totals = count_flops(graph_, constant_, costs_);
    report_.forward = flop_report(totals, Phase::forward);
    report_.backward = flop_report(totals, Phase::backward);
    report_.optimizer = flop_report(totals, Phase::optimizer);
    report_.step = amount(totals.step(), orders_.step());
    report_.executed = report_.step;
    if (!step_) return;
    const ExecutedWork executed = executed_work(step_->formed->list);
    report_.executed_by = executed.work;
    report_.executed = amount_here(executed.flops);
  }

  void sum_modules() {
    ModuleSums sums(graph_);
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (node.op == Op::param) sums.add(ModuleColumn::parameters, node.origin, sizes_.count(NodeId{i}));
      if (constant_[i]) continue;
      const Poly& flops = costs_[i].flops;
      if (node.origin.phase == Phase::forward) sums.add(ModuleColumn::flops_forward, node.origin, flops);
      sums.add(ModuleColumn::flops_step, node.origin, flops);
    }
    for (NodeId id : saved_) sums.add(ModuleColumn::saved_activations, graph_[id].origin, sizes_.bytes(id));
    for (ModuleRow& row : sums.rows()) {
      ModuleReport module{row.path, amount(row[ModuleColumn::parameters]),
                          amount(row[ModuleColumn::flops_forward], orders_.module_forward(row.path)),
                          amount(row[ModuleColumn::flops_step], orders_.module_step(row.path)),
                          amount(row[ModuleColumn::saved_activations], orders_.module_saved(row.path))};
      report_.modules.push_back(std::move(module));
    }
  }

  void fill_six_nd() {
    TokenCount tokens = tokens_per_step(graph_);
    report_.per_token = amount(divide(report_.step.formula, tokens.tokens), orders_.step());
    report_.examples = amount(examples_per_step(graph_));
    report_.per_example = amount(divide(report_.step.formula, report_.examples.formula), orders_.step());
    SixNdReport& six = report_.six_nd;
    six.of_tokens = tokens.are_tokens;
    six.parameters = report_.parameter_count;
    six.tokens = amount(tokens.tokens);
    six.tokens_from = std::move(tokens.from);
    six.estimate = amount(Poly(6) * six.parameters.formula * six.tokens.formula);
    const auto model = evaluate_(report_.forward.total.formula + report_.backward.total.formula);
    if (model && six.estimate.value && !six.estimate.value->is_zero()) six.ratio = (*model / *six.estimate.value).to_double();
  }

  void fill_memory() {
    const MemoryFormulas formulas = memory_formulas(graph_, sizes_, saved_);
    MemoryReport& memory = report_.memory;
    memory.parameters = amount(formulas.parameters);
    memory.gradients = amount(formulas.gradients);
    memory.optimizer_state = amount(formulas.optimizer_state);
    memory.state = amount(formulas.state);
    memory.inputs = amount(formulas.inputs);
    memory.saved_activations = amount(formulas.saved_activations, orders_.saved());
    report_.host_to_device = memory.inputs;
    if (!bound_.ok()) return;
    if (!step_) return;
    const int64_t saved = step_->formed->plan.saved_bytes;
    const Amount* parts[] = {&memory.parameters, &memory.gradients, &memory.optimizer_state, &memory.state, &memory.inputs};
    Rational rest(step_->memory.total() - saved);
    for (const Amount* part : parts) rest = rest - part->value.value_or(Rational(0));
    memory.peak_training = amount_here(Rational(step_->memory.total()));
    memory.workspace_per_thread = amount_here(Rational(step_->memory.per_thread));
    memory.saved_planned = amount_here(Rational(saved));
    memory.workspace = amount_here(rest);
    memory.at_peak = step_->memory;
    for (NodeId id : step_->formed->recomputation.values) memory.recomputed.push_back(launch_label(graph_[id]));
    hold_over_step(*step_);
    if (inference_is_step_)
      memory.peak_inference = memory.peak_training;
    else if (inference_bytes_)
      memory.peak_inference = amount_here(Rational(*inference_bytes_));
  }

  void hold_over_step(const PlannedStep& planned) {
    MemoryReport& memory = report_.memory;
    memory.over_step.clear();
    const BufferPlan& plan = planned.formed->plan;
    const int64_t always = planned.memory.total() - planned.memory.fragmentation - plan.fullest.saved - plan.fullest.others;
    for (size_t i = 0; i < planned.formed->list.kernels.size(); ++i) memory.over_step.push_back(always + plan.in_use[i]);
  }

  // With values for the dims, where the kernels put it; else as if each op were a kernel.
  Storage storage(NodeId id) const {
    const bool view = kind_of(graph_[id].op) == OpKind::view;
    if (!step_) return view && !layouts_.copies[id.index] ? Storage::view : Storage::materialized;
    const FormedGraph& formed = *step_->formed;
    if (formed.list.in_memory[formed.place_of(id).index]) return Storage::materialized;
    return view && !layouts_.copies[id.index] ? Storage::view : Storage::fused;
  }

  OpReport op_report(NodeId id) {
    const Node& node = graph_[id];
    OpReport op;
    op.id = id;
    op.storage = storage(id);
    op.copy_reason = copy_reason(graph_, layouts_, id);
    for (NodeId x : node.operands)
      if (const NodeId param = param_behind(graph_, x); param.valid()) {
        op.param_path = graph_[param].as<ParamAttr>().path;
        break;
      }
    if (constant_[id.index]) return op.flops = op.bytes_read = op.bytes_written = amount(Poly(0)), op;
    const FlopCost& cost = costs_[id.index];
    const ByteCost moved = bytes_(id);
    op.flops = amount(cost.flops, orders_.node(id));
    op.bytes_read = amount(moved.read);
    op.bytes_written = amount(moved.written);
    const auto flops = as_double(op.flops), read = as_double(op.bytes_read), written = as_double(op.bytes_written);
    if (!flops || !read || !written) return op;
    if (*read + *written > 0) op.intensity = *flops / (*read + *written);
    if (!options_.device) return op;
    if (const auto line = roofline(*options_.device, cost.kind, working_dtype(graph_, id), *flops, *read + *written)) {
      op.time_s = line->time_s;
      op.bound = line->bound;
    }
    return op;
  }

  void walk_ops() {
    if (options_.detail != Detail::ops) return;
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (kind_of(node.op) != OpKind::source || node.op == Op::iota || node.op == Op::random) report_.ops.push_back(op_report(NodeId{i}));
    }
  }

  void fill_components() {
    const auto costs = transformer_components(graph_, costs_);
    if (!costs) return;
    for (int c = 0; c < kComponents; ++c) {
      const auto k = static_cast<size_t>(c);
      report_.components.push_back(
          {std::string(to_string(static_cast<Component>(c))),
           amount(costs->parameters[k]),
           amount(divide(costs->flops[k], report_.six_nd.tokens.formula), orders_.flops(Phase::forward, FlopClass::contraction)),
           {}});
    }
    double all = 0;
    for (const ComponentReport& c : report_.components) all += as_double(c.flops_per_token).value_or(0);
    for (ComponentReport& c : report_.components)
      if (const auto flops = as_double(c.flops_per_token); flops && all > 0) c.share = *flops / all;
  }

  std::optional<double> program_peak() const { return options_.device ? contraction_peak(*options_.device, graph_.policy) : std::nullopt; }

  void fill_device() {
    if (!options_.device) return;
    DeviceReport device{*options_.device, program_peak().value_or(0), {}, {}, {}, {}};
    if (auto warning = sparse_peak_warning(device.device)) report_.notes.push_back(*warning);
    if (device.device.target == DeviceTarget::none)
      report_.notes.push_back(fmt::format("einc makes no code for {}: kernels and memory are those of an NVIDIA GPU", device.device.name));
    if (step_) {
      double time = 0;
      const auto& launches = report_.schedule;
      if (std::all_of(launches.begin(), launches.end(), [](const LaunchReport& l) { return l.time_s.has_value(); })) {
        for (const LaunchReport& launch : launches) time += static_cast<double>(launch.count) * *launch.time_s;
        device.step_time_s = time;
        const double model = as_double(report_.forward.total).value_or(0) + as_double(report_.backward.total).value_or(0);
        device.mfu_at_bound = flops_utilisation(model, time, device.peak_flops);
      } else {
        report_.notes.push_back(fmt::format("{} has no peak for some of the dtypes used: no step time", device.device.name));
      }
    }
    if (step_) device.lower_bound_s = lower_bound_seconds(*step_->formed, device.device);
    if (const auto peak = as_double(report_.memory.peak_training)) device.fits = *peak <= device.device.usable_bytes();
    report_.device = std::move(device);
  }

  void fill_training() {
    if (!options_.training) return;
    TrainingReport training{options_.training->devices, options_.training->tokens, options_.training->mfu, {}, {}, {}};
    const auto per_token = as_double(report_.per_token);
    const auto peak = program_peak();
    if (!per_token || !peak) {
      report_.notes.push_back(peak ? "no training time: a dim has no value" : "no training time: it needs --device");
      return;
    }
    training.time = training_time(*per_token * training.tokens, training.devices, *peak, training.mfu);
    if (const auto tokens = as_double(report_.six_nd.tokens)) training.steps = training.tokens / *tokens;
    const MemoryReport& memory = report_.memory;
    const double p = as_double(memory.parameters).value_or(0), g = as_double(memory.gradients).value_or(0),
                 o = as_double(memory.optimizer_state).value_or(0);
    const double n = training.devices;
    training.shards = {{"replicated", p + g + o}, {"ZeRO 1", p + g + o / n}, {"ZeRO 2", p + (g + o) / n}, {"ZeRO 3", (p + g + o) / n}};
    report_.training = std::move(training);
  }

  const Graph& graph_;
  const ReportOptions& options_;
  BindResult bound_;
  Evaluator evaluate_;
  std::vector<bool> constant_;
  Sizes sizes_;
  std::vector<FlopCost> costs_;
  Layouts layouts_;
  std::vector<NodeId> saved_;
  ChosenOrders orders_;
  ByteCounter bytes_;
  std::optional<PlannedStep> step_;  // when all dims have values
  bool inference_is_step_ = false;
  std::optional<int64_t> inference_bytes_;
  Report report_;
};

}  // namespace

// The plan of the step takes most of the time; what does not need it is done beside it.
Report build_report(const Graph& graph, const ReportOptions& options) {
  if (!options.plan && !options.compile) return ReportBuilder(graph, options).run({});
  std::optional<ReportBuilder> builder;
  std::vector<SampledReport> samples;
  const bool planned = options.plan && can_be_planned(graph, graph.dims.bind(options.given));
  OnBigStack beside([&] {
    builder.emplace(graph, options);
    if (planned) builder->plan_inference();
    if (options.compile) samples = sample_reports(graph, options.given, options.compile);
  });
  std::optional<PlannedStep> step;
  if (planned) step = options.plan(graph, options.given, mode_of_step(graph), {});
  beside.wait();
  Report report = builder->run(std::move(step));
  if (options.compile) hold_formulas(report, graph, options.given, samples);
  return report;
}

std::optional<Rational> peak_training_bytes(const Graph& graph, const Bindings& given, const PlanStep& plan) {
  if (!can_be_planned(graph, graph.dims.bind(given))) return std::nullopt;
  return Rational(plan(graph, given, mode_of_step(graph), {}).memory.total());
}

}  // namespace einc
