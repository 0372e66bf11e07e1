// SPDX-License-Identifier: Apache-2.0
#include "compiler/elaborate/unit.h"

#include <algorithm>
#include <filesystem>

#include "compiler/elaborate/elaborate.h"
#include "compiler/elaborate/suggest.h"
#include "dsl/habits.h"
#include "dsl/parser.h"
#include "dsl/token.h"
#include "runtime/base/check.h"

namespace einc {
namespace {

namespace fs = std::filesystem;

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash + 1);
}

std::string file_key(const std::string& path) { return "file:" + fs::path(path).lexically_normal().string(); }

// Whether what the path leads to, all links followed, lies under the folder, there or not.
bool lies_in(const std::string& path, const std::string& folder) {
  std::error_code error;
  const fs::path root = fs::canonical(folder.empty() ? "." : folder, error);
  if (error) return false;
  const fs::path real = fs::weakly_canonical(fs::absolute(path), error);  // a relative one that is not there would stay relative
  return !error && std::mismatch(root.begin(), root.end(), real.begin(), real.end()).first == root.end();
}

std::vector<std::string> ein_files(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (auto it = fs::directory_iterator(folder.empty() ? "." : folder, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    if (names.size() >= 1000) break;
    if (it->path().extension() == ".ein") names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

SourceUnit* Units::load_main(FileId file) {
  const std::string path = sources_.file(file).name();
  return add(file_key(path), file, folder_of(path), Span{});
}

SourceUnit* Units::load_bundled(std::string_view name) {
  const std::string key = "bundled:" + std::string(name);
  if (const auto found = by_key_.find(key); found != by_key_.end()) return found->second;
  const auto text = bundled_library(name);
  EINC_CHECK(text.has_value(), "the bundled library {} is missing", name);
  const auto file = sources_.add("<" + std::string(name) + ".ein>", std::string(*text), diagnostics_);
  EINC_CHECK(file.has_value(), "the bundled library {} is no valid text", name);
  SourceUnit* const unit = add(key, *file, "", Span{});
  unit->bundled = true;
  return unit;
}

SourceUnit* Units::add(std::string key, FileId file, std::string folder, Span where) {
  const size_t errors = diagnostics_.error_count();
  units_.push_back(std::make_unique<SourceUnit>());
  SourceUnit& unit = *units_.back();
  by_key_.emplace(std::move(key), &unit);
  unit.file = file;
  unit.folder = std::move(folder);
  unit.program = parse(sources_, file, diagnostics_);
  unit.incomplete = diagnostics_.error_count() != errors;
  if (!count(unit, where)) return nullptr;
  declare_fns(unit);  // before the imports: files may import each other
  process_imports(unit);
  return &unit;
}

// Each file is bounded by itself; so is what they hold together.
bool Units::count(const SourceUnit& unit, Span where) {
  bytes_ += sources_.file(unit.file).text().size();
  tokens_ += unit.program.token_count;
  if (!where.known() || (bytes_ <= kMaxSourceBytes && tokens_ <= kMaxTokens)) return true;
  diagnostics_.report(Code::program_too_large, where);
  full_ = true;
  return false;
}

void Units::declare_fns(SourceUnit& unit) {
  for (const ast::Stmt& statement : unit.program.statements) {
    const auto* fn = statement.as<ast::Fn>();
    if (!fn) continue;
    const auto [place, fresh] = unit.fns.emplace(fn->name.name, FnRef{fn, &unit});
    if (!fresh) diagnostics_.report(Code::redefined, fn->name.span, fn->name.name, "a fn").label(place->second.fn->name.span, "first here");
  }
}

void Units::process_imports(SourceUnit& unit) {
  for (const ast::Stmt& statement : unit.program.statements) {
    const auto* imported = statement.as<ast::Import>();
    if (!imported) continue;
    const SourceUnit* other = import(unit, *imported);
    if (!other) {
      unit.import_failed = true;
      continue;
    }
    unit.imports.emplace(imported, other);
    if (other == &unit) continue;
    for (const auto& entry : other->fns) {
      const FnRef& ref = entry.second;
      auto& candidates = unit.imported[entry.first];
      const bool known = std::any_of(candidates.begin(), candidates.end(), [&](const FnRef& c) { return c.fn == ref.fn; });
      if (!known) candidates.push_back(ref);
    }
  }
}

SourceUnit* Units::import(const SourceUnit& importer, const ast::Import& import) {
  if (full_) return nullptr;
  if (units_.size() >= kMaxFiles) {
    diagnostics_.report(Code::too_many_files, import.path_span, kMaxFiles);
    return nullptr;
  }
  if (import.kind == ast::ImportKind::bundled) {
    if (bundled_library(import.path)) return load_bundled(import.path);
    auto report = diagnostics_.report(Code::import_not_found, import.path_span, import.path, "there is no bundled library of that name");
    if (is_foreign_module(import.path)) {
      report.hint("ops are words of the language, no import is needed; `import nn` brings in the bundled layers");
      return nullptr;
    }
    report.hint("`import nn` is the bundled library; a file of your own is written in quotes: import \"{}.ein\"", import.path);
    return nullptr;
  }
  return import_file(importer, import);
}

// A program may come from anywhere, and its messages show source lines: it reads only what lies beside it, or where the user says.
SourceUnit* Units::import_file(const SourceUnit& importer, const ast::Import& import) {
  const auto fail = [&](const char* why) { return diagnostics_.report(Code::import_not_found, import.path_span, import.path, why); };
  std::vector<std::string> roots{importer.folder};
  for (const std::string& folder : folders_) roots.push_back(folder.ends_with('/') ? folder : folder + "/");
  std::string path;
  bool there = false, outside = false;
  for (const std::string& root : roots) {
    const std::string candidate = (import.path.starts_with('/') ? std::string() : root) + import.path;
    std::error_code error;
    const bool inside = std::any_of(roots.begin(), roots.end(), [&](const std::string& folder) { return lies_in(candidate, folder); });
    outside |= !inside;
    if (!inside || !fs::exists(candidate, error)) continue;
    there = true;
    if (!fs::is_regular_file(candidate, error)) continue;
    path = candidate;
    break;
  }
  if (path.empty()) {
    if (there) return fail("it is not a text file"), nullptr;
    if (outside) return fail("it lies outside of this file's folder").hint("name a folder to import from: -I FOLDER"), nullptr;
    auto report = fail("there is no such file");
    const std::vector<std::string> names = ein_files(folder_of(importer.folder + import.path));
    if (const auto near = near_name(fs::path(import.path).filename().string(), names)) report.hint("did you mean `{}`?", *near);
    return nullptr;
  }
  if (const auto found = by_key_.find(file_key(path)); found != by_key_.end()) return found->second;
  const auto file = sources_.load(path, diagnostics_);
  return file ? add(file_key(path), *file, folder_of(path), import.path_span) : nullptr;
}

}  // namespace einc
