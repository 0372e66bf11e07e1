// SPDX-License-Identifier: Apache-2.0
// `einc fmt`: one layout for every file. Line breaks, comments and strings stay as the author put them; blanks, indentation
// and the alignment of neighbouring declarations are the formatter's. Formatted text parses to the same tree, and
// formatting it again changes nothing.
#pragma once
#include <optional>
#include <string>

#include "dsl/diagnostic.h"
#include "dsl/source.h"

namespace einc {

// Nothing if the file does not parse: what is wrong is reported, and the text is left alone.
std::optional<std::string> format(const SourceMap& sources, FileId file, Diagnostics& diagnostics);

}  // namespace einc
