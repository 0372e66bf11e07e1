// SPDX-License-Identifier: Apache-2.0
// A file of the program as elaboration sees it: its tree, its dims and fns, and the fns it imports. An imported file brings
// in its own fns (not what it imports itself); a fn of one's own hides an imported one of the same name.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "dsl/ast.h"
#include "dsl/diagnostic.h"
#include "dsl/source.h"

namespace einc {

struct SourceUnit;

struct FnRef {
  const ast::Fn* fn = nullptr;
  const SourceUnit* unit = nullptr;
};

struct SourceUnit {
  FileId file = FileId::none;
  std::string folder;  // of the file, with a final slash; empty for the current one
  ast::Program program;
  bool bundled = false;                                   // with einc
  bool incomplete = false;                                // the parser skipped something: an unknown name may be its fault
  bool import_failed = false;                             // so may an unknown fn
  std::unordered_map<Name, Span> dims;                    // declared here
  std::unordered_map<Name, FnRef> fns;                    // declared here
  std::unordered_map<Name, std::vector<FnRef>> imported;  // by name, in import order
  std::unordered_map<const ast::Import*, const SourceUnit*> imports;

  const SourceUnit* import_at(const ast::Import& statement) const {  // null: it failed
    const auto found = imports.find(&statement);
    return found == imports.end() ? nullptr : found->second;
  }
};

class Units {
 public:
  // `folders`: where imports are read from besides the importing file's own folder.
  Units(SourceMap& sources, std::span<const std::string> folders, Diagnostics& diagnostics)
      : sources_(sources), folders_(folders), diagnostics_(diagnostics) {}

  // The file and, through its imports, all others.
  SourceUnit* load_main(FileId file);
  // A bundled library; an internal error when einc was built without it.
  SourceUnit* load_bundled(std::string_view name);
  const std::vector<std::unique_ptr<SourceUnit>>& all() const { return units_; }

 private:
  SourceUnit* add(std::string key, FileId file, std::string folder, Span where);
  bool count(const SourceUnit& unit, Span where);
  SourceUnit* import(const SourceUnit& importer, const ast::Import& import);
  SourceUnit* import_file(const SourceUnit& importer, const ast::Import& import);
  void declare_fns(SourceUnit& unit);
  void process_imports(SourceUnit& unit);

  SourceMap& sources_;
  std::span<const std::string> folders_;
  Diagnostics& diagnostics_;
  std::vector<std::unique_ptr<SourceUnit>> units_;
  size_t bytes_ = 0, tokens_ = 0;  // of all files
  bool full_ = false;              // they are too many
  std::unordered_map<std::string, SourceUnit*> by_key_;
};

}  // namespace einc
