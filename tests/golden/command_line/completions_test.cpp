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

}  // namespace

TEST_CASE("completions and the manual page name every command and option") {
  const std::vector<CommandText> all = all_commands();
  REQUIRE(all.size() > 10);
  for (const char* kind : {"bash", "zsh", "fish", "man"}) {
    const auto ran = run_einc({"completions", kind});
    CHECK(ran.status == 0);
    for (const CommandText& command : all) {
      CAPTURE(kind);
      CAPTURE(command.name);
      CHECK(holds(ran.output, command.name));
      for (const OptionText& option : command.options) {
        std::string name = option.names.back();
        if (std::string_view(kind) == "fish") name = name.substr(name.find_first_not_of('-'));
        if (std::string_view(kind) == "man") {
          std::string escaped;
          for (const char c : name) escaped += c == '-' ? "\\-" : std::string(1, c);
          name = escaped;
        }
        CHECK(holds(ran.output, name));
      }
    }
  }
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
