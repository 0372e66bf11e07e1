// SPDX-License-Identifier: Apache-2.0
// What a checkpoint says beside its tensors: the file train.json.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/data/file_system.h"
#include "runtime/train/position.h"

namespace einc {

// What a run is, beside its program: it is gone on with bit for bit when this is the same.
struct RunSettings {
  TrainingSeeds seeds;
  // By name, what must be the same too (data, micro-batches, precision), and what may change but is worth a word (the
  // program's text, the processor).
  std::map<std::string, std::string> required, noted;
  bool operator==(const RunSettings&) const = default;
};

struct CheckpointRecord {
  TrainingPosition position;
  RunSettings run;
  std::string program;  // the file it came from
  std::vector<std::pair<std::string, int64_t>> dims;
  FileDigest weights, state;
};

// The text ends in a checksum of what stands before it.
std::string to_json(const CheckpointRecord& record);
// Throws RuntimeFailure (data), which begins with the path: no JSON of this form, another version, another checksum.
CheckpointRecord parse_checkpoint_record(std::string_view text, const std::string& path);

}  // namespace einc
