// A graph compiled for this machine's processor and ready to run: dims bound, kernels formed, buffers planned, code made.
#pragma once
#include <memory>

#include "compiler/codegen/llvm/native_code.h"
#include "compiler/fuse/form_graph.h"
#include "compiler/lower/make_program.h"

namespace einc {

struct CpuOptions {
  RunMode mode = RunMode::training;
  Fusion fusion = Fusion::on;
  std::optional<Processor> processor;                         // to plan for; this machine's when not given
  std::filesystem::path cache = FileCache::default_folder();  // of machine code; empty: none
};

// What of forming kernels may be left out (--disable=NAME).
struct FusionStep {
  std::string_view name, description;
};
inline constexpr FusionStep kFusionSteps[] = {{"attention", "scores of rows against keys in tiles, never stored"},
                                              {"fusion", "several nodes as one kernel"},
                                              {"recompute", "elementwise values made again in the backward, not kept for it"},
                                              {"in_place", "results written where operands of their kernels lie"},
                                              {"finite_state", "a look at updates before they are stored; train always looks"}};
Fusion fusion_without(const std::vector<std::string>& disabled);

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
