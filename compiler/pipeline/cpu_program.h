// SPDX-License-Identifier: Apache-2.0
// A graph compiled for this machine's processor and ready to run: dims bound, kernels formed, buffers planned, code made.
#pragma once
#include <memory>

#include "compiler/codegen/llvm/native_code.h"
#include "compiler/fuse/form_graph.h"
#include "compiler/lower/make_program.h"

namespace einc {

struct CpuOptions {
  RunMode mode = RunMode::training;
  Scheduling scheduling = Scheduling::all;
  std::optional<Processor> processor;                         // to plan for; this machine's when not given
  std::filesystem::path cache = FileCache::default_folder();  // of machine code; empty: none
};

// What all ways to look at or run a lowered graph share. The graph outlives it.
struct LoweredGraph : FormedGraph {
  LoweredProgram lowered;
};

// Throws RuntimeFailure when the dims do not bind.
std::unique_ptr<LoweredGraph> lower_graph(const Graph& graph, const Bindings& given, const CpuOptions& options);

class CpuProgram {
 public:
  CpuProgram(const Graph& graph, const Bindings& given, const CpuOptions& options);

  const Executable& program() const { return lowered_->lowered.program; }
  const LoweredGraph& lowered() const { return *lowered_; }
  const std::vector<KernelFunction*>& functions() const { return native_.functions; }

 private:
  std::unique_ptr<LoweredGraph> lowered_;
  NativeCode native_;
};

}  // namespace einc
