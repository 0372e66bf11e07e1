// SPDX-License-Identifier: Apache-2.0
// The checkpoints of `einc train`: when they are saved, and what a run goes on from.
#pragma once
#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "compiler/driver/exit_status.h"
#include "runtime/train/checkpoint_folder.h"

namespace einc {

struct CheckpointRequest {
  std::string folder;
  uint64_t every = 1000, keep = 2;
  bool resume = false, partial = false;
};
void add_checkpoint_options(CLI::App& app, CheckpointRequest& request);

class RunCheckpoints {
 public:
  // Finds what to go on from; standard error says what was passed over. Throws RuntimeFailure: resource, or data when no checkpoint is
  // whole. The request names a folder. `keeper`: of several processes one writes and speaks; the others read what it has made.
  enum class Keeper : uint8_t { this_process, another };
  explicit RunCheckpoints(const CheckpointRequest& request, Keeper keeper = Keeper::this_process);

  // False after a message: the folder has checkpoints, and nobody asked to go on from them.
  bool may_begin() const;
  // Of the run that is gone on with; nullptr: a new one begins.
  const TrainingSeeds* seeds() const { return found_ ? &found_->checkpoint.record().run.seeds : nullptr; }
  // Into an initialised session; standard error says what is not as it was. Throws RuntimeFailure (data): another model or run.
  TrainingPosition begin(SessionRep& session, RunSettings run);

  enum class Moment : uint8_t { between, last };  // last: no step follows, at least not now
  // Saves when it is time to. Throws RuntimeFailure (resource).
  void consider(const SessionRep& session, const TrainingPosition& position, Moment moment);
  std::string last_folder() const { return folder_.folder_of(saved_); }

 private:
  void warn(const std::string& text) const;

  const CheckpointRequest request_;
  const Keeper keeper_;
  CheckpointFolder folder_;
  std::optional<CheckpointFolder::Found> found_;
  RunSettings run_;
  uint64_t saved_ = UINT64_MAX;  // step
};

}  // namespace einc
