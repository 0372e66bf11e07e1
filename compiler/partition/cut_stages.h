// SPDX-License-Identifier: Apache-2.0
// From the graph of one device, which has all iterations, to the graph of a device of each stage of a pipeline. What another stage makes is
// an input; what others read is an output. Each is a device's graph like any other's, so that all that plans, counts and interprets those
// does so with stages, too.
#pragma once
#include <map>
#include <unordered_map>
#include <vector>

#include "compiler/partition/localize.h"
#include "compiler/partition/place_stages.h"

namespace einc {

// A value that the devices of one stage send to those of another along the mesh axis of the stages; for a microbatch, to the next stage up
// or down. Ids are of the whole device's graph.
struct StageSend {
  NodeId value;
  int from = 0, to = 0;      // stages; of a microbatch's, `from` may have it from its neighbour
  int made = 0, wanted = 0;  // rounds: of its maker, and the first that reads it
  // It goes up or down for each of them; all else once a step.
  bool of_microbatch() const { return made == kMicrobatchRound && wanted == kMicrobatchRound; }
};

// A declaration that lies where an earlier round of the stage has it.
struct EarlierValue {
  NodeId here;
  int round = 0;
  NodeId there;
};

// Nodes of a program by those of the whole device's graph. Of many stages and rounds most have few, or none.
class NodesHere {
 public:
  // Invalid: it is not here.
  NodeId operator[](uint32_t of_whole) const {
    const auto known = at_.find(of_whole);
    return known == at_.end() ? NodeId{} : known->second;
  }
  void put(uint32_t of_whole, NodeId here) { at_[of_whole] = here; }
  auto begin() const { return at_.begin(); }
  auto end() const { return at_.end(); }

 private:
  std::map<uint32_t, NodeId> at_;  // in the whole's order
};

// Without conditions on dims: those are the whole's.
struct StageProgram {
  Localized local;  // collectives: those of this program
  NodesHere at;
  std::vector<size_t> numbers;  // of its collectives, in the whole's list; those of microbatches (stage_meetings.h) stand behind
  std::vector<NodeId> taken;    // nodes of the whole's graph that are inputs here: another stage or an earlier round makes them
  std::vector<EarlierValue> earlier{};
  // By node of the whole's graph: its sum over microbatches. Of their round.
  std::unordered_map<uint32_t, NodeId> sums{};

  bool is_empty() const { return local.graph.nodes.empty(); }
};

struct StagePrograms {
  std::vector<std::vector<StageProgram>> stages;  // by stage and round (place_stages.h)
  std::vector<StageSend> sends;                   // between stages, in the order of the values
};

// The name of the input that is another program's value, and of the output there.
Name stage_value_name(NodeId of_whole);

// `places`: of local.graph.
// Where `local` stores in place, so do the last rounds, behind the place where all stages agree that all is finite.
StagePrograms cut_stages(const Localized& local, const StagePlaces& places);

}  // namespace einc
