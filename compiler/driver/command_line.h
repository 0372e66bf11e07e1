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

inline constexpr uint64_t kMaxCount = 1'000'000'000'000;  // of steps and the like: times 2^20 micro-batches it fits 64 bits
inline constexpr uint64_t kMaxInt = 2'147'483'647;

// Digits that make an integer of that range: CLI11 by itself takes -1 for 2^64 - 1, and shows bounds as doubles of 309 digits.
CLI::Validator whole_number(uint64_t first, uint64_t last);
CLI::Validator seed_check();  // below 2^64
// A finite number above 0.
CLI::Validator positive_number();

// Adds -I, the folders that imports are read from besides the importing file's own.
void add_import_folders(CLI::App& app, std::vector<std::string>& folders);

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
