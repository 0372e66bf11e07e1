// SPDX-License-Identifier: Apache-2.0
// The step of one device of a mesh: the launches of its program as planned for the device, what it holds, and how long it takes with its
// collectives beside them, in the order and with the waits of a run (partition/device_schedule).
#pragma once
#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/cost/device.h"
#include "compiler/fuse/planned_step.h"
#include "compiler/partition/device_timeline.h"
#include "compiler/partition/localize.h"
#include "compiler/report/planned_device.h"

namespace einc {

// What a process of one device takes besides what it computes with.
struct DeviceProcess {
  bool first = true;               // it puts whole tensors together, for a checkpoint
  int64_t sent = 0, received = 0;  // bytes, the most that it sends other stages at once, and gets from them
};
using ProcessBytes = std::function<int64_t(const Localized& local, const Bindings& dims, const DeviceProcess& process)>;

// Seconds of launches, by what they do: up to what comes back from other stages, and behind it. All of the backward's are behind it.
struct PhaseSeconds {
  double forward = 0, backward = 0;
};

struct MeshStep {
  int64_t values = 0;   // outside the memory of launches (report/planned_device.h)
  int64_t working = 0;  // what launches work in
  int64_t process = 0;
  Rational executed;                     // FLOPs
  std::vector<std::string> recomputed;   // under a limit
  int64_t kept_values = 0, kept = 0;     // of these two, what a stage has once for each microbatch on its way
  std::optional<DeviceTimeline> line{};  // none: there is no device, or it has no rate for a number format or no link so wide
  PhaseSeconds seconds;                  // likewise
  // By phase the most of `values` and of `working` that is in use at once, without holes: each grows evenly with a loop's iterations, where
  // the peak goes from one to the other.
  std::array<int64_t, kPhases> alive{}, in_use{};
  int64_t peak() const { return values + working + process; }
};

// `collectives`: in the order of collectives_of; so are exposed_s and saved_s; empty: unknown. `plan` may have a limit: of the peak.
MeshStep mesh_step(Localized local, const Bindings& given, const PlanStep& plan, const ProcessBytes& process_bytes, const Device* device,
                   std::span<const CollectiveTime> collectives);

// Of a device whose graph is there. `held`: what counts besides under a limit; none: it is not asked to keep within one.
MeshStep device_step(const Localized& local, const Bindings& given, const PlanStep& plan, const ProcessBytes& process_bytes,
                     const DeviceProcess& process, const std::optional<HeldBesides>& held, const Device* device,
                     std::span<const CollectiveTime> collectives);

}  // namespace einc
