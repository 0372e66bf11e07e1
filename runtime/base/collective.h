// SPDX-License-Identifier: Apache-2.0
// What the devices along a mesh axis do together.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace einc {

enum class CollectiveKind : uint8_t { all_reduce, reduce_scatter, all_gather, all_to_all, shift };
inline constexpr size_t kCollectiveKinds = 5;

inline std::string_view to_string(CollectiveKind kind) {
  static constexpr std::string_view kNames[] = {"all_reduce", "reduce_scatter", "all_gather", "all_to_all", "shift"};
  return kNames[static_cast<size_t>(kind)];
}

// What a device does next: launches, and collectives that go on beside them from where they are started to where somebody waits
// for them. They are carried out one after another, in the order of their numbers, on all devices alike. Where devices agree, all that was
// started is over; they go on if the numbers that they look at are as they must be on each of them.
enum class DeviceAct : uint8_t { compute, start, wait, agree };
inline constexpr uint32_t kNoCollective = UINT32_MAX;
struct DeviceStep {
  DeviceAct act = DeviceAct::compute;
  uint32_t index = 0;            // the collective's number
  uint32_t first = 0, last = 0;  // launches, the last one excluded
  // A start: in one move with the collective of the number before. All of a move are over together.
  bool joined = false;
};

inline bool is_collectives(const DeviceStep& step) { return step.act == DeviceAct::start || step.act == DeviceAct::wait; }

// Where a launch may run that runs together with others.
struct LaunchPlaces {
  uint32_t first = 0, last = 0;
};

}  // namespace einc
