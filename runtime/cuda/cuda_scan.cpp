// SPDX-License-Identifier: Apache-2.0
// Scans of an executor: the launches of all iterations one after the other, whose addresses are known beforehand. In a captured graph they
// are its nodes, so that the host takes no part in a replayed recurrence.
#include "runtime/base/check.h"
#include "runtime/cuda/cuda_executor.h"

namespace einc {

void CudaExecutor::run_scan(const Executable& outside, const std::vector<cuda::DevicePointer>& addresses, const Launch& launch,
                            const Iterations& iterations, LaunchNumbers& next) {
  const ScanProgram& scan = outside.scans[static_cast<size_t>(launch.scan)];
  const Executable& body = scan.body;
  const auto place = [&](uint32_t buffer) { return addresses[launch.buffers[buffer]]; };
  std::vector<cuda::DevicePointer> inside;
  for (const ExecutableBuffer& b : body.buffers)
    inside.push_back(is_source(b.role) ? 0 : place(scan.workspace) + static_cast<uint64_t>(b.offset));
  const auto move_to = [&](int64_t t) {
    for (const ScanBuffer& b : scan.buffers) inside[b.buffer] = place(b.place) + static_cast<uint64_t>(b.offset + t * b.step);
  };
  const auto copy = [&](cuda::DevicePointer to, cuda::DevicePointer from, uint32_t buffer) {
    if (to != from) EINC_CUDA(cuMemcpyDtoDAsync_v2, to, from, static_cast<size_t>(body.buffers[buffer].bytes), stream());
  };
  const auto copy_all = [&](const std::vector<BufferCopy>& copies) {
    for (const BufferCopy& c : copies) copy(inside[c.target], inside[c.value], c.target);
  };
  move_to(0);
  for (const ScanBuffer& b : scan.initial) copy(inside[b.buffer], place(b.place), b.buffer);
  const int64_t count = iterations_of(iterations, scan.length, scan.all_pieces);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t t = scan.reversed ? count - 1 - i : i;
    move_to(t);
    copy_all(body.snapshots);
    for (const Launch& l : body.launches) {
      if (l.scan >= 0) {
        run_scan(body, inside, l, iteration_inside(iterations, t, scan.length, scan.all_pieces), next);
        continue;
      }
      std::vector<uint64_t> pointers;
      for (const uint32_t b : l.buffers) pointers.push_back(inside[b]);
      call_kernel(l, next, l.function, executable_.grids[l.function], std::move(pointers));
      next.key += l.streams.size();
      ++next.number;
    }
    copy_all(body.copies);
  }
}

}  // namespace einc
