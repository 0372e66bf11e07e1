// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/commands.h"

namespace einc {

std::span<const Command> commands() {
  static constexpr Command kCommands[] = {
      {"run", "run a program on data", run_command},
      {"train", "train a program on data", train_command},
      {"plot", "draw what train logged", plot_command},
      {"bench", "measure a run on this machine, by kernel", bench_command},
      {"gradcheck", "symbolic gradients against finite differences in f64", gradcheck_command},
      {"estimate", "training time and memory from a model's size alone", estimate_command},
      {"tokenize", "text to a file of tokens", tokenize_command},
      {"detokenize", "a file of tokens to text", detokenize_command},
      {"sample", "draw text from a trained language model", sample_command},
      {"fmt", "format files", format_command},
      {"explain", "what the code of an error means", explain_command},
      {"lsp", "the language server, for editors", lsp_command},
      {"completions", "completion for bash, zsh and fish, and the manual page", completions_command},
      {"dtypes", "the number formats", dtypes_command},
  };
  return kCommands;
}

}  // namespace einc
