// SPDX-License-Identifier: Apache-2.0
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

// Runs the parser; a status to leave with at once after --help, --version or a usage error (message on standard error, which names
// the option that was probably meant).
std::optional<ExitStatus> parse_arguments(CLI::App& app, Arguments arguments);

// `name=value` settings of dims: each a positive 63-bit integer. A wrong one is reported on standard error.
std::optional<Bindings> parse_dim_settings(const std::vector<std::string>& settings);

// Settings of two programs to compare: a dim that is set twice has its first value in one and its second in the other, any other has its
// value in both.
struct ComparedSettings {
  std::vector<std::string> own, other;
};
// nullopt after a message, where a dim is set more than twice.
std::optional<ComparedSettings> compared_settings(const std::vector<std::string>& settings);

inline constexpr uint64_t kMaxCount = 1'000'000'000'000;  // of steps and the like: times 2^20 micro-batches it fits 64 bits
inline constexpr uint64_t kMaxInt = 2'147'483'647;

// What options take. CLI11's own checks let -1 through as 2^64 - 1, and their messages spell out the largest double.
CLI::Validator whole_number(uint64_t least, uint64_t most);  // digits alone
// How many, for transform(): a whole number, which may be written 10k, 1.5M, 7B, 1T or 1e6.
CLI::Validator count_between(uint64_t least, uint64_t most);
CLI::Validator seed_check();  // any integer below 2^64
CLI::Validator positive_number();
CLI::Validator number_between(double low, double high);  // both included
CLI::Validator one_of(std::vector<std::string> choices);
// A positive number, for transform(): 15e12 may be written 15T, 7B, 350M, 32k.
CLI::Validator quantity();

// A number of bytes, for transform(): 40GB (of 10^9), 512MiB, 40e9.
CLI::Validator byte_count();

// "; did you mean `x`?" where a candidate is near what was written, else nothing.
std::string did_you_mean(std::string_view written, const std::vector<std::string>& candidates);

// Adds -I, the folders that imports are read from besides the importing file's own.
void add_import_folders(CLI::App& app, std::vector<std::string>& folders);

// Adds --memory-limit.
void add_memory_limit(CLI::App& app, std::optional<int64_t>& bytes);

// Adds --mesh and --shard, which stand for the program's lines.
void add_mesh(CLI::App& app, std::string& mesh, std::string& shard);

// Adds --precision, which names a policy.
void add_precision(CLI::App& app, std::string& precision);

// `name=path` settings; nullopt after a message.
std::optional<std::vector<std::pair<std::string, std::string>>> parse_assignments(const std::vector<std::string>& settings,
                                                                                  const char* option);

// Colour for a stream: only on a terminal and never with a non-empty NO_COLOR or TERM=dumb.
Color color_for(int file_descriptor);
// Columns of a stream's terminal, or 100 when it is none; COLUMNS overrides when it is a sensible number.
int terminal_width(int file_descriptor = 1);  // standard output's

}  // namespace einc
