// SPDX-License-Identifier: Apache-2.0
// `einc estimate` as text.
#include <algorithm>
#include <cmath>

#include "compiler/report/document.h"
#include "compiler/report/text.h"

namespace einc {
namespace {

// Three digits are all that such an estimate is worth, whole numbers aside: 0.729, 72.9, 7,292. The exact values are those of
// --report=json.
std::string three_digits(double value) {
  if (value >= 999.5) return grouped_digits(fmt::format("{:.0f}", value));
  return fmt::format("{:.3g}", value);
}

// 4.38e22
std::string short_power(double value) {
  std::string text = fmt::format("{:.3g}", value);
  for (const std::string_view zeros : {"e+0", "e+"})
    if (const size_t at = text.find(zeros); at != std::string::npos) text.replace(at, zeros.size(), "e");
  return text;
}

// As --params and --tokens take them: 7B, 1.5T.
std::string short_count(double value) {
  static constexpr std::pair<double, const char*> kLetters[] = {{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "k"}};
  for (const auto& [size, letter] : kLetters)
    if (value >= 0.9995 * size && value < 999.5e12) return fmt::format("{:.3g}{}", value / size, letter);
  return short_power(value);
}

std::string time_text(double days) { return days >= 2 ? three_digits(days) + " days" : human_seconds(86400 * days); }

// Two more digits than a table of shares shows.
std::string exact_percent(double share) { return fmt::format("{:.3f}%", 100 * share); }

void render_measured(const Estimate& e, Document& w) {
  if (!e.measured) return;
  const Measured& m = *e.measured;
  w.heading("Measured", "on each device");
  if (m.flops_per_second)
    w.line(fmt::format("  {} FLOP/s{}", short_power(*m.flops_per_second), m.utilisation ? ", MFU " + exact_percent(*m.utilisation) : ""));
  if (m.tokens_per_second) w.line(fmt::format("  {} tokens a second", three_digits(*m.tokens_per_second)));
  const std::string days = m.days ? time_text(*m.days) + ", " : "";
  if (m.device_hours) w.line(fmt::format("  all tokens in {}{} device-hours", days, three_digits(*m.device_hours)));
}

std::string digits(const Rational& value) {
  return value.is_integer() ? grouped_digits(value.str()) : "~" + grouped_digits(fmt::format("{:.0f}", value.to_double()));
}

// A rule's formula is shown as its table writes it; these are the names it may use for other formulas.
void explain_names(const Estimate& e, Document& w) {
  const TransformerSizes& sizes = e.request.sizes;
  const auto used = [&](std::string_view name) {
    return std::any_of(e.rules.begin(), e.rules.end(),
                       [&](const RuleRow& row) { return row.rule.rule->formula.find(name) != std::string_view::npos; });
  };
  if (used("width") && sizes.heads && sizes.head)
    w.line("  width = heads*head");
  else if (used("width"))
    w.line("  width = embed");
  if (used("held"))
    w.line(sizes.interleave ? "  held = layers*(1 + (pipeline - 1)/(pipeline*interleave)), of the first stage" : "  held = layers");
  if (used("active")) w.line(sizes.used_experts ? "  active = params - 3*layers*(experts - used_experts)*embed*ffn" : "  active = params");
}

void render_rules(const Estimate& e, Document& w) {
  if (e.rules.empty()) return;
  Table flops({Align::left, Align::right, Align::right, Align::right, Align::right, Align::left});
  flops.add({"rule", "one token", "one step", e.request.flops ? "of --flops" : "of 6 N D", "of peak", "formula, one token"});
  Table rest({Align::left, Align::right, Align::right, Align::left});
  rest.add({"rule", "", "", "formula"});
  for (const RuleRow& row : e.rules) {
    const RuleValue& r = row.rule;
    const RuleKind kind = r.rule->kind;
    std::string name(r.rule->name), formula(r.rule->formula);
    if (counts_flops(kind)) {
      if (kind == RuleKind::forward_flops) name += ", forward";
      const std::optional<double>& ratio = e.request.flops ? row.to_flops : row.to_6nd;
      flops.add({name, digits(r.value), r.step ? digits(*r.step) : "", ratio ? fmt::format("{:.5f}", *ratio) : "",
                 row.utilisation ? exact_percent(*row.utilisation) : "", formula});
    } else if (kind == RuleKind::share) {
      rest.add({name, exact_percent(r.value.to_double()), "", formula});
    } else {
      rest.add(
          {name, digits(r.value), kind == RuleKind::bytes ? human_bytes(r.value.to_double()) : short_count(r.value.to_double()), formula});
    }
  }
  if (flops.row_count() > 1) {
    w.heading("Rules of the literature", "FLOPs of forward and backward");
    w.table(flops, true);
  }
  if (rest.row_count() > 1) {
    w.heading("Rules of the literature", "parameters and memory");
    w.table(rest, true);
  }
  explain_names(e, w);
}

Table fits_of_one(const Estimate& e) {
  Table table({Align::left, Align::right, Align::right, Align::right, Align::left});
  table.add({"optimizer", "bytes each", e.request.device ? "parameters" : "", e.request.parameters ? "these" : "", "stored"});
  for (const FitRow& row : e.fits)
    table.add({row.optimizer, fmt::format("{:.4g}", row.bytes_per_parameter),
               row.largest_parameters ? short_count(*row.largest_parameters) : "", row.bytes ? human_bytes(*row.bytes) : "",
               std::string(describe(row.policy))});
  return table;
}

std::string fit_text(const FitRow& row) {
  std::string text;
  if (row.largest_parameters) text = short_count(*row.largest_parameters);
  if (row.bytes) text += (text.empty() ? "" : ", ") + human_bytes(*row.bytes);
  return fmt::format("{} ({:.4g})", text, row.bytes_per_parameter);
}

// A row for optimizers that need the same, a column for each way to store.
Table fits_of_all(const Estimate& e) {
  std::vector<std::pair<std::string, std::vector<std::string>>> rows;  // optimizers, cells
  std::vector<std::string> header{"optimizer"};
  for (size_t i = 0; i < e.fits.size();) {
    std::vector<std::string> cells;
    const std::string& optimizer = e.fits[i].optimizer;
    for (; i < e.fits.size() && e.fits[i].optimizer == optimizer; ++i) {
      cells.push_back(fit_text(e.fits[i]));
      if (rows.empty()) header.emplace_back(short_name(e.fits[i].policy));
    }
    const auto alike = std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row.second == cells; });
    if (alike == rows.end())
      rows.emplace_back(optimizer, std::move(cells));
    else
      alike->first += ", " + optimizer;
  }
  std::vector<Align> aligns(header.size(), Align::right);
  aligns[0] = Align::left;
  Table table(aligns);
  table.add(header);
  for (auto& [optimizers, cells] : rows) {
    cells.insert(cells.begin(), optimizers);
    table.add(cells);
  }
  return table;
}

