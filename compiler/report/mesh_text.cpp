// SPDX-License-Identifier: Apache-2.0
#include "compiler/report/mesh_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/report/factor.h"

namespace einc {
namespace {

class MeshText {
 public:
  MeshText(const Report& report, AmountText& amounts, Document& out) : report_(report), mesh_(*report.mesh), amounts_(amounts), out_(out) {}

  void run() {
    if (mesh_.pipeline) pipeline(*mesh_.pipeline);
    communication();
    each_device();
  }

 private:
  void pipeline(const PipelineReport& p) {
    out_.heading(fmt::format("Stages of {} over {}", p.loop.str(), p.axis.str()),
                 fmt::format("{} microbatches: one forward, one backward", p.microbatches));
    Table table({Align::right, Align::right, Align::right, Align::right, Align::right, Align::right, Align::right, Align::right,
                 Align::right, Align::right, Align::right});
    const bool timed = p.stages[0].idle_s.has_value();
    const auto column = [&](const char* name) { return timed ? name : ""; };
    table.add({"stage", "iterations", "FLOPs", "parameters", "", "held", "peak", column("forward"), column("backward"), column("update"),
               column("idle")});
    const auto seconds = [](const std::optional<double>& s) { return s ? human_seconds(*s) : ""; };
    for (size_t s = 0; s < p.stages.size(); ++s) {
      const StageReport& stage = p.stages[s];
      table.add({std::to_string(s), fmt::format("{}..{}", stage.first, stage.first + stage.iterations - 1), count_text(stage.flops),
                 digits(stage.parameters), bytes_text(stage.parameters), std::to_string(stage.held), bytes_text(stage.peak),
                 seconds(stage.forward_s), seconds(stage.backward_s), seconds(stage.update_s()), seconds(stage.idle_s)});
    }
    out_.table(table, true);
    out_.line("  held: microbatches on their way, whose activations a stage keeps; forward and backward: of one of them");
    out_.line(fmt::format("  below: a device of stage {}, which has the most FLOPs", p.shown));
  }

  // Rows of one kind over one axis are one line; --explain=sharding tells them apart.
  void communication() {
    std::string mesh;
    for (const auto& [name, size] : mesh_.axes)
      mesh += fmt::format("{}{} {}", mesh.empty() ? "mesh " : " x ", name.str(), size.value ? size.value->str() : "?");
    out_.heading("Communication a step, each device", mesh + (mesh_.devices.value ? ": " + mesh_.devices.value->str() + " devices" : ""));
    Table table({Align::left, Align::left, Align::right, Align::right, Align::right, Align::right, Align::right, Align::left, Align::left});
    table.add({"", "axis", "times", "bytes sent", "", "time", mesh_.exposed_s ? "hidden" : "", "link", "formula"});
    std::vector<std::pair<CollectiveKind, Name>> kinds;
    for (const CommunicationRow& row : mesh_.rows)
      if (std::ranges::find(kinds, std::pair(row.kind, row.axis)) == kinds.end()) kinds.emplace_back(row.kind, row.axis);
    for (const auto& [kind, axis] : kinds) communication_line(kind, axis, table);
    const std::string time = mesh_.time_s ? human_seconds(*mesh_.time_s) : "";
    const double saved = mesh_.saved_s();
    table.add(
        {"all", "", "", digits(mesh_.bytes), bytes_text(mesh_.bytes), time, hidden_text(mesh_.time_s, mesh_.exposed_s, saved), "", ""});
    out_.table(table, true);
    if (mesh_.exposed_s && *mesh_.time_s > 0) out_.line("  hidden: while launches go on that wait for nothing of it");
    if (saved > 0)
      out_.line(fmt::format("  time: of each alone; {} less, as a few bytes go with others in one move", human_seconds(saved)));
  }

