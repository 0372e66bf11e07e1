// SPDX-License-Identifier: Apache-2.0
// The programs that a plan measures: a step's, and those of a step in micro-batches, with few iterations of their loops, ready for any
// mesh.
#pragma once
#include <memory>
#include <vector>

#include "compiler/plan/few_iterations.h"
#include "compiler/plan/mesh_way.h"
#include "compiler/plan/split_names.h"

namespace einc {

// Dims of the axes of a mesh, from the first on, those of stages aside: no program has such names.
Name mesh_dim(size_t axis);
Name stages_dim();

// whole: forward, backward and optimizer. gather: gradients of a micro-batch, added to those before. last: of the last micro-batch, with
// the optimizer's step.
enum class Micro : uint8_t { whole, gather, last };

// Puts a way's mesh and shard requests into a graph that has the dims of a mesh.
void set_mesh(Graph& graph, const MeshWay& way, const std::vector<SplitName>& names);

class SamplePrograms {
 public:
  // `whole` has been compiled without a mesh; `dims` gives every dim a value.
  SamplePrograms(const Compilation& whole, const PipelineOptions& options, const Bindings& dims, std::vector<SplitName> names);

  // The same programs, to be made anew: a thread puts the meshes of its ways into them.
  SamplePrograms(const SamplePrograms& other);

  const FewIterations& few() const { return few_; }
  size_t count() const { return few_.samples().size(); }
  // Programs besides the samples: the one that formulas are read off, of four iterations, and those of four stages with so many each.
  static constexpr int64_t kMostOfStage = 4;
  size_t folding() const { return of_stages(1); }
  size_t of_stages(int64_t each) const { return count() + static_cast<size_t>(each) - 1; }
  // A sample's graph, or one of those, with the way's mesh and shard requests. Its axes' sizes are mesh_dim's. Valid until the next
  // call.
  const Graph& graph(Micro micro, size_t sample, const MeshWay& way);
  // Settings of its dims, with those of the way's mesh and a micro-batch; of microbatches that stages have, the whole batch.
  Bindings dims(size_t sample, const MeshWay& way) const;
  // The dim of the loop that stages may share; empty: none.
  Name loop() const { return batch_.empty() ? Name() : few_.single(); }
  int64_t iterations() const { return loop().empty() ? 0 : dims_.at(loop()); }
  const std::vector<SplitName>& names() const { return names_; }
  // The dim that inputs share first, and which micro-batches divide; empty where it is none.
  Name batch() const { return batch_; }
  int64_t batch_size() const { return batch_.empty() ? 1 : dims_.at(batch_); }
  const Bindings& whole_dims() const { return dims_; }
  // Bytes of params and states as they are declared: of the whole program, and of a sample.
  double stored_bytes() const;
  double stored_bytes(size_t sample);

 private:
  Graph& sample(Micro micro, size_t index);
  Bindings few_dims(size_t index) const;
  const Compilation& whole_;
  const PipelineOptions options_;
  const Bindings dims_;
  const FewIterations few_;
  const std::vector<SplitName> names_;
  Name batch_;
  std::vector<std::unique_ptr<Graph>> graphs_;  // by micro and sample, made when first asked for
};

}  // namespace einc
