// SPDX-License-Identifier: Apache-2.0
// The kernels that a launch runs: itself, or those of a scan's iterations in their order.
#pragma once
#include "runtime/base/iterations.h"
#include "runtime/program/executable.h"

namespace einc {

struct IteratedLaunch {
  const Launch& launch;
  const Iterations& iterations;
};

template <class Visit>
void for_each_iterated(const Executable& program, const Launch& launch, Visit visit, const Iterations& iterations = {}) {
  if (launch.scan < 0) return visit(IteratedLaunch{launch, iterations});
  const ScanProgram& scan = program.scans[static_cast<size_t>(launch.scan)];
  const int64_t count = iterations_of(iterations, scan.length, scan.all_pieces);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t t = scan.reversed ? count - 1 - i : i;
    const Iterations inside = iteration_inside(iterations, t, scan.length, scan.all_pieces);
    for (const Launch& inner : scan.body.launches) for_each_iterated(scan.body, inner, visit, inside);
  }
}

}  // namespace einc
