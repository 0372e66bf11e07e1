// SPDX-License-Identifier: Apache-2.0
// Completions, the manual page and help are made of what the commands take, so they name every command and option.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "compiler/driver/command_options.h"
#include "tests/support/run_einc.h"

using namespace einc;
using einc::test::run_einc;

namespace {

bool holds(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// What `einc COMMAND --help` itself lists, apart from the tables that it is made of.
std::vector<std::string> options_in_help(const std::string& command) {
  const auto ran = command.empty() ? run_einc({"--help"}) : run_einc({command, "--help"});
  CHECK(ran.status == 0);
  std::vector<std::string> names;
  std::istringstream lines(ran.output);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  -")) continue;
    std::istringstream words(line);
    for (std::string word; words >> word && word.starts_with('-');) {
      const bool more = word.ends_with(',');
      names.push_back(more ? word.substr(0, word.size() - 1) : word);
      if (!more) break;
    }
  }
  return names;
}

std::vector<std::string> commands_in_help() {
  std::vector<std::string> names = {""};
  std::istringstream lines(run_einc({"--help"}).output);
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (inside && line.empty()) break;
    if (inside) names.push_back(line.substr(2, line.find(' ', 2) - 2));
    inside = inside || line == "Commands:";
  }
  return names;
}

// The part of a script or of the manual page that is about one command, "" being einc FILE.
std::string part_about(const std::string& kind, const std::string& command, const std::string& whole) {
  const std::string begin = kind == "bash"  ? (command.empty() ? "    *) options=" : "    " + command + ") options=")
                            : kind == "zsh" ? (command.empty() ? "    *) _arguments" : "    " + command + ") _arguments")
                                            : ".SH \"EINC " + (command.empty() ? "FILE" : command) + "\"";
  const std::string end = kind == "man" ? "\n.SH" : "\n";
  if (kind != "fish") {
    const size_t at = whole.find(begin);
    return at == std::string::npos ? "" : whole.substr(at, whole.find(end, at + 1) - at);
  }
  std::string part;
  std::istringstream lines(whole);
  for (std::string line; std::getline(lines, line);)
    if (holds(line, command.empty() ? "'not __fish_seen_subcommand_from" : "'__fish_seen_subcommand_from " + command + "'"))
      part += line + "\n";
  return part;
}

std::string shown(const std::string& kind, const std::string& option) {
  const bool is_long = option.starts_with("--");
  if (kind == "zsh") return "'*" + option + (is_long ? "" : "[");
  if (kind == "fish") return (is_long ? " -l " + option.substr(2) : " -s " + option.substr(1)) + " ";
  if (kind == "bash") return option;
  std::string escaped;
  for (const char c : option) escaped += c == '-' ? "\\-" : std::string(1, c);
  return escaped;
}

}  // namespace

TEST_CASE("completions and the manual page name every command and option that --help lists") {
  const std::vector<std::string> commands = commands_in_help();
  REQUIRE(commands.size() == all_commands().size());
  for (const std::string kind : {"bash", "zsh", "fish", "man"}) {
    const auto ran = run_einc({"completions", kind});
    CHECK(ran.status == 0);
    for (const std::string& command : commands) {
      CAPTURE(kind);
      CAPTURE(command);
      const std::string part = part_about(kind, command, ran.output);
      CHECK(!part.empty());
      for (const std::string& option : options_in_help(command)) {
        CAPTURE(option);
        CHECK(holds(part, shown(kind, option)));
      }
    }
  }
  CHECK(options_in_help("train").size() > 35);
  CHECK(run_einc({"completions", "csh"}).status == 2);
}

TEST_CASE("bash reads its completions and completes by them") {
  const std::filesystem::path file = std::filesystem::temp_directory_path() / ("einc_completions_" + std::to_string(::getpid()));
  std::ofstream(file) << run_einc({"completions", "bash"}).output
                      << "COMP_WORDS=(einc train --st); COMP_CWORD=2; _einc; [ \"${COMPREPLY[*]}\" = --steps ] || exit 1\n"
                         "COMP_WORDS=(einc ben); COMP_CWORD=1; _einc; [ \"${COMPREPLY[*]}\" = bench ] || exit 2\n";
  CHECK(std::system(("bash " + file.string() + " >/dev/null 2>&1").c_str()) == 0);
  std::filesystem::remove(file);
}

TEST_CASE("help fits the terminal, has groups and examples") {
  for (const char* columns : {"60", "80", "120"}) {
    ::setenv("COLUMNS", columns, 1);
    const auto ran = run_einc({"--help"});
    ::unsetenv("COLUMNS");
    std::istringstream lines(ran.output);
    std::string line, examples;
    bool in_examples = false;
    while (std::getline(lines, line)) {
      in_examples = in_examples || line == "Examples:";
      CAPTURE(line);
      if (!in_examples) CHECK(line.size() <= std::stoul(columns));
    }
    CHECK(in_examples);
    CHECK(holds(ran.output, "What to show:"));
    CHECK(holds(ran.output, "Commands:"));
  }
  CHECK(run_einc({"help", "train"}).output == run_einc({"train", "--help"}).output);
}
