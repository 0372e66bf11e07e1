// What the subcommands' options have in common: parsing with help and usage errors, `-D name=value`, reading files.
#pragma once
#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/driver/commands.h"
#include "compiler/symbolic/dim_table.h"
#include "dsl/render.h"

namespace einc {

// Runs the parser; a status to leave with at once after --help, --version or a usage error (message on standard error).
std::optional<ExitStatus> parse_arguments(CLI::App& app, Arguments arguments);

// `name=value` settings of dims: each a positive 63-bit integer. A wrong one is reported on standard error.
std::optional<Bindings> parse_dim_settings(const std::vector<std::string>& settings);

// Digits that make an integer below 2^64: CLI11 by itself takes -1 for 2^64 - 1.
CLI::Validator seed_check();

// Adds --precision, which names a policy.
void add_precision(CLI::App& app, std::string& precision);

// `name=path` settings; nullopt after a message.
std::optional<std::vector<std::pair<std::string, std::string>>> parse_assignments(const std::vector<std::string>& settings,
                                                                                  const char* option);

// Colour for a stream: only on a terminal and never with a non-empty NO_COLOR or TERM=dumb.
Color color_for(int file_descriptor);
// Columns of the terminal at standard output, or 100 when it is none; COLUMNS overrides when it is a sensible number.
int terminal_width();

}  // namespace einc
