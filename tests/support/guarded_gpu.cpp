// SPDX-License-Identifier: Apache-2.0
#include "tests/support/guarded_gpu.h"

#include <fmt/format.h>

#include <algorithm>

namespace einc {
namespace {

constexpr int64_t kAlignment = 256, kGuard = 512;
// A NaN in every format, and none that arithmetic makes of f32 or f64: what is read there shows, and what is written.
constexpr std::byte kPattern[2] = {std::byte{0xFF}, std::byte{0x7F}};

std::byte pattern_at(int64_t offset) { return kPattern[offset % 2]; }

}  // namespace

GuardedGpu::GuardedGpu(const CudaExecutable& executable, const CudaKernels& kernels)
    : executable_(with_guards(executable)), executor_(executable_, kernels) {
  const ExecutableBuffer& all = executable_.program.buffers.back();
  HostArray memory{all.dtype, all.shape, std::vector<std::byte>(static_cast<size_t>(all.bytes))};
  for (int64_t i = 0; i < all.bytes; ++i) memory.bytes[static_cast<size_t>(i)] = pattern_at(i);
  executor_.set(static_cast<uint32_t>(executable_.program.buffers.size() - 1), memory);
}

CudaExecutable GuardedGpu::with_guards(CudaExecutable executable) {
  Executable& program = executable.program;
  int64_t end = kGuard;
  for (ExecutableBuffer& b : program.buffers) {
    // As aligned as it was, for that is what the library's algorithms are chosen by.
    b.offset = (end + kAlignment - 1) / kAlignment * kAlignment + b.offset % kAlignment;
    end = b.offset + b.bytes + kGuard;
  }
  ExecutableBuffer all;
  all.dtype = DType::u8;
  all.shape = {end};
  all.bytes = end;
  program.buffers.push_back(all);
  program.memory_bytes = program.own_bytes = end;
  return executable;
}

void GuardedGpu::run(uint64_t seed, uint64_t step) {
  executor_.run_while(seed, step, [&](size_t launch) {
    check(launch);
    return true;
  });
}

void GuardedGpu::check(size_t launch) {
  const std::vector<ExecutableBuffer>& buffers = executable_.program.buffers;
  const HostArray memory = executor_.get(static_cast<uint32_t>(buffers.size() - 1));
  int64_t from = 0;
  for (size_t b = 0; b < buffers.size(); ++b) {
    const bool last = b + 1 == buffers.size();
    const int64_t to = last ? buffers[b].bytes : buffers[b].offset;
    for (int64_t i = from; i < to; ++i)
      if (memory.bytes[static_cast<size_t>(i)] != pattern_at(i)) {
        const Launch& wrote = executable_.program.launches[launch];
        const bool behind = b > 0 && (last || i - from < to - i);
        const size_t near = behind ? b - 1 : b;
        const auto position = std::find(wrote.buffers.begin(), wrote.buffers.end(), near) - wrote.buffers.begin();
        throw GuardHit(fmt::format("launch {} ({}) writes {} bytes {} {}{}", launch, wrote.label, behind ? i - from : to - i,
                                   behind ? "behind" : "before",
                                   buffers[near].name.empty() ? fmt::format("buffer {}", near) : fmt::format("'{}'", buffers[near].name),
                                   static_cast<size_t>(position) == wrote.buffers.size() ? ", which it does not have" : ""));
      }
    from = buffers[b].offset + buffers[b].bytes;
  }
}

}  // namespace einc
