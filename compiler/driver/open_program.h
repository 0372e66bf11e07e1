// Opening a program on behalf of a command: readable at all, its diagnostics printed, its syntax tree shown.
#pragma once
#include <optional>
#include <string>

#include "compiler/driver/exit_status.h"
#include "dsl/diagnostic.h"
#include "dsl/source.h"

namespace einc {

// Why a file cannot be opened, with a near name in its folder when there is one; nullopt when it can.
std::optional<std::string> unreadable(const std::string& path);

enum class DiagnosticsForm : uint8_t { text, json };

// On standard error: errors, and warnings when `least` is warning.
void print_diagnostics(const SourceMap& sources, const Diagnostics& diagnostics, DiagnosticsForm form, Severity least);

ExitStatus emit_ast(const std::string& path, DiagnosticsForm form);

}  // namespace einc
