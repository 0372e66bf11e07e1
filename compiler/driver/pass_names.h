// SPDX-License-Identifier: Apache-2.0
// Passes as the command line speaks of them: --passes, --dump-after, --disable, --time-passes.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "compiler/fuse/schedule_passes.h"

namespace einc {

// The lists of --passes: of graphs, and of the schedules of both targets.
std::string list_passes_text();

// Says on standard error which name is of no pass, or of one that may not be left out.
bool check_pass_names(const std::vector<std::string>& dump_after, const std::vector<std::string>& disabled);

// What a caller wants to see of passes, on standard error; of those of schedules, when one is made first.
struct PassView {
  std::vector<std::string> dump_after;
  bool times = false;
  std::shared_ptr<std::vector<std::string>> shown = std::make_shared<std::vector<std::string>>();  // passes of schedules

  bool wants(std::string_view pass) const;
  // Wanted of the target's passes, but no schedule for it has been made.
  bool misses(std::span<const SchedulePass> target) const;
  void show_time(std::string_view pass, double seconds, std::string_view size) const;
};

// Scheduling that leaves passes out and shows what is wanted. The view outlives it.
Scheduling watched_scheduling(const std::vector<std::string>& disabled, const PassView& view);

}  // namespace einc
