// SPDX-License-Identifier: Apache-2.0
// The checkpoints of a training run: DIR/step-00001000 and so on, and DIR/best, a link to the one of the least validation loss.
// A new one is written as DIR/.step-00001000.tmp, synced, renamed, and DIR synced, before an older one is removed: whatever happens in
// between, and when the power fails too, the newest whole one is the last that was finished.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "runtime/train/checkpoint.h"

namespace einc {

class CheckpointFolder {
 public:
  // Makes the folder when there is none, and holds a lock on it. Throws RuntimeFailure (resource), also when another process has it.
  explicit CheckpointFolder(std::string path, FileSystem& files = system_files());
  // To read in a folder that another process of the same run keeps.
  struct Reader {};
  CheckpointFolder(std::string path, Reader) : path_(std::move(path)), files_(system_files()) {}
  ~CheckpointFolder();
  CheckpointFolder(const CheckpointFolder&) = delete;
  CheckpointFolder& operator=(const CheckpointFolder&) = delete;

  const std::string& path() const { return path_; }
  std::vector<uint64_t> steps() const;  // of all checkpoints, damaged ones too, in rising order
  std::string folder_of(uint64_t step) const;

  // Replaces one of the same step. Of the others up to this step, `keep` - 1 and the best one stay. Throws RuntimeFailure (resource), and
  // then those that were there before still are.
  void save(const SessionRep& session, const TrainingPosition& position, const RunSettings& run, uint64_t keep);

  struct Found {
    Checkpoint checkpoint;
    std::vector<std::string> passed_over;  // what is wrong with newer ones
  };
  // nullopt: there are none. Throws RuntimeFailure (data) when none of those there is whole.
  std::optional<Found> newest() const;

 private:
  static FileSystem& system_files();
  std::string inside(const std::string& name) const { return path_ + "/" + name; }
  void remove_folder(const std::string& folder);
  void remove_drafts();
  void give_up(const std::string& draft);
  void point_at_best(const TrainingPosition& position);
  void remove_old(const TrainingPosition& position, uint64_t keep);

  std::string path_;
  FileSystem& files_;
  int lock_ = -1;
};

}  // namespace einc
