// SPDX-License-Identifier: Apache-2.0
// One checkpoint: a folder of three files. weights.safetensors holds the params, state.safetensors the states (the optimizer's moments,
// loss scales, fp8 maxima, the step counter, the program's own), train.json the rest with the sizes and hashes of both.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/data/safetensors.h"
#include "runtime/executor/session.h"
#include "runtime/train/checkpoint_record.h"

namespace einc {

// Into a folder that is there and empty. Everything is on the disk afterwards but the folder's own name. Throws RuntimeFailure (resource).
void write_checkpoint(FileSystem& files, const std::string& folder, const SessionRep& session, const TrainingPosition& position,
                      const RunSettings& run);
inline constexpr const char* kCheckpointFiles[] = {"weights.safetensors", "state.safetensors", "train.json"};

// A checkpoint that was found whole.
class Checkpoint {
 public:
  // Reads everything once, for the hashes. Throws RuntimeFailure: data or resource, with the file and what is wrong with it.
  explicit Checkpoint(std::string folder);

  const std::string& folder() const { return folder_; }
  const CheckpointRecord& record() const { return record_; }
  const SafetensorsFile& weights() const { return *weights_; }
  const SafetensorsFile& state() const { return *state_; }

 private:
  std::string folder_;
  CheckpointRecord record_;
  std::unique_ptr<SafetensorsFile> weights_, state_;
};

// What stands between a checkpoint and going on from it bit for bit, a line each: "param 'w' is f32[3] in the checkpoint, f32[4] in the
// program". `run`: the one that wants to go on.
std::vector<std::string> differences(const Checkpoint& checkpoint, const ProgramInfo& program, const RunSettings& run);
// The same for what does not stand in the way.
std::vector<std::string> noted_differences(const Checkpoint& checkpoint, const RunSettings& run);

enum class Fit : uint8_t { exact, partial };  // partial: what has its name and shape is taken, the rest keeps its value
// Sets the session's params and states; its draws are the caller's to set. Gives the differences, none with Fit::exact. Nothing is
// changed by a failure: RuntimeFailure (data) that lists the differences, or says that nothing fits.
std::vector<std::string> restore(const Checkpoint& checkpoint, SessionRep& session, const RunSettings& run, Fit fit);

}  // namespace einc
