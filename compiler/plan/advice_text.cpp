// SPDX-License-Identifier: Apache-2.0
// The advice for readers, and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "compiler/plan/mesh_advice.h"

namespace einc {
namespace {

using Json = nlohmann::ordered_json;

// What the numbers are, for every plan.
constexpr const char* kNotes[] = {
    "Work: launches as planned between collectives. Sent: one collective after the other; exposed: of it while no launch goes on.",
    "Idle: of a pipeline's stage, while others work. Memory: as scheduled, with what a process takes besides. Again: of the work, "
    "recomputed to fit."};

Json number_of(const Rational& value) {
  if (value.is_integer() && value.to_double() < 9e15) return static_cast<int64_t>(value.to_double());
  return value.to_double();
}

std::string mesh_text(const MeshWay& way) {
  std::string text = way.stages ? fmt::format("{} {}", way.stages->name, way.stages->count) : "";
  for (const WayAxis& axis : way.axes) text += fmt::format("{}{} {}", text.empty() ? "" : " x ", axis.name, axis.size);
  return text;
}

Json stages_of(const ScheduledWay& s) {
  if (!s.way.stages) return nullptr;
  return {{"axis", s.way.stages->name},
          {"count", s.way.stages->count},
          {"loop", s.way.stages->loop.str()},
          {"shown", s.shown},
          {"fullest", s.fullest}};
}

int64_t limit_of(const MeshAdvice& advice) { return static_cast<int64_t>(advice.device.usable_bytes()); }

}  // namespace

std::string options_of(const MeshAdvice& advice, const MeshWay& way) {
  std::string text;
  if (way.accumulates()) text = fmt::format("-D {}={} ", advice.batch.str(), advice.batch_size / way.micro_batches);
  text += fmt::format("--mesh {} --shard \"{}\"", way.mesh(), way.shard());
  return way.recomputes ? text + fmt::format(" --memory-limit {}", limit_of(advice)) : text;
}

Document advice_document(const MeshAdvice& advice) {
  Document w;
  w.heading(fmt::format("{} on {} x {}", advice.model, advice.devices, advice.device.name),
            fmt::format("{}{}; {} ways estimated, {} fit {}", advice.precision,
                        advice.batch.empty() ? "" : fmt::format(", {} = {} a step", advice.batch.str(), advice.batch_size),
                        grouped_digits(std::to_string(advice.estimated)), grouped_digits(std::to_string(advice.fitting)),
                        human_bytes(advice.device.usable_bytes())));
  Table table({Align::right, Align::right, Align::right, Align::right, Align::right, Align::right, Align::right, Align::right, Align::right,
               Align::right, Align::left, Align::left});
  table.add({"", "step", "work", "again", "sent", "exposed", "idle", "MFU", "memory", "micro-batches", "spread", "mesh"});
  for (size_t i = 0; i < advice.ways.size(); ++i) {
    const ScheduledWay& s = advice.ways[i].scheduled;
    table.add({std::to_string(i + 1), human_seconds(s.seconds.total()), human_seconds(s.seconds.work),
               s.way.recomputes ? human_seconds(s.again) : "", human_seconds(s.seconds.sent), human_seconds(s.seconds.exposed),
               s.way.stages ? human_seconds(s.seconds.idle) : "", advice.ways[i].mfu ? percent(*advice.ways[i].mfu) : "",
               human_bytes(s.held.total()), std::to_string(s.way.micro_batches), std::string(to_string(s.way.spread)), mesh_text(s.way)});
  }
  w.table(table, true);
  for (const std::string& note : advice.whole) w.line("  " + note);
  for (const char* note : kNotes) w.line(std::string("  ") + note);
  const auto keeps_all = [](const AdvisedWay& way) { return !way.scheduled.way.recomputes; };
  if (!std::ranges::all_of(advice.ways, keeps_all)) {
    const auto first = std::ranges::find_if(advice.ways, keeps_all);
    w.line(first == advice.ways.end()
               ? "  Without recomputation none fits."
               : fmt::format("  Of those that recompute nothing, {} is the fastest.", first - advice.ways.begin() + 1));
  }
  for (size_t i = 0; i < advice.ways.size(); ++i) {
    const AdvisedWay& way = advice.ways[i];
    w.heading(fmt::format("{}  {}", i + 1, options_of(advice, way.scheduled.way)));
    for (const std::string& line : way.scheduled.way.lines()) w.line("      " + line);
    if (way.scheduled.way.accumulates())
      w.line(fmt::format("      trained with -D {}={} --accumulate {}", advice.batch.str(),
                         advice.batch_size / way.scheduled.way.micro_batches, way.scheduled.way.micro_batches));
    if (way.scheduled.way.recomputes) w.line(fmt::format("      trained with --memory-limit {}", limit_of(advice)));
    for (const std::string& why : way.why) w.line("  " + why);
  }
  return w;
}

std::string advice_json(const MeshAdvice& advice) {
  Json ways = Json::array();
  for (const AdvisedWay& way : advice.ways) {
    const ScheduledWay& s = way.scheduled;
    Json sent = Json::array();
    for (const SentKind& kind : s.sent)
      sent.push_back({{"kind", to_string(kind.kind)},
                      {"axis", kind.axis},
                      {"link", kind.link},
                      {"bytes", number_of(kind.bytes)},
                      {"time_s", kind.seconds}});
    ways.push_back({{"mesh", s.way.mesh()},
                    {"shard", s.way.shard()},
                    {"lines", s.way.lines()},
                    {"spread", to_string(s.way.spread)},
                    {"micro_batches", s.way.micro_batches},
                    {"stages", stages_of(s)},
                    {"step_time_s", s.seconds.total()},
                    {"compute_s", s.seconds.work},
                    {"recompute_s", s.again},
                    {"memory_limit", s.way.recomputes ? Json(limit_of(advice)) : Json(nullptr)},
                    {"communication_s", s.seconds.sent},
                    {"exposed_s", s.seconds.exposed},
                    {"idle_s", s.seconds.idle},
                    {"communication_bytes", number_of(s.bytes)},
                    {"communication", sent},
                    {"memory",
                     {{"parameters", s.held.params},
                      {"gradients", s.held.gradients},
                      {"states", s.held.states},
                      {"inputs", s.held.inputs},
                      {"kept", s.held.kept},
                      {"workspace", s.held.workspace},
                      {"process", s.held.process},
                      {"total", s.held.total()}}},
                    {"flops", number_of(s.flops)},
                    {"mfu", way.mfu ? Json(*way.mfu) : Json(nullptr)},
                    {"why", way.why}});
  }
  const Json json{{"model", advice.model},
                  {"device", advice.device.name},
                  {"devices", advice.devices},
                  {"memory_bytes", advice.device.usable_bytes()},
                  {"precision", advice.precision},
                  {"estimated", advice.estimated},
                  {"fitting", advice.fitting},
                  {"whole", advice.whole},
                  {"ways", ways}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace einc
