// SPDX-License-Identifier: Apache-2.0
// The search for a mesh: every way to split a program over so many devices (stages of a loop, kinds of axes, their sizes and order, what is
// spread, how many micro-batches), each estimated by the formulas of step_formulas.h. A partition is made for each kind of way, not for
// each size, nor for stages: they share out what it has.
#pragma once
#include <optional>
#include <vector>

#include "compiler/plan/sample_programs.h"
#include "compiler/plan/step_estimate.h"

namespace einc {

struct EstimatedWay {
  MeshWay way;
  HeldBytes held;
  StepSeconds seconds;
  double again = 0;  // seconds of the work: made again under the limit of the device's memory
};

struct FoundWays {
  // The fastest that fit, best first. Of ways that differ in what is spread alone, those that are
  // neither faster than another one nor smaller are left out; of numbers of micro-batches the fastest that fits stands for all.
  std::vector<EstimatedWay> best;
  std::vector<EstimatedWay> keeping;   // likewise, of those that recompute nothing
  std::vector<EstimatedWay> smallest;  // those that take the least memory, whether or not they fit, least first
  size_t estimated = 0, fitting = 0;
};

// That ways are looked at on: as many as there are processors, up to a few.
unsigned way_threads();

// By time, then memory, then text.
bool ranks_before(const StepSeconds& a, const HeldBytes& held_a, const MeshWay& way_a, const StepSeconds& b, const HeldBytes& held_b,
                  const MeshWay& way_b);

class WaySearch {
 public:
  // `spreads`: those that may be asked for.
  WaySearch(SamplePrograms& programs, const PlacedWays& placed, const Device& device,
            std::vector<Spread> spreads = {std::begin(kSpreads), std::end(kSpreads)});

  // `count` of each list.
  FoundWays search(int64_t devices, size_t count);
  // A way by itself: nothing where no rule splits the program so.
  std::optional<EstimatedWay> estimate(const MeshWay& way);

 private:
  using Kind = std::vector<size_t>;  // roles, one for each axis of the mesh
  struct Role {
    std::vector<size_t> names;
    bool of_data = false;
    std::string axis;  // what a mesh axis of it is called
  };
  void find_roles();
  std::vector<Kind> kinds() const;
  std::optional<MeshWay> way_of(const Kind& kind, const std::vector<int64_t>& sizes) const;
  std::vector<std::optional<WayStages>> stages_of(int64_t devices) const;
  std::vector<MeshWay> meshes_of(int64_t devices) const;
  std::vector<Spread> spreads_of(const MeshWay& way) const;
  std::vector<int64_t> micro_batches_of(const MeshWay& way) const;
  std::unique_ptr<StepFormulas> made_for(Graph& graph, MeshWay way) const;
  void make_formulas(const std::vector<MeshWay>& meshes);
  const StepFormulas* formulas_of(const MeshWay& way);
  void try_sizes(const MeshWay& way, FoundWays& found);

  SamplePrograms& programs_;
  const std::vector<SplitName>& names_;
  const PlacedWays& placed_;
  const Device& device_;
  const double budget_;  // bytes for the step: on a processor one process has whole params and states besides
  const std::vector<Spread> spreads_;
  std::vector<int64_t> parts_;          // by name: the most that all of its places divide into
  std::vector<int64_t> micro_batches_;  // divisors of the batch
  std::vector<Role> roles_;
  std::string stage_axis_;                                         // what it is called
  std::map<std::string, std::unique_ptr<StepFormulas>> formulas_;  // by what is split and spread; null: it cannot be
};

}  // namespace einc
