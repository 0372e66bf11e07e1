// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/small_launch.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "runtime/executor/executor.h"

namespace einc {
namespace {

// Adds two elements, so that each buffer is touched as kernels do it.
void add_one(const KernelArguments* arguments, int64_t, int64_t) {
  float a = 0, b = 0;
  std::memcpy(&a, arguments->buffers[0], sizeof a);
  std::memcpy(&b, arguments->buffers[1], sizeof b);
  a += b;
  std::memcpy(arguments->buffers[2], &a, sizeof a);
}

constexpr int64_t kLine = 64;  // bytes: buffers begin at one of their own

// Of as many launches as a program's step has, each of kernels and buffers of its own.
Executable small_launches(size_t launches) {
  Executable program;
  program.functions = {"add_one"};
  for (uint32_t l = 0; l < launches; ++l) {
    ExecutableBuffer buffer;
    buffer.shape = {1}, buffer.bytes = sizeof(float), buffer.offset = program.memory_bytes;
    program.buffers.push_back(std::move(buffer));
    program.memory_bytes += kLine;
    Launch launch;
    launch.buffers = {l / 2, l / 3, l};
    program.launches.push_back(std::move(launch));
  }
  program.own_bytes = program.memory_bytes;
  return program;
}

}  // namespace

double small_launch_time() {
  constexpr int kRounds = 200;
  const Executable program = small_launches(100);
  Executor executor(program, {&add_one}, 1);
  double best = 1;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    executor.run(0, 0);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::min(best, seconds / static_cast<double>(program.launches.size()));
  }
  return best;
}

}  // namespace einc
