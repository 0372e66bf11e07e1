// SPDX-License-Identifier: Apache-2.0
// Schedules the bodies of scans: each by the passes of the whole, to kernels and buffers of its own.
#pragma once
#include "compiler/fuse/schedule_passes.h"

namespace einc {

void schedule_scans(Forming& forming);

}  // namespace einc
