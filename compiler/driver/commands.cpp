// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/commands.h"

namespace einc {

std::span<const Command> commands() {
  static constexpr Command kCommands[] = {
      {"run", "run a program on data", run_command},
      {"train", "train a program on data", train_command},
      {"plot", "plot what train logged", plot_command},
      {"bench", "measure a run on this machine, by kernel", bench_command},
      {"gradcheck", "check gradients against finite differences in f64", gradcheck_command},
      {"estimate", "estimate training time and memory from a model's size alone", estimate_command},
      {"tokenize", "turn text into a file of tokens", tokenize_command},
      {"detokenize", "turn a file of tokens into text", detokenize_command},
      {"sample", "generate text with a trained language model", sample_command},
      {"fmt", "format files", format_command},
      {"explain", "explain the code of an error", explain_command},
      {"lsp", "run the language server, for editors", lsp_command},
      {"completions", "print completions for bash, zsh and fish, or the manual page", completions_command},
      {"dtypes", "list the number formats", dtypes_command},
  };
  return kCommands;
}

}  // namespace einc
