// SPDX-License-Identifier: Apache-2.0
// From what a person says of a program's data to its batches: `--data tokens=train.bin` (a token file), or for each input an array,
// `--data x=x.npy --data y=y.npy`.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/data/token_file.h"
#include "runtime/train/batches.h"
#include "runtime/train/row_order.h"

namespace einc {

struct DataSettings {
  std::vector<std::pair<std::string, std::string>> files;  // input = path
  // The input that gets the tokens which follow those of a token file; empty: the only one of their shape that no file names.
  std::string next;
  std::optional<TokenFormat> token_format;  // of files that do not say it
  RowOrder order = RowOrder::random;
  uint64_t seed = 0;
  double validation_fraction = 0;  // below 1: the tail that is kept back
};

// The tail of `validation_fraction` or what lies before it.
enum class DataPart : uint8_t { training, validation };

// Every input of the program gets its values; without inputs no files are needed. Throws Error (usage) for what the settings ask of the
// program, and RuntimeFailure (data, resource) for what the files hold.
std::shared_ptr<const Batches> open_batches(const DataSettings& settings, const std::vector<TensorInfo>& inputs,
                                            DataPart part = DataPart::training);

}  // namespace einc
