// SPDX-License-Identifier: Apache-2.0
// A graph as kernels in the order they run, each with the graph's nodes behind its buffers.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "compiler/lower/kernel.h"
#include "compiler/lower/library_calls.h"
#include "runtime/program/executable.h"

namespace einc {

struct Group {
  std::vector<NodeId> members;  // computed here, in the graph's order
  std::vector<NodeId> stored;   // those of them that are written to memory
  bool siblings = false;        // some meet only in a value outside that they read
  NodeId base = {};             // a state that the only member, a scatter_set, writes to where it lies; invalid: none
};

// What reduced parts of a sum hand to the kernel that adds them up: a buffer of no node, `offset` bytes into a place that such kernels
// share as far as KernelTarget::own_parts does not give them one of their own.
struct Parts {
  uint16_t buffer = 0;
  int64_t offset = 0;
};

struct GpuPlan;        // gpu_plan/gpu_plan.h
struct ProcessorPlan;  // lower/processor_plan.h

struct GraphKernel {
  std::shared_ptr<const Kernel> kernel;  // equal ones may be shared; made as `Kernel`, so that an only owner may change it
  std::vector<NodeId> buffers;           // per kernel buffer but scratch, which is the last; invalid for parts
  std::vector<NodeId> streams;           // random nodes, per stream
  std::vector<NodeId> sites;             // gather and scatter nodes, per index check
  std::vector<Parts> parts;
  Group group;
  LaunchWhen when = LaunchWhen::always;
  // Who does what of it on a GPU, or how it runs on a processor: the last pass of either list.
  std::shared_ptr<const GpuPlan> plan{};
  std::shared_ptr<const ProcessorPlan> loops{};
};

// Why an operand's group and a node were not joined.
struct FusionRefusal {
  NodeId operand, node;
  std::string reason;
};

// `whole` is made of `base` where that lies: by adding to it, or by replacing elements of a state.
struct Continued {
  NodeId base, whole;
};

struct KernelList {
  std::vector<GraphKernel> kernels;
  std::vector<Continued> continued;
  std::vector<bool> in_memory;  // per node: a kernel writes it to a buffer of its own
  std::vector<FusionRefusal> refusals;
  std::vector<FusionRefusal> no_attention;  // scores, and the node for which they are stored after all
  bool in_place = false;                    // results may be placed over operands of their kernels
  bool numbers_apart = false;               // single numbers share no place, so that launches that make them may join
  LibraryCalls library;                     // what a library may do of it
  // By kernel: the earlier one with which it is one launch, or itself. Empty: each is a launch of its own.
  std::vector<uint32_t> runs_with;
};

}  // namespace einc
