// SPDX-License-Identifier: Apache-2.0
// `einc fmt FILE...`: one layout for every file, in place; --check only says which files would change, - reads standard input.
#include <fmt/format.h>

#include <iostream>
#include <iterator>

#include "compiler/driver/command_line.h"
#include "compiler/driver/open_program.h"
#include "dsl/format.h"
#include "runtime/data/file.h"

namespace einc {
namespace {

enum class Action : uint8_t { rewrite, check, print };

ExitStatus format_one(const std::string& path, Action action) {
  SourceMap sources;
  Diagnostics diagnostics;
  std::optional<FileId> file;
  if (path == "-") {
    std::string text{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
    file = sources.add("standard input", std::move(text), diagnostics);
  } else {
    if (const auto problem = unreadable(path)) return fmt::print(stderr, "einc: {}\n", *problem), ExitStatus::environment;
    file = sources.load(path, diagnostics);
  }
  const std::optional<std::string> text = file ? format(sources, *file, diagnostics) : std::nullopt;
  print_diagnostics(sources, diagnostics, DiagnosticsForm::text, Severity::warning);
  if (!text) return ExitStatus::wrong_program;
  if (path == "-" || action == Action::print) return fmt::print("{}", *text), ExitStatus::done;
  if (*text == sources.file(*file).text()) return ExitStatus::done;
  if (action == Action::check) return fmt::print("{}\n", path), ExitStatus::wrong_program;
  const std::span<const std::byte> piece = std::as_bytes(std::span(*text));
  write_file(path, {&piece, 1});  // whole or not at all: it is the user's only copy
  return ExitStatus::done;
}

}  // namespace

ExitStatus format_command(Arguments arguments) {
  CLI::App app("Formats programs in place.", "einc fmt");
  std::vector<std::string> files;
  bool check = false, to_stdout = false;
  app.add_option("FILE", files, "programs; - for standard input to standard output")->required();
  app.add_flag("--check", check, "change nothing; name the files that are not formatted and exit with 1");
  app.add_flag("--stdout", to_stdout, "print the formatted text instead of writing the file");
  if (auto status = parse_arguments(app, arguments)) return *status;
  ExitStatus worst = ExitStatus::done;
  for (const std::string& file : files) {
    const ExitStatus status = format_one(file, check ? Action::check : to_stdout ? Action::print : Action::rewrite);
    if (status != ExitStatus::done) worst = status;
  }
  return worst;
}

}  // namespace einc
