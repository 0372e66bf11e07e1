// SPDX-License-Identifier: Apache-2.0
// A compiled program as plain data: the buffers it needs, and the launches of generated functions over them, in order. It
// holds nothing of the compiler and can be stored.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/base/init.h"
#include "runtime/program/program_info.h"
#include "runtime/program/update_bounds.h"

namespace einc {

enum class BufferRole : uint8_t { input, param, state, arena, gradient };
inline bool is_source(BufferRole role) { return role <= BufferRole::state; }
inline BufferRole buffer_role(SourceKind kind) {
  return kind == SourceKind::input ? BufferRole::input : kind == SourceKind::param ? BufferRole::param : BufferRole::state;
}

struct ExecutableBuffer {
  BufferRole role = BufferRole::arena;
  std::string name;  // input's name, param's or state's path; empty in the arena
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  int64_t bytes = 0;
  int64_t offset = 0;               // in the memory of the executable
  InitKind init = InitKind::zeros;  // of params and states
  int32_t padding = 0;              // elements at the end of each row, counted in shape, that hold nothing; of the arena
  std::vector<double> init_arguments{};
  bool operator==(const ExecutableBuffer&) const = default;
};

// For the message about a position outside its table, or about a divisor (without a table, bound 0) that is 0.
struct SiteInfo {
  std::string positions, table;  // "'ids'", "axis 'vocab' of 'wte'"
  std::vector<int64_t> shape;    // of the tensor of positions or divisors
  int64_t bound = 0;
  std::string location;  // " (model.ein:12:8)"
};

// What of a run is not finite.
enum class NonFinite : uint8_t { nothing, loss, gradient, state };
// Of two, the one that a run looks for first.
inline NonFinite earlier(NonFinite a, NonFinite b) { return a == NonFinite::nothing || (b != NonFinite::nothing && b < a) ? b : a; }

// A number that a run looks at before it changes params or states: a loss and the largest gradient must be finite. Of what a state would
// take it must not be NaN, which stands for every element that must not be stored.
struct FiniteCheck {
  NonFinite means = NonFinite::loss;
  uint32_t buffer = 0;
};

// The new value of a param or state, as a bound tells it, and as launches tell it that store nothing else: its least and largest element.
struct BoundedUpdate {
  uint32_t target = 0;           // buffer
  uint32_t bound = 0;            // of Executable::bounds
  uint32_t least = 0, most = 0;  // buffers of one f64
};

enum class LaunchWhen : uint8_t {
  always,
  unbounded,  // when a bound does not show that what is stored stays finite
  checked,    // when all numbers that were made before are as they must be
};

inline constexpr uint32_t kNoFunction = UINT32_MAX;  // of a launch that runs a scan, or that devices carry out together

struct Launch {
  LaunchWhen when = LaunchWhen::always;
  uint32_t function = 0;          // index into Executable::functions, of a scan's body into those of the whole
  int32_t scan = -1;              // index into Executable::scans: the launch is a recurrence
  std::vector<uint32_t> buffers;  // in the order of the kernel's buffers
  std::vector<std::string> streams;
  std::vector<SiteInfo> sites;
  int64_t domain = 1;    // points that threads divide
  bool alone = false;    // one thread does them
  std::string label;     // for people: "h.0.attn softmax"
  std::string location;  // of that: "model.ein:12:8"; empty: unknown
};

// Nothing runs in its place: what carries the program out over a mesh starts it, and waits.
inline bool is_collective(const Launch& launch) { return launch.scan < 0 && launch.function == kNoFunction; }

struct ExecutableOutput {
  std::string name;
  uint32_t buffer = 0;
};
// `target` takes the contents of `value` (another buffer).
struct BufferCopy {
  uint32_t value = 0, target = 0;
};

struct ScanProgram;

struct Executable {
  std::vector<ExecutableBuffer> buffers;
  std::vector<std::string> functions;  // symbols
  std::vector<Launch> launches;
  std::vector<ScanProgram> scans;
  std::vector<ExecutableOutput> outputs;
  std::vector<ExecutableOutput> gradients;  // by path of the param
  int32_t loss = -1;                        // buffer
  std::vector<BufferCopy> snapshots;        // before the first launch
  std::vector<BufferCopy> copies;           // after the last
  std::vector<FiniteCheck> checks;          // in the order in which a fault is told
  std::vector<BoundOp> bounds;
  std::vector<BoundedUpdate> bounded;
  int64_t memory_bytes = 0;   // of all buffers together, in whole cache lines
  int64_t own_bytes = 0;      // of those but inputs, params and states, which lie behind them
  int64_t scratch_bytes = 0;  // of each thread, besides
};

// The last launch that makes or reads a buffer which some launch makes.
inline size_t last_launch_of(const Executable& program, uint32_t buffer) {
  size_t l = program.launches.size() - 1;
  while (l > 0 && std::ranges::find(program.launches[l].buffers, buffer) == program.launches[l].buffers.end()) --l;
  return l;
}

// Where a buffer of a scan's body lies: in a buffer of the launch, `step` bytes further in each iteration.
struct ScanBuffer {
  uint32_t buffer = 0;  // of the body
  uint32_t place = 0;   // in Launch::buffers
  int64_t offset = 0, step = 0;
};

// A recurrence: the body runs `length` times, from the last place to the first where `reversed`. Its inputs and states lie where `buffers`
// says, all else in the launch's buffer `workspace`, which counts when the body has memory of its own.
struct ScanProgram {
  Executable body;
  int64_t length = 1;
  int64_t all_pieces = 0;  // see iteration_inside
  bool reversed = false;
  uint32_t workspace = 0;
  std::vector<ScanBuffer> buffers;
  std::vector<ScanBuffer> initial;  // of carries: `place` is copied to the body's buffer before the first iteration
};

}  // namespace einc
