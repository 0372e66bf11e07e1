// SPDX-License-Identifier: Apache-2.0
// Opening a program on behalf of a command: readable at all, its diagnostics printed, its syntax tree shown.
#pragma once
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "compiler/driver/exit_status.h"
#include "compiler/driver/launcher.h"
#include "compiler/pipeline/pipeline.h"
#include "dsl/diagnostic.h"
#include "dsl/source.h"

namespace einc {

// Why a file cannot be opened, with a near name in its folder when there is one; nullopt when it can.
std::optional<std::string> unreadable(const std::string& path);

// To run, every dim has a value: says on standard error which ones lack it.
bool dims_are_set(const Graph& graph, const Bindings& dims);

enum class DiagnosticsForm : uint8_t { text, json };

// On standard error: errors, and warnings when `least` is warning.
void print_diagnostics(const SourceMap& sources, const Diagnostics& diagnostics, DiagnosticsForm form, Severity least);

// `precision`: as on the command line; empty: the file's own.
PipelineOptions program_options(const Bindings& dims, Roots roots, const std::string& precision,
                                const std::vector<std::string>& import_folders);

// The program's graph, its diagnostics printed; else the status to leave with.
std::variant<Compilation, ExitStatus> open_program(const std::string& file, const PipelineOptions& options,
                                                   Severity least = Severity::warning, Sharing sharing = Sharing::none);

ExitStatus emit_ast(const std::string& path, DiagnosticsForm form);

}  // namespace einc
