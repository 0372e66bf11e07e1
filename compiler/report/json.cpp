// SPDX-License-Identifier: Apache-2.0
#include "compiler/report/json.h"

#include <unordered_map>

#include "compiler/report/json_number.h"

namespace einc {
namespace {

class JsonRenderer {
 public:
  JsonRenderer(const Report& report, const Graph& graph) : report_(report), graph_(graph) {}

  std::string run() {
    Json json;
    json["model"] = report_.model;
    json["target"] = report_.target.empty() ? Json(nullptr) : Json(report_.target);
    json["threads"] = report_.threads > 0 ? Json(report_.threads) : Json(nullptr);
    Json dims = Json::object();
    for (const auto& [name, value] : report_.dims) dims[name.str()] = value ? exact(Rational(*value)) : Json(nullptr);
    json["dims"] = dims;
    Json free = Json::array();
    for (Name name : report_.free_dims) free.push_back(name.str());
    json["free_dims"] = free;
    json["precision"] = report_.precision;
    json["parameters"] = parameters();
    json["inputs"] = tensors(report_.inputs);
    json["states"] = tensors(report_.states);
    json["flops"] = flops();
    json["modules"] = modules();
    json["six_nd"] = six_nd();
    json["memory"] = memory();
    json["components"] = components();
    json["contraction_orders"] = plans();
    json["schedule"] = schedule();
    json["ops"] = ops();
    json["device"] = device();
    json["training"] = training();
    json["fit"] = fit();
    json["mesh"] = mesh();
    json["communication"] = communication();
    json["per_device"] = per_device();
    json["notes"] = report_.notes;
    return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  }

 private:
  const std::string& symbolic(const Poly& formula) {
    auto it = text_.find(formula);
    if (it == text_.end()) it = text_.emplace(formula, fold_names(formula, report_.definitions).str()).first;
    return it->second;
  }

  Json axes(const Type& type) {
    Json names = Json::array();
    for (const Axis& axis : type.axes) names.push_back(axis.name.str());
    return names;
  }
  Json shape(const Type& type) {
    Json sizes = Json::array();
    for (const Axis& axis : type.axes) sizes.push_back(exact(axis.size.evaluate(dims())));
    return sizes;
  }
  const Bindings& dims() {
    if (dims_.empty())
      for (const auto& [name, value] : report_.dims)
        if (value) dims_.emplace(name, *value);
    return dims_;
  }

  // Marks what holds for the dims in use only.
  static Json marked(Json json, const Amount& amount) {
    if (amount.holds_here) json["valid_for"] = "dims";
    return json;
  }

  Json tensors(const std::vector<TensorReport>& list) {
    Json result = Json::array();
    for (const TensorReport& t : list) {
      Json row{{"name", t.name},
               {"axes", axes(t.type)},
               {"shape", shape(t.type)},
               {"dtype", to_string(t.type.dtype)},
               {"count", exact(t.count.value)}};
      row["symbolic"] = symbolic(t.count.formula);
      if (t.frozen) row["frozen"] = true;
      result.push_back(std::move(row));
    }
    return result;
  }

  Json parameters() {
    return marked({{"count", exact(report_.parameter_count.value)},
                   {"symbolic", symbolic(report_.parameter_count.formula)},
                   {"trained", exact(report_.trained_count.value)},
                   {"tensors", tensors(report_.parameters)}},
                  report_.parameter_count);
  }

  Json phase(const FlopReport& f) {
    const std::pair<const char*, const Amount*> rows[] = {{"contraction", &f.contraction},       {"elementwise", &f.elementwise},
                                                          {"reduction", &f.reduction},           {"other", &f.other},
                                                          {"transcendental", &f.transcendental}, {"total", &f.total}};
    Json json, formulas;
    for (const auto& [key, amount] : rows) {
      json[key] = exact(amount->value);
      formulas[key] = symbolic(amount->formula);
    }
    json["symbolic"] = formulas;
    for (const auto& [key, amount] : rows) json = marked(std::move(json), *amount);
    return json;
  }

  Json flops() {
    Json json{{"forward", phase(report_.forward)},
              {"backward", phase(report_.backward)},
              {"optimizer", phase(report_.optimizer)},
              {"step", exact(report_.step.value)},
              {"step_symbolic", symbolic(report_.step.formula)},
              {"executed", exact(report_.executed.value)},
              {"executed_symbolic", symbolic(report_.executed.formula)},
              {"executed_by", executed_by()},
              {"per_token", exact(report_.per_token.value)},
              {"per_token_symbolic", symbolic(report_.per_token.formula)},
              {"examples", exact(report_.examples.value)},
              {"per_example", exact(report_.per_example.value)},
              {"per_example_symbolic", symbolic(report_.per_example.formula)}};
    return marked(std::move(json), report_.step);
  }

