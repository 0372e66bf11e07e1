// SPDX-License-Identifier: Apache-2.0
// This machine as a device of the cost model.
#pragma once
#include "compiler/cost/device.h"
#include "runtime/cpu/peak.h"

namespace einc {

// What was measured of so many threads, under the name "here".
Device device_of(const CpuPeak& peak, int threads);

// `--device=here`: all threads of this machine, measured the first time and kept in the cache folder.
Device measured_here();

}  // namespace einc
