// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/cuda/join_launches.h"

#include <algorithm>
#include <map>

namespace einc {
namespace {

constexpr uint32_t kMostTogether = 1024;  // blocks along y; far below what a grid may have

class Joiner {
 public:
  Joiner(CudaExecutable& executable, const std::vector<WrittenBuffers>& written) : executable_(executable), program_(executable.program) {
    for (size_t i = 0; i < program_.launches.size(); ++i) {
      std::vector<Touched>& touched = touched_.emplace_back();
      alone_.push_back(written[i].empty());
      const Launch& launch = program_.launches[i];
      for (size_t b = 0; b < launch.buffers.size(); ++b) {
        if (launch.buffers[b] >= program_.buffers.size()) continue;
        const ExecutableBuffer& buffer = program_.buffers[launch.buffers[b]];
        const bool writes = b >= written[i].size() || written[i][b];
        touched.push_back({buffer.offset, buffer.offset + buffer.bytes, writes, writes && is_source(buffer.role)});
      }
    }
  }

  void run() {
    executable_.by_table.assign(program_.functions.size(), false);
    std::map<uint32_t, std::vector<uint32_t>> by_function;
    for (uint32_t i = 0; i < program_.launches.size(); ++i) {
      const Launch& launch = program_.launches[i];
      if (!alone_[i] && !executable_.calls[i].gemm && launch.streams.empty() && launch.sites.empty())
        by_function[launch.function].push_back(i);
    }
    for (const auto& [function, launches] : by_function) {
      size_t leader = 0;
      for (size_t k = 1; k < launches.size(); ++k)
        if (may_run_with(launches[leader], launches[k]))
          join(launches[leader], launches[k]);
        else
          leader = k;
    }
  }

 private:
  struct Touched {
    int64_t from, to;
    bool writes, updates;
  };

  bool updates(uint32_t launch) const {
    return std::ranges::any_of(touched_[launch], [](const Touched& t) { return t.updates; });
  }

  bool apart(uint32_t a, uint32_t b) const {
    for (const Touched& x : touched_[a])
      for (const Touched& y : touched_[b])
        if ((x.writes || y.writes) && x.from < y.to && y.from < x.to) return false;
    return true;
  }

  bool may_run_with(uint32_t leader, uint32_t launch) const {
    const CudaCall &first = executable_.calls[leader], &other = executable_.calls[launch];
    if (first.grid.blocks != other.grid.blocks || first.grid.blocks[1] != 1 || first.together.size() + 1 >= kMostTogether) return false;
    if (updates(leader) != updates(launch) || program_.launches[leader].when != program_.launches[launch].when) return false;
    for (uint32_t between = leader; between < launch; ++between)
      if (!apart(between, launch)) return false;
    return true;
  }

  void join(uint32_t leader, uint32_t launch) {
    executable_.calls[leader].together.push_back(launch);
    executable_.calls[launch].done_before = true;
    executable_.by_table[program_.launches[leader].function] = true;
  }

  CudaExecutable& executable_;
  const Executable& program_;
  std::vector<std::vector<Touched>> touched_;  // by launch
  std::vector<bool> alone_;
};

}  // namespace

void join_launches(CudaExecutable& executable, const std::vector<WrittenBuffers>& written) { Joiner(executable, written).run(); }

}  // namespace einc
