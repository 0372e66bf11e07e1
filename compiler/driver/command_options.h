// SPDX-License-Identifier: Apache-2.0
// The commands and what each takes, read off the parsers that they set up themselves: what --help, completions and the man page are made
// of.
#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace einc {

struct OptionText {
  std::vector<std::string> names;  // "-o", "--output"; none for a positional one
  std::string value;               // "NAME=FILE"; empty for a flag
  std::string description;
  bool required = false;
};

struct CommandText {
  std::string name, summary;  // the name is empty for `einc FILE`
  std::string description;
  std::vector<OptionText> positionals, options;
};

std::vector<CommandText> all_commands();
CommandText command_text(const CLI::App& app);

// The help of a command, wrapped to so many columns, with its examples.
std::string help_text(const CLI::App& app, int columns);

// Set while the commands are asked what they take: parse_arguments shows their parsers to it and goes no further.
using ParserObserver = std::function<void(const CLI::App&)>;
const ParserObserver*& parser_observer();

}  // namespace einc
