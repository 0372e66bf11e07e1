// SPDX-License-Identifier: Apache-2.0
// The subcommands of einc. Each parses its own arguments (argv without the program name and the subcommand) and runs.
#pragma once
#include <span>
#include <string>

#include "compiler/driver/exit_status.h"

namespace einc {

using Arguments = std::span<const std::string>;

ExitStatus compile_command(Arguments arguments);      // einc FILE [options]
ExitStatus run_command(Arguments arguments);          // einc run FILE --input x=x.npy ...
ExitStatus train_command(Arguments arguments);        // einc train FILE --data tokens=train.bin ...
ExitStatus plot_command(Arguments arguments);         // einc plot run.jsonl -o loss.svg
ExitStatus bench_command(Arguments arguments);        // einc bench FILE
ExitStatus gradcheck_command(Arguments arguments);    // einc gradcheck FILE
ExitStatus estimate_command(Arguments arguments);     // einc estimate --params 70e9 ...
ExitStatus tokenize_command(Arguments arguments);     // einc tokenize TEXT -o train.bin
ExitStatus detokenize_command(Arguments arguments);   // einc detokenize train.bin
ExitStatus dtypes_command(Arguments arguments);       // einc dtypes
ExitStatus sample_command(Arguments arguments);       // einc sample FILE --weights w.safetensors
ExitStatus explain_command(Arguments arguments);      // einc explain E0322
ExitStatus lsp_command(Arguments arguments);          // einc lsp
ExitStatus completions_command(Arguments arguments);  // einc completions bash
ExitStatus format_command(Arguments arguments);       // einc fmt FILE...

struct Command {
  const char* name;
  const char* summary;
  ExitStatus (*run)(Arguments);
};
std::span<const Command> commands();

}  // namespace einc
