// SPDX-License-Identifier: Apache-2.0
// Syntax tree to graph: names are resolved, calls inlined, loops unrolled, shapes proved, the loss differentiated and the
// optimizer added. One pass over the text in order; after an error elaboration goes on with values that stand for "wrong
// already", so that the independent mistakes of a file come in one run.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "compiler/ir/graph.h"
#include "dsl/diagnostic.h"
#include "dsl/source.h"

namespace einc {

// Stated limits. Each has its own diagnostic.
inline constexpr size_t kMaxGraphNodes = 400'000;     // before simplification
inline constexpr size_t kMaxCalls = 200'000;          // of fns, all inlined
inline constexpr int kMaxCallDepth = 128;             // calls inside calls
inline constexpr int kMaxEvaluationDepth = 1'024;     // calls, blocks and expressions inside each other
inline constexpr int64_t kMaxTripCount = 65'536;      // of one loop
inline constexpr int64_t kMaxIterations = 1'000'000;  // of all loops
inline constexpr size_t kMaxFiles = 256;              // imported, directly or not
inline constexpr size_t kMaxPathBytes = 2'048;        // of a module, param or state: h.0.attn.w
inline constexpr size_t kMaxSizeTerms = 1'024;        // of a tensor's sizes multiplied out; one size: Poly::is_small
inline constexpr size_t kMaxMeshAxes = 8;
inline constexpr size_t kMaxTupleItems = 4'096;  // tuples in tuples counted together

// Work a program may make, apart from the limits above, which depend on the text alone.
struct WorkLimits {
  size_t graph_nodes = kMaxGraphNodes;
  int64_t iterations = kMaxIterations;
};

// Outputs that training adds to the program's own, for people to watch: `optimizer.learning_rate` of the step (of the second group
// of params `optimizer.learning_rate.1` and so on), and `optimizer.gradient_norm` before clipping where gradients are clipped.
enum class Watched : uint8_t { nothing, training };

// step: the optimizer takes the gradients. gather: they are added to those of the micro-batches before, and nothing else is trained.
enum class GradientUse : uint8_t { step, gather };

struct TrainingOptions {
  Watched watched = Watched::nothing;
  std::string optimizer;      // stands for what follows `using` in `minimize`, or for groups of params; empty: nothing
  std::string learning_rate;  // an expression, stands for every optimizer's lr; empty: nothing
  // Of a step. Above 1 each trained param has a state optimizer.PATH.gradient_sum; the step takes the mean and clears it.
  int64_t micro_batches = 1;
  GradientUse gradients = GradientUse::step;
};

// of_outputs: for each floating output y there is an input `cotangent.y` of its type, and `gradient.NAME` of each floating input and each
// trained param is an output: of the sum of all cotangent.y * y, zeros where no output depends on it. What other programs' autograd asks
// for: a vector-Jacobian product.
enum class Pullback : uint8_t { none, of_outputs };

// Whether a name that nothing reads, an import that gives nothing and a state that nothing updates are warned of.
enum class UnusedNames : uint8_t { allowed, reported };

// What shard lines may call an axis of an input, param or state: its name in the program's own file, and its size where that is a name.
struct DeclaredAxis {
  Name name, size;
};

struct ElaborateOptions {
  Bindings dims;                    // -D name=value
  std::optional<Policy> precision;  // --precision: replaces the file's own policy
  WorkLimits limits{};
  TrainingOptions training{};
  Pullback pullback = Pullback::none;
  UnusedNames unused_names = UnusedNames::allowed;
  // Told of every name that a statement of the program binds to a tensor, as often as it does, errors elsewhere or not.
  std::function<void(Span name, NodeId value, const std::string& type)> bound{};
  // Told of the axes of every input, param and state.
  std::function<void(Op declared, Name path, const std::vector<DeclaredAxis>& axes)> declared{};
  bool without_mesh = false;                  // the program's mesh and shard lines count for nothing
  std::string mesh{}, shard{};                // --mesh, --shard: stand for the program's lines; empty: as written
  std::vector<std::string> import_folders{};  // -I: imports are read from there and from the importing file's folder, nowhere else
};

// Parses `file` and everything it imports, and elaborates it; nullopt when there was an error. Warnings may come with a graph.
std::optional<Graph> elaborate(SourceMap& sources, FileId file, const ElaborateOptions& options, Diagnostics& diagnostics);

// Text of a bundled library file ("nn", "optim"); nullopt when there is none of that name.
std::optional<std::string_view> bundled_library(std::string_view name);

}  // namespace einc