  Json executed_by() {
    if (report_.schedule.empty()) return nullptr;
    const KernelWork& work = report_.executed_by;
    return {{"contraction", work.contraction},
            {"elementwise", work.elementwise},
            {"reduction", work.reduction},
            {"transcendental", work.transcendental}};
  }

  Json modules() {
    Json result = Json::array();
    for (const ModuleReport& m : report_.modules) {
      Json row{{"path", m.path},
               {"parameters", exact(m.parameters.value)},
               {"flops_forward", exact(m.flops_forward.value)},
               {"flops_step", exact(m.flops_step.value)},
               {"saved_activations", exact(m.saved_activations.value)}};
      row["symbolic"] = {{"parameters", symbolic(m.parameters.formula)},
                         {"flops_forward", symbolic(m.flops_forward.formula)},
                         {"flops_step", symbolic(m.flops_step.formula)},
                         {"saved_activations", symbolic(m.saved_activations.formula)}};
      result.push_back(marked(marked(std::move(row), m.flops_step), m.saved_activations));
    }
    return result;
  }

  Json six_nd() {
    const SixNdReport& six = report_.six_nd;
    Json json{{"parameters", exact(six.parameters.value)},
              {"tokens", exact(six.tokens.value)},
              {"estimate", exact(six.estimate.value)},
              {"ratio", number(six.ratio)}};
    json["tokens_from"] = six.tokens_from;
    json["of_tokens"] = six.of_tokens;
    json["symbolic"] = {{"tokens", symbolic(six.tokens.formula)}, {"estimate", symbolic(six.estimate.formula)}};
    if (report_.forward.total.holds_here || report_.backward.total.holds_here) json["valid_for"] = "dims";
    return json;
  }

  Json bytes(const Amount& amount) {
    Json json{{"bytes", exact(amount.value)}};
    if ((amount.value && amount.for_dims_only) || amount.holds_here) json["valid_for"] = "dims";
    json["symbolic"] = amount.for_dims_only || !amount.formula.is_zero() || amount.value ? Json(symbolic(amount.formula)) : Json(nullptr);
    return json;
  }

  // Rows that add up to the peak.
  Json at_peak() {
    if (!report_.memory.at_peak) return nullptr;
    const PlannedMemory& m = *report_.memory.at_peak;
    return {{"parameters", m.parameters},
            {"gradients", m.gradients},
            {"optimizer_state", m.optimizer_state},
            {"state", m.state},
            {"inputs", m.inputs},
            {"kept_for_backward", m.saved},
            {"workspace", m.workspace},
            {"fragmentation", m.fragmentation}};
  }

  Json memory() {
    const MemoryReport& m = report_.memory;
    Json json;
    json["parameters"] = bytes(m.parameters);
    json["gradients"] = bytes(m.gradients);
    json["optimizer_state"] = bytes(m.optimizer_state);
    json["state"] = bytes(m.state);
    json["saved_activations"] = bytes(m.saved_activations);
    json["saved_activations"]["planned"] = exact(m.saved_planned.value);
    json["inputs"] = bytes(m.inputs);
    json["workspace"] = bytes(m.workspace);
    json["workspace_per_thread"] = bytes(m.workspace_per_thread);
    json["peak_training"] = bytes(m.peak_training);
    json["peak_inference"] = bytes(m.peak_inference);
    json["host_to_device"] = bytes(report_.host_to_device);
    json["at_peak"] = at_peak();
    json["peak_launch"] = m.at_peak ? Json(m.at_peak->launch) : Json(nullptr);
    json["recomputed"] = m.recomputed;
    return json;
  }

  Json components() {
    Json result = Json::array();
    for (const ComponentReport& c : report_.components)
      result.push_back(
          marked({{"name", c.name},
                  {"parameters", exact(c.parameters.value)},
                  {"flops_per_token", exact(c.flops_per_token.value)},
                  {"share", number(c.share)},
                  {"symbolic", {{"parameters", symbolic(c.parameters.formula)}, {"flops_per_token", symbolic(c.flops_per_token.formula)}}}},
                 c.flops_per_token));
    return result;
  }

  Json plans() {
    Json result = Json::array();
    for (const ContractionPlan& plan : report_.plans)
      result.push_back({{"line", plan.location.line},
                        {"pattern", plan.pattern},
                        {"order", plan.order},
                        {"method", plan.method},
                        {"flops", symbolic(plan.flops)},
                        {"valid_for", "dims"}});
    return result;
  }

  static const char* text(Storage storage) {
    switch (storage) {
      case Storage::view:
        return "view";
      case Storage::fused:
        return "fused";
      case Storage::materialized:
        return "materialized";
    }
    return "";
  }
  static Json text(Bound bound) {
    switch (bound) {
      case Bound::none:
        return nullptr;
      case Bound::compute:
        return "compute";
      case Bound::memory:
        return "memory";
    }
    return nullptr;
  }
  static std::string_view function(const Node& node) {
    if (node.op == Op::map) return to_string(node.as<MapAttr>().fn);
    if (node.op == Op::reduce) return to_string(node.as<ReduceAttr>().fn);
    return "";
  }