  void each_device() {
    out_.heading("Each device", "of the whole program above");
    Table share({Align::left, Align::right, Align::right, Align::left});
    share.add({"FLOPs of a step", digits(mesh_.flops), count_text(mesh_.flops), amounts_.formula(mesh_.flops)});
    for (const auto& [name, amount] : {std::pair("parameters", &mesh_.parameters), std::pair("gradients", &mesh_.gradients),
                                       std::pair("optimizer state", &mesh_.optimizer_state), std::pair("inputs", &mesh_.inputs)})
      if (!is_zero(*amount)) share.add({name, digits(*amount), bytes_text(*amount), amounts_.formula(*amount)});
    out_.table(share, false);
    if (mesh_.step) planned_device(*mesh_.step);
    if (const auto step = mesh_.step_time_s())
      out_.line(fmt::format("  a step takes {}: {} of work as planned, {} of communication that is not hidden{}{}", human_seconds(*step),
                            human_seconds(*mesh_.compute_s), human_seconds(*mesh_.exposed_s),
                            mesh_.idle_s ? fmt::format(", {} idle while other stages work", human_seconds(*mesh_.idle_s)) : "",
                            mesh_.mfu ? ", MFU " + percent(*mesh_.mfu) : ""));
  }

  void planned_device(const DeviceStepReport& step) {
    Table rows({Align::left, Align::right, Align::right, Align::left});
    rows.add({"FLOPs as planned", digits(step.executed), count_text(step.executed), ""});
    for (const auto& [name, amount, what] : {std::tuple("values", &step.values, "of the step, what is moved and what it leaves"),
                                             std::tuple("workspace", &step.workspace, "what launches work in"),
                                             std::tuple("process", &step.process, "what a process of one device holds besides"),
                                             std::tuple("peak", &step.peak, "of all these")})
      if (!is_zero(*amount)) rows.add({name, digits(*amount), bytes_text(*amount), what});
    out_.table(rows, false);
    if (!step.recomputed.empty()) out_.line(made_again(step.recomputed));
  }

  static std::string hidden_text(std::optional<double> time, std::optional<double> exposed, double saved) {
    return time && exposed ? human_seconds(std::max(0.0, *time - *exposed - saved)) : "";
  }

  void communication_line(CollectiveKind kind, Name axis, Table& table) {
    Amount bytes{Poly(0), Rational(0), false, true};
    int64_t count = 0;
    std::optional<double> time = 0, exposed = 0;
    double saved = 0;
    std::string link;
    for (const CommunicationRow& row : mesh_.rows) {
      if (row.kind != kind || row.axis != axis) continue;
      bytes.formula += row.bytes.formula;
      bytes.for_dims_only = row.bytes.for_dims_only;
      bytes.value = bytes.value && row.bytes.value ? std::optional(*bytes.value + *row.bytes.value) : std::nullopt;
      count += row.count;
      time = time && row.time_s ? std::optional(*time + *row.time_s) : std::nullopt;
      exposed = exposed && row.exposed_s ? std::optional(*exposed + *row.exposed_s) : std::nullopt;
      saved += row.saved_s, link = row.link;
    }
    table.add({std::string(to_string(kind)), axis.str(), std::to_string(count), digits(bytes), bytes_text(bytes),
               time ? human_seconds(*time) : "", hidden_text(time, exposed, saved), link, ring_formula(axis, bytes)});
  }

  // A ring's share stands before what is moved: (data-1)/data*(...).
  std::string ring_formula(Name axis, const Amount& bytes) {
    const auto found = std::ranges::find(mesh_.axes, axis, &std::pair<Name, Amount>::first);
    const Poly& n = found->second.formula;
    if (n.is_constant() || bytes.for_dims_only) return amounts_.formula(bytes);
    Amount whole = bytes;
    whole.formula = divide(bytes.formula * n, n - Poly(1));
    const std::string size = fold_names(n, report_.definitions).str(), moved = amounts_.formula(whole);
    const bool one = whole.formula.is_monomial();
    return fmt::format("({0}-1)/{0}*{1}{2}{3}", size, one ? "" : "(", one ? moved : moved.substr(0, moved.size() - 2), one ? "" : ") *");
  }

  const Report& report_;
  const MeshReport& mesh_;
  AmountText& amounts_;
  Document& out_;
};

}  // namespace

void tell_mesh(const Report& report, AmountText& amounts, Document& out) { MeshText(report, amounts, out).run(); }

}  // namespace einc
