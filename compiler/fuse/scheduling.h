// SPDX-License-Identifier: Apache-2.0
// What a caller asks of the passes between a graph and its schedule. None of it changes a result by more than rounding.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/fuse/formed_view.h"
#include "compiler/fuse/recompute.h"

namespace einc {

struct Forming;

// What is asked of the choice: the one that adds the least time, or (--fit) only whether there is one; or, whatever the limit is (--plan),
// that iterations of loops are made again from what they are handed, as if each were a checkpoint.
enum class MemoryGoal : uint8_t { least_time, any_choice, whole_iterations };

// What a training step may take: values made again in the backward keep it within (fuse/memory_limit.h). Of a mesh's device the step is
// planned as RunMode::inference, and says by `of_device` that it is one.
struct MemoryLimit {
  int64_t bytes = 0;  // of all that is there at once
  int64_t taken = 0;  // of those, by others than the step
  int threads = 1;    // each with scratch of its own, on a processor
  MemoryGoal goal = MemoryGoal::least_time;
  std::vector<std::string> like{};  // of whole iterations: kinds of values (value_kind) that are tried first, as those of a like program
  CountDevice of_device{};          // of a mesh's device: what counts instead of the plan's bytes; none: the step is the whole program's
};

struct Scheduling {
  std::vector<std::string> without{};  // optional passes that are left out (--disable)
  RecomputeLimits recompute{};
  std::optional<MemoryLimit> memory_limit{};
  // Called after each pass with the seconds it took.
  std::function<void(std::string_view pass, const Forming& forming, double seconds)> observe{};

  bool leaves_out(std::string_view pass) const;
  Scheduling and_without(std::string pass) const;
  static const Scheduling all, unfused, without_attention;
};
inline const Scheduling Scheduling::all{};
inline const Scheduling Scheduling::unfused{{"attention", "recompute", "fusion"}};  // each node a kernel of its own
inline const Scheduling Scheduling::without_attention{{"attention"}};

}  // namespace einc