  Json op(const OpReport& op) {
    const Node& node = graph_[op.id];
    const SourceLocation& at = node.origin.location;
    Json json{{"id", op.id.index}, {"kind", to_string(node.op)}, {"phase", to_string(node.origin.phase)}};
    if (const auto fn = function(node); !fn.empty()) json["function"] = fn;
    json["label"] = node.origin.label.str();
    json["module"] = node.origin.module.str();
    json["param_path"] = op.param_path.empty() ? Json(nullptr) : Json(op.param_path.str());
    json["source"] = {{"file", at.file.str()}, {"line", at.line}, {"column", at.column}};
    json["axes"] = axes(node.type);
    json["shape"] = shape(node.type);
    json["dtype"] = to_string(node.type.dtype);
    json["storage"] = text(op.storage);
    json["copy_reason"] = op.copy_reason.empty() ? Json(nullptr) : Json(op.copy_reason);
    json["flops"] = exact(op.flops.value);
    json["flops_symbolic"] = symbolic(op.flops.formula);
    json["bytes_read"] = exact(op.bytes_read.value);
    json["bytes_written"] = exact(op.bytes_written.value);
    json["intensity"] = number(op.intensity);
    json["bound"] = text(op.bound);
    json["time_s"] = number(op.time_s);
    return marked(std::move(json), op.flops);
  }

  Json ops() {
    Json result = Json::array();
    for (const OpReport& o : report_.ops) result.push_back(op(o));
    return result;
  }

  Json schedule() {
    Json result = Json::array();
    for (size_t i = 0; i < report_.schedule.size(); ++i) {
      const LaunchReport& launch = report_.schedule[i];
      const KernelWork& work = launch.traffic.work;
      result.push_back({{"id", i},
                        {"name", launch.name},
                        {"kind", launch.kind},
                        {"phase", to_string(launch.phase)},
                        {"count", launch.count},
                        {"flops", work.flops()},
                        {"bytes", work.bytes_read + work.bytes_written},
                        {"memory_bytes", report_.device ? Json(launch.traffic.from_memory + launch.traffic.to_memory) : Json(nullptr)},
                        {"time_s", number(launch.time_s)},
                        {"bound", launch.bound == LaunchBound::none ? Json(nullptr) : Json(to_string(launch.bound))},
                        {"source", {{"file", launch.source.file.str()}, {"line", launch.source.line}, {"column", launch.source.column}}}});
    }
    return result;
  }

  Json device() {
    if (!report_.device) return nullptr;
    const DeviceReport& d = *report_.device;
    Json links = Json::array();
    for (const DeviceLink& link : d.device.links) {
      links.push_back({{"name", link.name}, {"bandwidth", link.bandwidth}, {"latency_s", link.latency_s}});
      if (link.devices < kAnyNumberOfDevices) links.back()["devices"] = link.devices;
    }
    Json json{{"name", d.device.name},
              {"peak_flops", d.peak_flops},
              {"bandwidth", d.device.bandwidth},
              {"memory_bytes", d.device.memory_bytes},
              {"reserve_bytes", d.device.reserve_bytes},
              {"reserve_source", d.device.reserve_source},
              {"sustained",
               {{"clock", d.device.sustained_clock},
                {"products", d.device.sustained_products},
                {"fp8_products", d.device.sustained_fp8},
                {"bandwidth", d.device.sustained_bandwidth},
                {"warp_products", d.device.warp_products}}},
              {"links", std::move(links)},
              {"step_time_s", number(d.step_time_s)},
              {"lower_bound_s", number(d.lower_bound_s)},
              {"mfu_at_bound", number(d.mfu_at_bound)},
              {"fits", d.fits ? Json(*d.fits) : Json(nullptr)}};
    return marked(std::move(json), report_.step);
  }

  Json training() {
    if (!report_.training) return nullptr;
    const TrainingReport& t = *report_.training;
    Json shards = Json::array();
    for (const auto& shard : t.shards) shards.push_back({{"scheme", shard.name}, {"bytes_per_device", shard.bytes}});
    Json json{{"devices", t.devices},
              {"tokens", t.tokens},
              {"mfu", t.mfu},
              {"flops", t.time.flops},
              {"seconds", t.time.seconds},
              {"days", t.time.days},
              {"device_hours", t.time.device_hours},
              {"steps", number(t.steps)},
              {"shards", shards}};
    return marked(std::move(json), report_.step);
  }

