// SPDX-License-Identifier: Apache-2.0
// A program's diagnostics, as the suites of this folder look at them.
#pragma once
#include <set>
#include <sstream>
#include <string>

#include "compiler/elaborate/elaborate.h"
#include "dsl/diagnostic.h"

namespace einc::test {

// Of a first line `# einc: -D n=3`.
inline Bindings dims_of(std::string_view text) {
  Bindings dims;
  std::istringstream words{std::string(text.substr(0, text.find('\n')))};
  std::string word;
  words >> word >> word;
  if (word != "einc:") return dims;
  while (words >> word)
    if (const size_t equals = word.find('='); equals != std::string::npos)
      dims.emplace(Name(word.substr(0, equals)), std::stoll(word.substr(equals + 1)));
  return dims;
}

struct CheckedProgram {
  SourceMap sources;
  Diagnostics diagnostics;
  std::optional<FileId> file;

  bool has(std::string_view code) const {
    for (const Diagnostic& d : diagnostics.list())
      if (info(d.code).code == code) return true;
    return false;
  }
};

inline void check_program(CheckedProgram& out, std::string name, const std::string& text) {
  ElaborateOptions options;
  options.dims = dims_of(text);
  options.unused_names = UnusedNames::reported;
  out.file = out.sources.add(std::move(name), text, out.diagnostics);
  if (out.file) elaborate(out.sources, *out.file, options, out.diagnostics);
}

}  // namespace einc::test
