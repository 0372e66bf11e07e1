// SPDX-License-Identifier: Apache-2.0
// A recurrence as a launch: its body is a schedule of its own, run once for each iteration. The launch's buffers are the scan's operands in
// order, the results that are stored, and last a workspace: the body's own memory, and behind it the carries whose last value nobody reads.
#pragma once
#include <memory>

#include "compiler/lower/buffer_plan.h"
#include "runtime/base/round_up.h"

namespace einc {

struct ScanSchedule {
  std::shared_ptr<const Graph> body;  // as the scan has it
  std::unique_ptr<const Graph> own;   // that it is formed of, where that is another
  BoundGraph bound;
  KernelList list;
  BufferPlan plan;
  int64_t length = 1;
  Direction direction = Direction::forward;
  int64_t all_pieces = 0;  // see iteration_inside
  int wholes = 0, slices = 0, carries = 0;
  // Of each state: its buffer among the launch's, or its offset in the workspace.
  struct Place {
    int buffer = -1;
    int64_t offset = 0;
  };
  std::vector<Place> places;
  int64_t workspace_bytes = 0;
};

// How often a run launches what the scan's iterations do, which itself is launched `times` times.
inline int64_t times_inside(const ScanSchedule& scan, int64_t times) {
  if (scan.all_pieces == 0) return times * scan.length;
  return times / divide_up(scan.all_pieces, scan.length) * scan.all_pieces;
}

// Kernels of the list, and of the bodies of its scans, each with how often a run launches it.
template <class Visit>
void for_each_launch(const KernelList& list, Visit visit, int64_t times = 1) {
  for (const GraphKernel& k : list.kernels) {
    if (k.kernel->scan)
      for_each_launch(k.kernel->scan->list, visit, times_inside(*k.kernel->scan, times));
    else
      visit(k, times);
  }
}

}  // namespace einc
