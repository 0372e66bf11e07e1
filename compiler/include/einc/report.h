// SPDX-License-Identifier: Apache-2.0
// What a program costs, as data: the report of `einc FILE --report`. FLOPs are algorithmic, bytes those of one step.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "einc/tensor.h"

namespace einc::cost {

// An exact amount: a formula in the dims, and its number once every dim it needs has a value.
struct Amount {
  std::string symbolic;          // "2*batch*embed^2 + 2*batch*embed*vocab"
  std::optional<int64_t> value;  // when it is an integer below 2^63
  std::string digits;            // of any value: "36893488147419103232", "1/2"; empty without one
  bool valid_for_dims = false;   // the formula holds for the plan or contraction order chosen for these dims alone
};

struct Tensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::string> axes;
  std::vector<std::string> sizes;  // symbolic, one per axis
  Amount count;
};

struct Flops {
  Amount contraction, elementwise, reduction, other, total;
  Amount transcendental;  // part of elementwise
};

struct Module {
  std::string path;  // "h.0.attn"; empty: the whole program
  Amount parameters, flops_forward, flops_step, saved_activations;
};

// Bytes held where a step holds the most, or a run of a program without a loss; they add up to the peak.
struct PeakRows {
  int64_t parameters = 0, gradients = 0, optimizer_state = 0, state = 0, inputs = 0, kept_for_backward = 0, workspace = 0,
          fragmentation = 0;
  std::string launch;  // what is made then
};

struct Memory {  // bytes
  Amount parameters, gradients, optimizer_state, state, saved_activations, saved_activations_planned, inputs, workspace;
  Amount workspace_per_thread;  // in workspace once, again for each further thread
  Amount peak_training, peak_inference;
  std::optional<PeakRows> at_peak;  // once every dim has a value
};

struct SixNd {  // the rule of thumb: 6 FLOPs per parameter and token
  Amount parameters, tokens, estimate;
  std::optional<double> ratio;
};

enum class Phase : uint8_t { forward, backward, optimizer };
enum class Storage : uint8_t { view, fused, materialized };

struct Op {
  uint32_t id = 0;
  std::string kind, label, module;
  Phase phase = Phase::forward;
  std::string param_path;  // of the param that it reads, if any
  std::string file;
  uint32_t line = 0, column = 0;  // from 1; 0: unknown
  Tensor result;
  Storage storage = Storage::materialized;
  std::string copy_reason;  // why data moves although nothing is computed; empty otherwise
  Amount flops, bytes_read, bytes_written;
  std::optional<double> intensity;  // FLOPs per byte
};

// Launches alike but for the loop iteration they stand in; FLOPs as executed and bytes are those of one of them.
struct Launch {
  std::string name, kind;  // "h.*.mlp: contract w_up +1", "contraction"
  Phase phase = Phase::forward;
  int64_t count = 1, flops = 0, bytes = 0;
  std::string file;
  uint32_t line = 0, column = 0;  // from 1; 0: unknown
};

struct Report {
  std::string model, precision;
  std::vector<std::pair<std::string, std::optional<int64_t>>> dims;
  std::vector<std::string> free_dims;  // without a value
  Amount parameter_count, trained_count;
  std::vector<Tensor> parameters, inputs, states;
  Flops forward, backward, optimizer;
  Amount step, executed, per_token, per_example;  // FLOPs
  Amount examples;                                // of a step: the first axis that all inputs share by name
  std::vector<Module> modules;
  SixNd six_nd;
  Memory memory;
  std::vector<Launch> schedule;  // in the order of the first of each; empty while a dim has no value
  std::vector<Op> ops;
  std::vector<std::string> notes;
};

}  // namespace einc::cost
