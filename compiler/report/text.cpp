// SPDX-License-Identifier: Apache-2.0
#include "compiler/report/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>

#include "compiler/cost/modules.h"
#include "compiler/report/amount_text.h"
#include "compiler/report/document.h"
#include "compiler/report/mesh_text.h"

namespace einc {
namespace {

constexpr size_t kMostModules = 40, kMostLaunches = 12;

// What bounds most of the step's time, and its share of it.
std::pair<LaunchBound, double> main_bound(const std::vector<LaunchReport>& schedule) {
  std::map<LaunchBound, double> shares;
  for (const LaunchReport& launch : schedule) shares[launch.bound] += launch.share;
  const auto most = std::max_element(shares.begin(), shares.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == shares.end() ? std::pair(LaunchBound::none, 0.0) : std::pair(most->first, most->second);
}

std::string rates_used(const Device& device) { return device.has_sustained_rates() ? "at sustained rates" : "each launch at its roofline"; }

std::vector<std::string> summary_lines(const Report& r) {
  const bool trains = !is_zero(r.backward.total);
  const char* run = trains ? "step" : "run";
  const Amount& peak = trains ? r.memory.peak_training : r.memory.peak_inference;
  const std::string parameters = r.parameter_count.value ? digits(r.parameter_count) : r.parameter_count.formula.str();
  std::vector<std::string> lines{fmt::format("{}: {} parameters, ", r.model.empty() ? "program" : r.model, parameters)};
  if (!r.step.value || !peak.value) {
    std::string unset;
    for (Name name : r.free_dims) unset += fmt::format(" -D {}=...", name.str());
    lines[0] += fmt::format("{} FLOPs a {}", r.step.value ? count_text(r.step) : r.step.formula.str(), run);
    lines.push_back(unset.empty() ? "no peak memory and no time: the sizes are too large for any machine"
                                  : "peak memory and time need a value for every dim: give" + unset);
    return lines;
  }
  lines[0] += fmt::format("{} FLOPs a {}, {} at the peak", count_text(r.step), run, bytes_text(peak));
  if (!r.device) {
    lines.emplace_back("no time is predicted without --device");
  } else if (!r.device->step_time_s) {
    lines.push_back(fmt::format("no time is predicted: {} has no peak for some of the dtypes", r.device->device.name));
  } else {
    const auto [bound, share] = main_bound(r.schedule);
    lines.push_back(fmt::format("{} predicted for a {} on {}, {} of it bound by {} ({})", human_seconds(*r.device->step_time_s), run,
                                r.device->device.name, percent(share), to_string(bound), rates_used(r.device->device)));
  }
  return lines;
}

class TextRenderer {
 public:
  TextRenderer(const Report& report, int width) : r_(report), amounts_(report), width_(width) {}

  Document run() {
    for (const std::string& line : summary_lines(r_)) w_.line(line);
    title();
    parameters();
    flops();
    classes();
    memory();
    dominant();
    modules();
    components();
    plans();
    device();
    training();
    if (r_.mesh) tell_mesh(r_, amounts_, w_);
    fit();
    if (amounts_.has_marked())
      w_.line("\n* holds for these dims: with others, an order of contraction, the ends of a loop or a layout may differ");
    notes();
    return std::move(w_);
  }

 private:
  std::string formula(const Amount& amount) { return amounts_.formula(amount); }

  std::string planned_for() const {
    if (r_.target == "cpu") return fmt::format("this machine's processor, memory with {} thread{}", r_.threads, r_.threads == 1 ? "" : "s");
    return (r_.device ? r_.device->device.name : std::string("NVIDIA GPUs")) + ", not measured on it";
  }

  void title() {
    w_.heading(r_.model.empty() ? "report" : r_.model, r_.precision);
    std::string dims;
    for (const auto& [name, value] : r_.dims)
      dims += fmt::format("{}{}={}", dims.empty() ? "" : " ", name.str(), value ? std::to_string(*value) : "?");
    std::string line = " ";
    for (size_t begin = 0; begin < dims.size();) {
      const size_t end = std::min(dims.find(' ', begin), dims.size());
      const std::string word = dims.substr(begin, end - begin);
      if (line.size() + word.size() + 1 > static_cast<size_t>(std::max(width_, 20)) && line.size() > 1) {
        w_.line(line);
        line = " ";
      }
      line += " " + word;
      begin = end + 1;
    }
    if (line.size() > 1) w_.line(line);
    if (!r_.target.empty()) w_.line("  kernels and memory as planned for " + planned_for());
    if (r_.free_dims.empty()) return;
    std::string unset;
    for (Name name : r_.free_dims) unset += fmt::format(" -D {}=...", name.str());
    w_.line("  without a value: give" + unset + " for numbers");
  }

  void parameters() {
    w_.heading("Parameters");
    Table table({Align::left, Align::right, Align::right, Align::left});
    table.add({"all", digits(r_.parameter_count), count_text(r_.parameter_count), formula(r_.parameter_count)});
    if (r_.trained_count.formula != r_.parameter_count.formula)
      table.add({"trained", digits(r_.trained_count), count_text(r_.trained_count), formula(r_.trained_count)});
    w_.table(table, false);
  }

  void flops() {
    w_.heading("FLOPs of one step");
    Table table({Align::left, Align::right, Align::right, Align::right, Align::left});
    const double whole = r_.step.value ? r_.step.value->to_double() : 0;
    auto add = [&](const char* name, const Amount& amount) {
      if (is_zero(amount)) return;
      const std::string share = whole > 0 && amount.value ? percent(amount.value->to_double() / whole) : "";
      table.add({name, digits(amount), count_text(amount), share, formula(amount)});
    };
    add("forward", r_.forward.total);
    add("backward", r_.backward.total);
    add("optimizer", r_.optimizer.total);
    add("step", r_.step);
    const SixNdReport& six = r_.six_nd;
    if (six.of_tokens)
      table.add({"per token", digits(r_.per_token), count_text(r_.per_token), "", "step / D"});
    else if (!r_.examples.formula.is_one() && !is_zero(r_.step))
      table.add({"per example", digits(r_.per_example), count_text(r_.per_example), "",
                 "step / " + fold_names(r_.examples.formula, r_.definitions).str()});
    const bool trains = six.of_tokens && !is_zero(r_.backward.total) && !is_zero(six.estimate);
    if (trains) table.add({"6 N D", digits(six.estimate), count_text(six.estimate), "", formula(six.estimate)});
    w_.table(table, false);
    if (trains && six.ratio)
      w_.line(fmt::format("  forward + backward is {:.4f} of 6 N D; N = all parameters, D = {} tokens ({})", *six.ratio, digits(six.tokens),
                          six.tokens_from));
  }

  void classes() {
    w_.heading("FLOPs by kind");
    const bool planned = !r_.schedule.empty();
    std::vector<Align> columns(planned ? 5 : 4, Align::right);
    columns[0] = Align::left;
    Table table(std::move(columns));
    std::vector<std::string> head{"", "forward", "backward", "optimizer"};
    if (planned) head.emplace_back("executed");
    table.add(std::move(head));
    struct Row {
      const char* name;
      Amount FlopReport::*column;
      std::optional<int64_t> executed;
    };
    const KernelWork& work = r_.executed_by;
    for (const auto& [name, column, executed] :
         {Row{"contraction", &FlopReport::contraction, work.contraction}, Row{"elementwise", &FlopReport::elementwise, work.elementwise},
          Row{"  transcendental", &FlopReport::transcendental, work.transcendental},
          Row{"reduction", &FlopReport::reduction, work.reduction}, Row{"other", &FlopReport::other, std::nullopt}}) {
      const Amount &f = r_.forward.*column, &b = r_.backward.*column, &o = r_.optimizer.*column;
      if (is_zero(f) && is_zero(b) && is_zero(o)) continue;
      auto cell = [](const Amount& a) { return is_zero(a) ? std::string("-") : digits(a); };
      std::vector<std::string> cells{name, cell(f), cell(b), cell(o)};
      if (planned) cells.push_back(executed ? grouped_digits(std::to_string(*executed)) : "");
      table.add(std::move(cells));
    }
    w_.table(table, true);
  }

  void memory() {
    const MemoryReport& m = r_.memory;
    if (m.at_peak) return memory_at_peak();
    w_.heading("Memory");
    Table table({Align::left, Align::right, Align::right, Align::left});
    auto add = [&](const char* name, const Amount& amount) {
      if (is_zero(amount) && (amount.value || !amount.for_dims_only)) return;
      table.add({name, digits(amount), bytes_text(amount), formula(amount)});
    };
    add("parameters", m.parameters);
    add("gradients", m.gradients);
    add("optimizer state", m.optimizer_state);
    add("state", m.state);
    add("inputs", m.inputs);
    add("unfused, saved for the backward", m.saved_activations);
    w_.table(table, false);
    w_.line("  what is in memory at once, and how much at the peak, needs a value for every dim");
  }

  // Rows that add up to the peak, each with its formula where it is one of whole tensors.
  void memory_at_peak() {
    const MemoryReport& m = r_.memory;
    const PlannedMemory& at = *m.at_peak;
    const bool trains = !is_zero(r_.backward.total);
    w_.heading("Memory", fmt::format("at the peak of a {}, which is at {}", trains ? "step" : "run", at.launch));
    Table table({Align::left, Align::right, Align::right, Align::left});
    const auto row = [&](const char* name, int64_t bytes, const std::string& note) {
      const Amount amount{Poly(Rational(bytes)), Rational(bytes), true, false};
      if (bytes > 0) table.add({name, digits(amount), bytes_text(amount), note});
    };
    const auto of_tensors = [&](const char* name, int64_t bytes, const Amount& whole) {
      row(name, bytes, whole.value == Rational(bytes) ? formula(whole) : "of " + bytes_text(whole) + " in all");
    };
    of_tensors("parameters", at.parameters, m.parameters);
    of_tensors("gradients", at.gradients, m.gradients);
    of_tensors("optimizer state", at.optimizer_state, m.optimizer_state);
    of_tensors("state", at.state, m.state);
    of_tensors("inputs", at.inputs, m.inputs);
    row("kept for the backward", at.saved, "for these dims");
    row("workspace", at.workspace, "for these dims");
    row("  of each thread", at.per_thread, "for these dims");
    row("fragmentation", at.fragmentation, "for these dims");
    row("peak", at.total(), "for these dims");
    w_.table(table, false);
    if (!m.recomputed.empty()) w_.line(made_again(m.recomputed));
    if (trains && m.peak_inference.value)
      w_.line(fmt::format("  peak of inference (not part of the sum): {}", bytes_text(m.peak_inference)));
    if (!is_zero(m.saved_activations))
      w_.line(fmt::format("  unfused, without recomputation, the backward would keep {}: {}", bytes_text(m.saved_activations),
                          formula(m.saved_activations)));
  }

  static const char* short_name(Phase phase) {
    switch (phase) {
      case Phase::forward:
        return "fwd";
      case Phase::backward:
        return "bwd";
      case Phase::optimizer:
        return "opt";
    }
    return "";
  }

  // Launches alike are one row; those that take the most come first.
  void dominant() {
    std::vector<const LaunchReport*> rows;
    for (const LaunchReport& launch : r_.schedule)
      if (launch.share > 0) rows.push_back(&launch);
    if (rows.empty()) return;
    std::stable_sort(rows.begin(), rows.end(), [](const LaunchReport* a, const LaunchReport* b) { return a->share > b->share; });
    const bool timed = rows.front()->time_s.has_value();
    w_.heading("Where the work is", timed ? "by time, " + r_.device->device.name : "by FLOPs");
    Table table({Align::right, Align::left, Align::left, Align::left, Align::right, Align::right, Align::right, Align::left, Align::left});
    table.add({"share", "", "", "launch", "times", "FLOPs each", "bytes each", timed ? "each, bound by" : "", "line"});
    for (const LaunchReport* launch : std::span(rows).first(std::min(rows.size(), kMostLaunches))) {
      constexpr double kCells = 10;
      std::string bar;
      for (int i = 0; i < static_cast<int>(launch->share * kCells + 0.5); ++i) bar += "█";
      const KernelWork& work = launch->traffic.work;
      const std::string time = timed ? fmt::format("{} {}", human_seconds(*launch->time_s), to_string(launch->bound)) : "";
      table.add({percent(launch->share), bar, short_name(launch->phase), launch->name, std::to_string(launch->count),
                 human_count(static_cast<double>(work.flops())), human_bytes(static_cast<double>(work.bytes_read + work.bytes_written)),
                 time, launch->source.line > 0 ? std::to_string(launch->source.line) : ""});
    }
    w_.table(table, true);
    if (rows.size() > kMostLaunches) w_.line(fmt::format("  {} more: --report=json lists all", rows.size() - kMostLaunches));
  }

  // Paths alike but for their loop indices, with equal costs, are one row.
  void modules() {
    if (r_.modules.size() < 2) return;
    struct Row {
      const ModuleReport* first;
      std::string path;
      int64_t times;
    };
    std::vector<Row> rows;
    std::map<std::string, std::vector<size_t>> seen;
    for (const ModuleReport& m : r_.modules) {
      if (m.path.empty()) continue;
      if (is_zero(m.parameters) && is_zero(m.flops_forward) && is_zero(m.saved_activations)) continue;  // schedules
      const std::string path = starred(m.path);
      auto& alike = seen[path];
      const auto same = std::find_if(alike.begin(), alike.end(), [&](size_t k) {
        const ModuleReport& o = *rows[k].first;
        return o.parameters.formula == m.parameters.formula && o.flops_forward.formula == m.flops_forward.formula &&
               o.flops_step.formula == m.flops_step.formula && o.saved_activations.formula == m.saved_activations.formula;
      });
      if (same != alike.end()) {
        ++rows[*same].times;
        continue;
      }
      alike.push_back(rows.size());
      rows.push_back({&m, path, 1});
    }
    w_.heading("Modules", "each");
    Table table({Align::left, Align::right, Align::right, Align::right, Align::right, Align::right});
    table.add({"path", "times", "parameters", "forward", "step", "saved"});
    for (size_t i = 0; i < rows.size() && i < kMostModules; ++i) {
      const ModuleReport& m = *rows[i].first;
      const std::string& name = rows[i].times > 1 ? rows[i].path : m.path;
      table.add({name, std::to_string(rows[i].times), digits(m.parameters), count_text(m.flops_forward), count_text(m.flops_step),
                 bytes_text(m.saved_activations)});
    }
    w_.table(table, true);
    if (rows.size() > kMostModules) w_.line(fmt::format("  {} more: --report=json lists all", rows.size() - kMostModules));
  }

  void components() {
    if (r_.components.empty()) return;
    w_.heading("Transformer", "forward FLOPs of one token");
    Table table({Align::left, Align::right, Align::right, Align::right, Align::left});
    table.add({"component", "parameters", "FLOPs", "share", "FLOPs"});
    for (const ComponentReport& c : r_.components)
      table.add({c.name, digits(c.parameters), digits(c.flops_per_token), c.share ? percent(*c.share) : "?", formula(c.flops_per_token)});
    w_.table(table, true);
  }

  void plans() {
    if (r_.plans.empty()) return;
    w_.heading("Contraction orders", "for these dims");
    Table table({Align::left, Align::left, Align::left, Align::left});
    for (const ContractionPlan& p : r_.plans)
      table.add({fmt::format("line {}", p.location.line), p.pattern, p.order, fold_names(p.flops, r_.definitions).str()});
    w_.table(table, false);
  }

  void device() {
    if (!r_.device) return;
    const DeviceReport& d = *r_.device;
    w_.heading("On " + d.device.name, d.device.description);
    w_.line(fmt::format("  peak {}FLOP/s, {}B/s, {:.4g} GB, {:.2g} of them reserved", human_count(d.peak_flops),
                        human_count(d.device.bandwidth), d.device.memory_bytes / 1e9, d.device.reserve_bytes / 1e9));
    if (d.device.has_sustained_rates())
      w_.line(fmt::format("  sustained in long runs: products at most {} of the peak, memory {} of its rate",
                          percent(d.device.sustained_clock * d.device.sustained_products), percent(d.device.sustained_bandwidth)));
    if (d.step_time_s) w_.line(fmt::format("  one step takes {} ({})", human_seconds(*d.step_time_s), rates_used(d.device)));
    if (d.lower_bound_s) w_.line(fmt::format("  and never less than {}", human_seconds(*d.lower_bound_s)));
    if (d.mfu_at_bound)
      w_.line(fmt::format("  MFU at that time {}", percent(*d.mfu_at_bound)));
    else if (d.step_time_s && d.peak_flops > 0)
      w_.line("  no MFU: the step skips work that these rules count");
    if (d.fits) w_.line(*d.fits ? "  the training step fits its memory" : "  the training step does not fit its memory");
  }

  void training() {
    if (!r_.training) return;
    const TrainingReport& t = *r_.training;
    w_.heading("Training", fmt::format("{} tokens, {:.6g} devices, MFU {}", human_count(t.tokens), t.devices, percent(t.mfu)));
    w_.line(fmt::format("  {:.6g} FLOPs, {:.6g} FLOPs a day: {:.2f} days, {} device-hours", t.time.flops, t.time.flops_per_day, t.time.days,
                        grouped_digits(fmt::format("{:.0f}", t.time.device_hours))));
    if (t.steps) w_.line(fmt::format("  {} steps of this batch", grouped_digits(fmt::format("{:.0f}", *t.steps))));
    for (const auto& shard : t.shards)
      w_.line(
          fmt::format("  {:<10}  {} of parameters, gradients and optimizer state on each device", shard.name, human_bytes(shard.bytes)));
  }

  void fit() {
    if (!r_.fit) return;
    const FitResult& f = r_.fit->result;
    w_.heading("Largest " + r_.fit->dim.str() + " that fits");
    if (!f.value) return w_.line("  none: not even the smallest");
    w_.line(fmt::format("  {} = {}{}, peak {}", r_.fit->dim.str(), grouped_digits(std::to_string(*f.value)),
                        f.at_limit ? " (the search's limit)" : "", f.bytes ? human_bytes(f.bytes->to_double()) : "?"));
  }

  void notes() {
    if (r_.notes.empty()) return;
    w_.heading("Notes");
    for (const std::string& note : r_.notes) w_.line("  " + note);
  }

  const Report& r_;
  AmountText amounts_;
  const int width_;
  Document w_;
};

}  // namespace

std::string render_summary(const Report& report) {
  std::string text;
  for (const std::string& line : summary_lines(report)) text += line + "\n";
  return text;
}

Document report_document(const Report& report, int width) { return TextRenderer(report, width).run(); }

std::string render_text(const Report& report, TextStyle style) { return report_document(report, style.width).text(style); }

std::string explain_memory(const Report& report, const Graph& graph, TextStyle style) {
  Document w;
  w.heading("Storage of every value", "views share their base's buffer");
  Table table({Align::right, Align::left, Align::left, Align::left, Align::right, Align::left});
  table.add({"node", "value", "type", "storage", "written", "why it moves"});
  for (const OpReport& op : report.ops) {
    const Node& node = graph[op.id];
    const std::string module = node.origin.module.empty() ? "" : node.origin.module.str() + ": ";
    table.add({fmt::format("%{}", op.id.index), module + what(node), to_string(node.type),
               op.storage == Storage::view    ? "view"
               : op.storage == Storage::fused ? "fused"
                                              : "stored",
               op.storage == Storage::view ? "" : bytes_text(op.bytes_written), op.copy_reason});
  }
  w.table(table, true);
  return w.text(style);
}

}  // namespace einc
