// SPDX-License-Identifier: Apache-2.0
// Diagnostics as text for people (file:line:col, the source line, a caret under the exact span) or as JSON for tools.
#pragma once
#include <string>

#include "dsl/diagnostic.h"
#include "dsl/source.h"

namespace einc {

enum class Color : uint8_t { off, on };

constexpr size_t kMaxShownDiagnostics = 20;
constexpr size_t kMaxRenderedBytes = size_t{64} << 10;

// In the order of the source, at most kMaxShownDiagnostics (errors first in line for a place), then how many more there are.
std::string render_text(const SourceMap& sources, const Diagnostics& diagnostics, Color color = Color::off);

// One array of {code, severity, message, file, line, column, end: {line, column}, labels: [{file, line, column, end, message}], hint,
// replacements: [{file, line, column, end, text}]}; the last two where there are any.
std::string render_json(const SourceMap& sources, const Diagnostics& diagnostics);

}  // namespace einc
