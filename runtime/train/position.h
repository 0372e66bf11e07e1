// SPDX-License-Identifier: Apache-2.0
// Where a training run stands between two steps: with the session's params and states, all that it takes to go on.
#pragma once
#include <cstdint>
#include <limits>

namespace einc {

// Each keys random streams of its own, so equal numbers do not correlate.
struct TrainingSeeds {
  uint64_t init = 0, data = 0, dropout = 0;
  bool operator==(const TrainingSeeds&) const = default;
};

struct TrainingPosition {
  uint64_t step = 0;                                           // steps done; the next batch is step * micro-batches per step
  double best_loss = std::numeric_limits<double>::infinity();  // of the validation
  uint64_t best_step = 0;
  bool operator==(const TrainingPosition&) const = default;
};

}  // namespace einc
