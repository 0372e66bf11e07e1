// SPDX-License-Identifier: Apache-2.0
// `einc estimate` as JSON.
#include "compiler/report/json.h"
#include "compiler/report/json_number.h"

namespace einc {

std::string render_json(const Estimate& e) {
  Json json{{"parameters", number(e.request.parameters)}, {"tokens", number(e.request.tokens)}, {"flops", number(e.flops)}};
  json["petaflops_days"] = number(e.petaflops_days);
  json["device"] = e.request.device ? Json(e.request.device->name) : Json(nullptr);
  json["devices"] = number(e.request.devices);
  json["steps"] = number(e.steps);
  json["mfu"] = number(e.request.mfu);
  if (e.time)
    json["training"] = {{"flops_per_day", e.time->flops_per_day},
                        {"seconds", e.time->seconds},
                        {"days", e.time->days},
                        {"device_hours", e.time->device_hours}};
  Json fits = Json::array();
  for (const FitRow& row : e.fits)
    fits.push_back({{"optimizer", row.optimizer},
                    {"storage", describe(row.policy)},
                    {"bytes_per_parameter", row.bytes_per_parameter},
                    {"largest_parameters", number(row.largest_parameters)},
                    {"bytes", number(row.bytes)}});
  json["fits"] = fits;
  if (e.request.parameters) json["weights"] = {{"bytes_16_bit", 2 * *e.request.parameters}, {"bytes_32_bit", 4 * *e.request.parameters}};
  Json rules = Json::array();
  for (const RuleRow& row : e.rules) {
    const RuleValue& r = row.rule;
    Json line{{"name", r.rule->name}, {"kind", to_string(r.rule->kind)}, {"source", r.rule->source}, {"symbolic", r.formula.str()}};
    line[counts_flops(r.rule->kind) ? "per_token" : "value"] = exact(r.value);
    if (counts_flops(r.rule->kind)) line["per_step"] = exact(r.step);
    if (row.to_6nd) line["ratio_to_6nd"] = *row.to_6nd;
    if (row.to_flops) line["ratio_to_flops"] = *row.to_flops;
    if (row.utilisation) line["utilisation"] = *row.utilisation;
    rules.push_back(std::move(line));
  }
  json["rules"] = rules;
  if (e.measured) {
    const Measured& m = *e.measured;
    json["measured"] = {{"flops_per_second", number(m.flops_per_second)},
                        {"utilisation", number(m.utilisation)},
                        {"tokens_per_second", number(m.tokens_per_second)},
                        {"days", number(m.days)},
                        {"device_hours", number(m.device_hours)}};
  }
  Json shards = Json::array();
  for (const Estimate::Shard& shard : e.shards) shards.push_back({{"zero_stage", shard.stage}, {"bytes_per_device", shard.bytes}});
  json["shards"] = shards;
  json["warnings"] = e.warnings;
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace einc
