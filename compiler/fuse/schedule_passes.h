// SPDX-License-Identifier: Apache-2.0
// The way from a graph with its dims to kernels with a place for every buffer and a plan of how they run, as one literal list of passes for
// each target. Graph passes (pipeline/pipeline.cpp) come before it, behind it code is printed.
#pragma once
#include <memory>
#include <optional>
#include <span>

#include "compiler/fuse/form_kernels.h"
#include "compiler/fuse/memory_limit.h"
#include "compiler/fuse/scheduling.h"
#include "compiler/ir/interpret.h"
#include "compiler/library/library_attention.h"
#include "compiler/lower/buffer_plan.h"

namespace einc {

struct SchedulePass;

// What the passes work on. The graph given, its dims and the options outlive it.
struct Forming {
  const Graph& given;
  const Bindings& dims;
  const RunMode mode;
  const Scheduling& options;
  KernelTarget target;
  AskLibrary ask_attention{};                              // none: no plug-in
  std::function<BesidePlan(const FormedView&)> besides{};  // what a run takes beside its plan; none: nothing
  std::span<const SchedulePass> passes{};                  // that run

  // Until dims are bound: the graph that kernels are formed of, where it is not the one given.
  std::unique_ptr<const Graph> own{};
  std::vector<NodeId> at{};  // per node given: its place in `own`; empty where that is the same
  UpdateGuard guard{};
  Recomputation recomputation{};
  // Of the graph so far: nodes of the forward made again in the backward, those that each of their readers makes, and both with the nodes
  // that they are copies of.
  std::vector<NodeId> late{}, where_read{}, twice{};

  // From then on: the graph with numbers for dims, and where values are made.
  std::vector<NodeId> roots{};  // values read after the last kernel
  std::optional<BoundGraph> bound{};
  std::optional<ValuePlaces> values{};
  AttentionGroups attention{};

  std::shared_ptr<BuiltKernels> built = std::make_shared<BuiltKernels>();  // until kernels are formed; others may share them
  std::optional<KernelFormer> former{};                                    // nodes in groups, until these are kernels
  KernelList list{};
  std::optional<BufferPlan> plan{};

  const Graph& graph() const { return own ? *own : given; }
  NodeId place_of(NodeId of_given) const { return at.empty() ? of_given : at[of_given.index]; }
  BoundGraph bind() const;  // with what the run needs of the graph so far
  void move_to(std::unique_ptr<const Graph> graph, std::vector<NodeId> to);
};

struct SchedulePass {
  std::string_view name;
  std::string_view description;
  std::string_view place;  // why it stands where it does
  void (*run)(Forming& forming);
  bool optional = false;                        // may be left out
  void (*instead)(Forming& forming) = nullptr;  // then runs
};

// In the order they run.
std::span<const SchedulePass> processor_passes();
std::span<const SchedulePass> gpu_passes();

struct ScheduleTarget {
  std::span<const SchedulePass> passes;
  KernelTarget sizes;
  AskLibrary ask_attention{};  // of a plug-in for attention; none where there is none
  std::function<BesidePlan(const FormedView&)> besides{};
};
// `threads`: each with scratch of its own.
ScheduleTarget processor_target(const Processor& processor = {}, int threads = 1);

// A plan of buffers; at debug level 1 it is verified.
BufferPlan verified_plan(const BoundGraph& graph, const KernelList& list, const std::vector<NodeId>& roots, RunMode mode);

// Runs the passes of a target, with their observer. Kernels are verified at the end, at debug level 1 behind each pass.
void run_passes(Forming& forming, std::span<const SchedulePass> passes);

// What the passes have made so far, as text: the graph, or the schedule (lower/schedule_text.h).
std::string to_string(const Forming& forming);

}  // namespace einc