  Json mesh() {
    if (!report_.mesh) return nullptr;
    Json axes = Json::array();
    for (const auto& [name, size] : report_.mesh->axes) axes.push_back({{"name", name.str()}, {"size", exact(size.value)}});
    Json json = {{"axes", axes}, {"devices", exact(report_.mesh->devices.value)}};
    if (report_.mesh->pipeline) json["pipeline"] = pipeline(*report_.mesh->pipeline);
    return json;
  }

  static Json pipeline(const PipelineReport& p) {
    Json stages = Json::array();
    for (const StageReport& s : p.stages)
      stages.push_back({{"first", s.first},
                        {"iterations", s.iterations},
                        {"held", s.held},
                        {"flops", exact(s.flops.value)},
                        {"parameters", exact(s.parameters.value)},
                        {"peak", exact(s.peak.value)},
                        {"forward_s", number(s.forward_s)},
                        {"backward_s", number(s.backward_s)},
                        {"update_s", number(s.update_s())},
                        {"idle_s", number(s.idle_s)}});
    return {{"axis", p.axis.str()}, {"loop", p.loop.str()}, {"microbatches", p.microbatches}, {"shown", p.shown}, {"stages", stages}};
  }

  Json communication() {
    Json result = Json::array();
    if (!report_.mesh) return result;
    for (const CommunicationRow& row : report_.mesh->rows)
      result.push_back({{"valid_for", "dims"},
                        {"kind", to_string(row.kind)},
                        {"axis", row.axis.str()},
                        {"phase", to_string(row.phase)},
                        {"count", row.count},
                        {"bytes", exact(row.bytes.value)},
                        {"symbolic", symbolic(row.bytes.formula)},
                        {"link", row.link.empty() ? Json(nullptr) : Json(row.link)},
                        {"time_s", number(row.time_s)},
                        {"exposed_s", number(row.exposed_s)},
                        {"saved_s", row.saved_s},
                        {"value", row.what},
                        {"why", row.why},
                        {"source", {{"file", row.source.file.str()}, {"line", row.source.line}, {"column", row.source.column}}}});
    return result;
  }

  static Json planned_device(const std::optional<DeviceStepReport>& step) {
    if (!step) return nullptr;
    return {{"executed", exact(step->executed.value)}, {"values", exact(step->values.value)}, {"workspace", exact(step->workspace.value)},
            {"process", exact(step->process.value)},   {"peak", exact(step->peak.value)},     {"recomputed", step->recomputed}};
  }

  Json per_device() {
    if (!report_.mesh) return nullptr;
    const MeshReport& m = *report_.mesh;
    Json result = Json::object();
    for (const auto& [key, amount] :
         {std::pair("flops", &m.flops), std::pair("parameters", &m.parameters), std::pair("gradients", &m.gradients),
          std::pair("optimizer_state", &m.optimizer_state), std::pair("inputs", &m.inputs), std::pair("communication", &m.bytes)})
      result[key] = {{std::string_view(key) == "flops" ? "count" : "bytes", exact(amount->value)},
                     {"symbolic", symbolic(amount->formula)},
                     {"valid_for", "dims"}};
    result["planned"] = planned_device(m.step);
    result["communication_s"] = number(m.time_s);
    result["compute_s"] = number(m.compute_s);
    result["exposed_s"] = number(m.exposed_s);
    result["saved_s"] = m.saved_s();
    result["step_time_s"] = number(m.step_time_s());
    if (m.pipeline) result["idle_s"] = number(m.idle_s);
    result["mfu"] = number(m.mfu);
    return result;
  }

  Json fit() {
    if (!report_.fit) return nullptr;
    const FitResult& result = report_.fit->result;
    return {{"dim", report_.fit->dim.str()},
            {"value", result.value ? Json(*result.value) : Json(nullptr)},
            {"peak_training", exact(result.bytes)},
            {"at_limit", result.at_limit}};
  }

  const Report& report_;
  const Graph& graph_;
  Bindings dims_;
  std::unordered_map<Poly, std::string> text_;
};

}  // namespace

std::string render_json(const Report& report, const Graph& graph) { return JsonRenderer(report, graph).run(); }

std::string render_csv(const Report& report, const Graph& graph) {
  std::string out = "path,value\n";
  const auto quoted = [](const std::string& text) {
    if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
    std::string result = "\"";
    for (const char c : text) result += c == '"' ? "\"\"" : std::string(1, c);
    return result + "\"";
  };
  const auto walk = [&](const auto& self, const Json& json, const std::string& path) -> void {
    if (json.is_structured()) {
      for (const auto& [key, value] : json.items()) self(self, value, path.empty() ? key : path + "." + key);
      return;
    }
    out += quoted(path) + "," + quoted(json.is_string() ? json.get<std::string>() : json.is_null() ? "" : json.dump()) + "\n";
  };
  walk(walk, Json::parse(render_json(report, graph)), "");
  return out;
}

}  // namespace einc
