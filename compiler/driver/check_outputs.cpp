// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/check_outputs.h"

#include <fmt/format.h>

#include "runtime/data/file.h"

namespace einc {

NamedFiles sources_of(const Compilation& compilation) {
  NamedFiles files;
  for (size_t i = 1; i <= compilation.sources.file_count(); ++i)
    files.emplace_back(i == 1 ? "the program" : "an import", compilation.sources.file(static_cast<FileId>(i)).name());
  return files;
}

bool check_outputs(const NamedFiles& outputs, const NamedFiles& inputs) {
  std::vector<std::pair<std::string, FileIdentity>> taken;
  for (const auto& [option, path] : inputs)
    if (const auto identity = path.empty() ? std::nullopt : identity_of(path)) taken.emplace_back(option, *identity);
  for (const auto& [option, path] : outputs) {
    if (path.empty()) continue;
    const auto identity = identity_of(output_target(path));
    for (const auto& [other, file] : taken)
      if (identity == file) {
        fmt::print(stderr, "einc: {} {} would replace {}, which is the same file: give another name\n", option, printable(path), other);
        return false;
      }
    if (identity) taken.emplace_back(option, *identity);
  }
  return true;
}

}  // namespace einc
