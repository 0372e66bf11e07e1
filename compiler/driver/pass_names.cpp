// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/pass_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/context/partition_for_mesh.h"
#include "compiler/pipeline/pipeline.h"
#include "runtime/base/printable.h"

namespace einc {
namespace {

template <class P>
const P* find_in(std::span<const P> passes, std::string_view name) {
  const auto found = std::ranges::find(passes, name, &P::name);
  return found == passes.end() ? nullptr : &*found;
}

bool is_optional(std::string_view name) {
  for (const auto& list : {processor_passes(), gpu_passes()})
    if (const SchedulePass* pass = find_in(list, name)) return pass->optional;
  const Pass* pass = find_in(passes(), name);
  return pass && pass->optional;
}

bool is_pass(std::string_view name) {
  return name == "elaborate" || find_in(passes(), name) || find_in(processor_passes(), name) || find_in(gpu_passes(), name);
}

std::string row(std::string_view name, bool optional, std::string_view description) {
  return fmt::format("  {:<18}{} {}\n", name, optional ? '*' : ' ', description);
}

std::string list_text(std::span<const SchedulePass> passes) {
  std::string text;
  for (const SchedulePass& p : passes) text += row(p.name, p.optional, fmt::format("{} ({})", p.description, p.place));
  return text;
}

}  // namespace

std::string list_passes_text() {
  std::string text = "of the graph, for all sizes\n";
  for (const Pass& p : passes()) text += row(p.name, p.optional, p.description);
  text += "\nof a graph over a mesh, for given sizes (in brackets: why there)\n";
  for (const MeshPass& p : mesh_passes()) text += row(p.name, false, fmt::format("{} ({})", p.description, p.reason));
  text += "\nof a schedule, for given sizes, on a processor (in brackets: why there)\n" + list_text(processor_passes());
  text += "\nof a schedule on an NVIDIA GPU\n" + list_text(gpu_passes());
  return text + "\n* may be left out: --disable=PASS. --dump-after=PASS prints what a pass made, --time-passes what each took.\n";
}

bool check_pass_names(const std::vector<std::string>& dump_after, const std::vector<std::string>& disabled) {
  for (const auto* names : {&dump_after, &disabled})
    for (const std::string& name : *names)
      if (!is_pass(name)) return fmt::print(stderr, "einc: no pass `{}` (einc --passes lists them)\n", printable(name)), false;
  for (const std::string& name : disabled)
    if (!is_optional(name))
      return fmt::print(stderr, "einc: the pass `{}` may not be left out (einc --passes marks those that may)\n", name), false;
  return true;
}

bool PassView::wants(std::string_view pass) const { return std::ranges::find(dump_after, pass) != dump_after.end(); }

void PassView::show_time(std::string_view pass, double seconds, std::string_view size) const {
  if (times) fmt::print(stderr, "{:>10.6f} s  {:<18} {}\n", seconds, pass, size);
}

bool PassView::misses(std::span<const SchedulePass> target) const {
  return std::ranges::any_of(
      dump_after, [&](const std::string& name) { return find_in(target, name) && std::ranges::find(*shown, name) == shown->end(); });
}

Scheduling watched_scheduling(const std::vector<std::string>& disabled, const PassView& view) {
  Scheduling scheduling{.without = disabled};
  if (view.dump_after.empty() && !view.times) return scheduling;
  scheduling.observe = [&view](std::string_view pass, const Forming& forming, double seconds) {
    if (std::ranges::find(*view.shown, pass) != view.shown->end()) return;
    view.shown->emplace_back(pass);
    const bool kernels = !forming.list.kernels.empty();
    view.show_time(pass, seconds,
                   kernels ? fmt::format("{} kernels", forming.list.kernels.size()) : fmt::format("{} nodes", forming.graph().size()));
    if (view.wants(pass)) fmt::print(stderr, "# after {}\n{}", pass, to_string(forming));
  };
  return scheduling;
}

}  // namespace einc
