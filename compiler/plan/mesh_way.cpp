// SPDX-License-Identifier: Apache-2.0
#include "compiler/plan/mesh_way.h"

#include <fmt/format.h>

#include <algorithm>

namespace einc {
namespace {

// What is split over which mesh axes: names that two axes split are one line over both.
std::vector<std::pair<std::string, std::string>> splits_of(const MeshWay& way) {
  std::vector<std::pair<std::string, std::string>> splits;
  const auto add = [&](const std::string& what, const std::string& over) {
    const auto known = std::ranges::find(splits, what, &std::pair<std::string, std::string>::first);
    if (known == splits.end())
      splits.emplace_back(what, over);
    else
      known->second += "," + over;
  };
  for (const WayAxis& axis : way.axes) {
    std::string names;
    for (const Name name : axis.split) names += (names.empty() ? "" : ",") + name.str();
    add(names, axis.name);
  }
  for (const WayAxis& axis : way.axes)
    if (axis.keys) add("keys", axis.name);
  for (const WayAxis& axis : way.axes)
    if (axis.spreads && way.spread != Spread::nothing) add(std::string(to_string(way.spread)), axis.name);
  return splits;
}

std::string with_blanks(const std::string& list) {
  std::string text;
  for (const char c : list) text += c == ',' ? std::string(", ") : std::string(1, c);
  return text;
}

}  // namespace

std::string_view to_string(Spread spread) {
  switch (spread) {
    case Spread::nothing:
      return "nothing";
    case Spread::states:
      return "states";
    case Spread::gradients:
      return "gradients";
    case Spread::params:
      return "params";
  }
  return "";
}

std::string MeshWay::mesh() const {
  std::string text = stages ? fmt::format("{}={}", stages->name, stages->count) : "";
  for (const WayAxis& axis : axes) text += fmt::format("{}{}={}", text.empty() ? "" : ",", axis.name, axis.size);
  return text;
}

std::string MeshWay::shard() const {
  std::string text = stages ? fmt::format("{}={}(microbatches={})", stages->loop.str(), stages->name, micro_batches) : "";
  for (const auto& [what, over] : splits_of(*this)) text += fmt::format("{}{}={}", text.empty() ? "" : "; ", what, over);
  return text;
}

std::vector<std::string> MeshWay::lines() const {
  std::string mesh = stages ? fmt::format("mesh {} = {}", stages->name, stages->count) : "";
  for (const WayAxis& axis : axes) mesh += fmt::format("{}{} = {}", mesh.empty() ? "mesh " : ", ", axis.name, axis.size);
  std::vector<std::string> lines{mesh};
  if (stages) lines.push_back(fmt::format("shard {} over {} (microbatches = {})", stages->loop.str(), stages->name, micro_batches));
  for (const auto& [what, over] : splits_of(*this)) lines.push_back(fmt::format("shard {} over {}", with_blanks(what), with_blanks(over)));
  return lines;
}

}  // namespace einc
