// SPDX-License-Identifier: Apache-2.0
// This machine as a device of the cost model.
#pragma once
#include <optional>

#include "compiler/cost/device.h"
#include "runtime/cpu/peak.h"

namespace einc {

// The peaks of the pool's threads, and what a program takes besides: about 0.5 s.
CpuPeak measure_machine(ThreadPool& pool);

// What was measured of so many threads, under the name "here".
Device device_of(const CpuPeak& peak, int threads);

// `--device=here`: this machine with so many threads, or all, measured and kept in the cache folder. The first three calls measure, and the
// best of them is kept: other work on the machine can only make it look slower.
Device measured_here(std::optional<int> threads = std::nullopt);

}  // namespace einc