void render_fits(const Estimate& e, Document& w) {
  if (e.fits.empty()) return;
  const auto& request = e.request;
  if (request.device)
    w.heading("Largest model that fits",
              fmt::format("{:.0f} x {}, weights, gradients and optimizer state", request.devices.value_or(1), request.device->name));
  else
    w.heading("Weights, gradients and optimizer state");
  w.table(request.optimizer.empty() ? fits_of_all(e) : fits_of_one(e), true);
  if (request.optimizer.empty())
    w.line(fmt::format("  {}bytes a parameter in brackets; --optimizer adamw shows one optimizer",
                       request.device && request.parameters ? "parameters that fit, bytes of these; " : ""));
  if (request.parameters)
    w.line(fmt::format("  the weights alone: {} in 16 bit, {} in f32", human_bytes(2 * *request.parameters),
                       human_bytes(4 * *request.parameters)));
}

}  // namespace

std::string render_text(const Estimate& e, TextStyle style) {
  Document w;
  const double devices = e.request.devices.value_or(1);
  if (e.flops) {
    w.heading("Training");
    w.line(fmt::format("  6 N D = 6 x {} x {} = {} FLOPs", short_count(*e.request.parameters), short_count(*e.request.tokens),
                       short_power(*e.flops)));
    w.line(fmt::format("  {} petaFLOP/s-days", three_digits(*e.petaflops_days)));
    if (e.time) {
      const std::string device = e.request.device ? e.request.device->name : "a device of this peak";
      w.line(fmt::format("  {:.0f} x {} at MFU {:.4g}: {} FLOPs a day", devices, device, e.request.mfu.value_or(0.5),
                         short_power(e.time->flops_per_day)));
      w.line(fmt::format("  {}, {} device-hours", time_text(e.time->days), three_digits(e.time->device_hours)));
    }
  }
  if (e.steps)
    w.line(fmt::format("  {} steps of {} tokens", grouped_digits(fmt::format("{:.0f}", std::ceil(*e.steps))),
                       short_count(*e.request.batch_tokens)));
  if (!e.shards.empty()) {
    w.heading("Mixed-precision Adam on each device", "2 + 2 + 12 bytes a parameter");
    for (const Estimate::Shard& shard : e.shards)
      w.line(fmt::format("  {}  {}", shard.stage == 0 ? "replicated" : fmt::format("ZeRO {}    ", shard.stage), human_bytes(shard.bytes)));
  }
  render_measured(e, w);
  render_rules(e, w);
  render_fits(e, w);
  for (const std::string& warning : e.warnings) w.line("warning: " + warning);
  return w.text(style);
}

}  // namespace einc
