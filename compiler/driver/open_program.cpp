// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/open_program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "compiler/driver/command_line.h"
#include "compiler/driver/launcher.h"
#include "compiler/ir/text.h"
#include "dsl/near_name.h"
#include "dsl/parser.h"
#include "dsl/print_ast.h"
#include "dsl/render.h"

namespace einc {
namespace {

namespace fs = std::filesystem;

std::string near_file(const fs::path& path) {
  std::error_code error;
  if (fs::path whole = path; fs::is_regular_file(whole += ".ein", error))
    return fmt::format("; did you mean {}?", printable(whole.string()));
  if (fs::path other = path; path.extension() != ".ein" && fs::is_regular_file(other.replace_extension(".ein"), error))
    return fmt::format("; did you mean {}?", printable(other.string()));
  std::vector<std::string> names;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  for (fs::directory_iterator it(folder, error), end; !error && it != end && names.size() < 10'000; it.increment(error))
    names.push_back(it->path().filename().string());
  std::vector<std::string_view> views(names.begin(), names.end());
  const std::optional<std::string> near = near_name(path.filename().string(), views);
  return near ? fmt::format("; did you mean {}?",
                            printable((path.has_parent_path() ? path.parent_path() / *near : fs::path(*near)).string()))
              : "";
}

}  // namespace

std::optional<std::string> unreadable(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return fmt::format("no file {}{}", printable(path), near_file(path));
  if (fs::is_directory(status)) return fmt::format("{} is a folder", printable(path));
  if (!fs::is_regular_file(status)) return fmt::format("{} is not a regular file", printable(path));
  if (access(path.c_str(), R_OK) != 0) return fmt::format("cannot read {}: {}", printable(path), std::strerror(errno));
  return std::nullopt;
}

bool dims_are_set(const Graph& graph, const Bindings& dims) {
  const std::vector<Name> unset = graph.dims.bind(dims).unset;
  if (unset.empty()) return true;
  std::string names, settings;
  for (const Name name : unset) {
    names += (names.empty() ? "" : ", ") + name.str();
    settings += " -D " + name.str() + "=8";
  }
  fmt::print(stderr, "einc: {} {} no value, which a run needs: give{}\n", names, unset.size() == 1 ? "has" : "have", settings);
  return false;
}

void print_diagnostics(const SourceMap& sources, const Diagnostics& diagnostics, DiagnosticsForm form, Severity least) {
  if (diagnostics.list().empty()) {
    if (form == DiagnosticsForm::json) fmt::print(stderr, "[]\n");
    return;
  }
  if (least == Severity::error && !diagnostics.has_errors()) return;
  if (form == DiagnosticsForm::json)
    fmt::print(stderr, "{}\n", render_json(sources, diagnostics));
  else
    fmt::print(stderr, "{}", render_text(sources, diagnostics, color_for(STDERR_FILENO)));
}

PipelineOptions program_options(const Bindings& dims, Roots roots, const std::string& precision,
                                const std::vector<std::string>& import_folders) {
  PipelineOptions options;
  options.unused_names = UnusedNames::reported;
  options.dims = dims;
  options.roots = roots;
  options.import_folders = import_folders;
  if (!precision.empty()) options.precision = *parse_policy(precision);
  return options;
}

std::variant<Compilation, ExitStatus> open_program(const std::string& file, const PipelineOptions& options, Severity least,
                                                   Sharing sharing) {
  if (const auto problem = unreadable(file)) {
    fmt::print(stderr, "einc: {}\n", *problem);
    return ExitStatus::environment;
  }
  Compilation c = compile_file(file, options);
  print_diagnostics(c.sources, c.diagnostics, DiagnosticsForm::text, least);
  if (!c.graph) return ExitStatus::wrong_program;
  if (const auto status = refuse_processes(*c.graph, file, sharing)) return *status;
  return c;
}

ExitStatus emit_ast(const std::string& path, DiagnosticsForm form) {
  SourceMap sources;
  Diagnostics diagnostics;
  const std::optional<FileId> file = sources.load(path, diagnostics);
  std::string text;
  if (file) text = print_ast(parse(sources, *file, diagnostics));
  print_diagnostics(sources, diagnostics, form, Severity::warning);
  if (diagnostics.has_errors()) return ExitStatus::wrong_program;
  fmt::print("{}", text);
  return ExitStatus::done;
}

}  // namespace einc
