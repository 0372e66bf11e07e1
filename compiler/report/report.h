// SPDX-License-Identifier: Apache-2.0
// The cost report as data: what every renderer (text, JSON, HTML) shows and what the C++ API hands out. Each amount is a
// formula in the dims and, when every dim it needs has a value, an exact number. Built from a final graph: composites
// expanded, simplified, dtypes assigned. Counting rules: op_cost.h (FLOPs, bytes), memory.h (memory), tokens.h (6ND).
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "compiler/cost/device.h"
#include "compiler/cost/estimate.h"
#include "compiler/cost/roofline.h"
#include "compiler/fuse/planned_step.h"
#include "compiler/ir/graph.h"
#include "compiler/report/amount.h"
#include "compiler/report/communication.h"
#include "compiler/report/mesh_step.h"
#include "compiler/report/schedule.h"

namespace einc {

struct FlopReport {
  Amount contraction, elementwise, reduction, other, total;
  Amount transcendental;  // part of elementwise
};

struct TensorReport {
  std::string name;
  Type type;
  Amount count, bytes;
  bool frozen = false;
};

struct ModuleReport {
  std::string path;  // "h.0.attn"; empty: the whole program
  Amount parameters, flops_forward, flops_step, saved_activations;
};

struct SixNdReport {
  bool of_tokens = false;  // else `tokens` counts none, and readers are told of examples
  Amount parameters, tokens, estimate;
  std::string tokens_from;  // what `tokens` was read off
  std::optional<double> ratio;
};

struct MemoryReport {
  Amount parameters, gradients, optimizer_state, state, saved_activations, inputs, workspace, peak_training, peak_inference;
  Amount workspace_per_thread;           // panels of contractions: in workspace once, again for each further thread
  Amount saved_planned;                  // what the plan keeps in its arena from the forward for the backward
  std::optional<PlannedMemory> at_peak;  // rows that add up to the peak of a step: of training if there is a loss, else of inference
  std::vector<std::string> recomputed;   // under a memory limit: what the backward makes again, "h.0.mlp up"
  std::vector<int64_t> over_step;        // bytes held at each launch of that run, without what is nobody's
};

enum class Storage : uint8_t { view, fused, materialized };

struct OpReport {
  NodeId id;
  Storage storage = Storage::materialized;
  std::string copy_reason;  // why data moves although nothing is computed; empty otherwise
  Name param_path;          // of the param that it reads (through views and casts), if any
  Amount flops, bytes_read, bytes_written;
  std::optional<double> intensity, time_s;
  Bound bound = Bound::none;
};

struct DeviceReport {
  Device device;
  double peak_flops = 0;  // for contractions in the program's precision
  std::optional<double> step_time_s, lower_bound_s, mfu_at_bound;
  std::optional<bool> fits;  // peak_training against memory less its reserve
};

struct TrainingReport {
  double devices = 0, tokens = 0, mfu = 0;
  TrainingTime time;
  std::optional<double> steps;
  struct Shard {
    std::string name;
    double bytes = 0;
  };
  std::vector<Shard> shards;  // weights, gradients and optimizer state on each device under ZeRO
};

// One row of the transformer table (Kaplan et al. 2020, table 1): FLOPs of each component for one token, forward.
struct ComponentReport {
  std::string name;  // "embed", "qkv", "scores", "value mix", "projection", "feed-forward", "de-embed"
  Amount parameters, flops_per_token;
  std::optional<double> share;  // of all components' FLOPs
};

struct FitReport {
  Name dim;
  FitResult result;
};

struct Report {
  std::string model;
  std::string target;  // "cpu" or "cuda": what kernels and memory are planned for; empty while a dim has no value
  int threads = 0;     // of a processor, whose scratch memory counts; 0: a GPU's program
  std::string precision;
  std::vector<std::pair<Name, std::optional<int64_t>>> dims;  // declared order; free ones without a value are empty
  std::vector<Name> free_dims;
  std::vector<Definition> definitions;  // to print formulas with derived dims
  std::vector<Name> loop_dims;          // trip counts of loops, in declared order
  Amount parameter_count, trained_count;
  std::vector<TensorReport> parameters, inputs, states;
  FlopReport forward, backward, optimizer;
  Amount step, executed, per_token, examples, per_example;
  KernelWork executed_by;             // `executed` by class, and the bytes of all launches; zeros while a dim has no value
  std::vector<ModuleReport> modules;  // "" first, then by path in order of appearance, prefixes before what they contain
  SixNdReport six_nd;
  MemoryReport memory;
  Amount host_to_device;                // bytes of inputs moved for each step
  std::vector<OpReport> ops;            // with Detail::ops: every node but scalars' constants, params, inputs and states
  std::vector<LaunchReport> schedule;   // empty without values for all dims
  std::vector<uint32_t> row_of_launch;  // by launch, in the schedule; kNoRow for those that are not among them
  std::vector<ComponentReport> components;
  std::vector<ContractionPlan> plans;
  std::optional<DeviceReport> device;
  std::optional<TrainingReport> training;
  std::optional<FitReport> fit;
  std::optional<MeshReport> mesh;  // of a program that has one
  std::vector<std::string> notes;  // warnings and what the numbers leave out
};

enum class Detail : uint8_t { totals, ops };

struct TrainingRequest {
  double devices = 1, tokens = 0, mfu = 0.5;
};

// The final graph of the program with these values of some dims; nothing where they make it none.
using CompileWith = std::function<std::optional<Graph>(const Bindings& dims)>;

struct ReportOptions {
  Bindings given;  // -D settings
  Detail detail = Detail::totals;
  std::optional<Device> device;
  std::optional<TrainingRequest> training;
  // The program simplified with inference roots (dropout as identity), which outlives the report; null: read off the training graph.
  std::function<const Graph&()> inference{};
  const Partitioned* partitioned = nullptr;  // the graph over its mesh; null: it has none
  PlanStep plan = plan_for_processor({});    // what kernels, memory and executed FLOPs are read off; null: none of them are told
  PlanStep plan_inference{};                 // run beside `plan`; none: the same
  PlanStep plan_device{};                    // of one device of the mesh; none: as of the whole
  ProcessBytes process_bytes{};              // that a process of one device takes besides; none: nothing
  CompileWith compile{};                     // for hold_formulas; none: formulas are told as they are here
};

Report build_report(const Graph& graph, const ReportOptions& options);

// Bytes of a training step's peak at these dims: what --fit searches over. Empty when the dims do not bind.
std::optional<Rational> peak_training_bytes(const Graph& graph, const Bindings& given, const PlanStep& plan);

// FLOP/s of a machine's products under a policy, by its sheet.
std::optional<double> contraction_peak(const Device& device, Policy policy);

}  // namespace einc
