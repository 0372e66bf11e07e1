// SPDX-License-Identifier: Apache-2.0
// Options as other programs name them, with what stands for them here.
#pragma once
#include <span>
#include <string_view>

namespace einc {

// `--epochs` of others: a command that has `--steps` says to write that. `ours` is empty where any command may be meant.
struct ForeignOption {
  std::string_view theirs, ours, write;
};
std::span<const ForeignOption> foreign_options();

}  // namespace einc
