// SPDX-License-Identifier: Apache-2.0
// `einc lsp`: the language server on standard input and output. What an editor shows of costs is read off the report of this machine's
// processor.
#include <unistd.h>

#include "compiler/driver/command_line.h"
#include "compiler/lsp/language_server.h"
#include "compiler/pipeline/pipeline.h"
#include "compiler/report/report.h"

namespace einc {
namespace {

std::vector<LineCost> costs_of(const std::string& path, const std::string& text) {
  std::vector<LineCost> costs;
  const Compilation c = compile_text(path, text, PipelineOptions{});
  if (!c.graph) return costs;
  ReportOptions options;
  options.detail = Detail::ops;
  const Report report = build_report(*c.graph, options);
  for (const OpReport& op : report.ops) {
    const Node& node = (*c.graph)[op.id];
    const SourceLocation& at = node.origin.location;
    if (node.origin.phase != Phase::forward || at.file.str() != path) continue;
    const auto number = [](const Amount& amount) { return amount.value ? amount.value->to_double() : 0; };
    const char* storage = op.storage == Storage::view ? "view" : op.storage == Storage::fused ? "fused" : "materialized";
    costs.push_back({at.line, node.origin.label.str(), number(op.flops), number(op.bytes_read) + number(op.bytes_written), storage});
  }
  return costs;
}

}  // namespace

ExitStatus lsp_command(Arguments arguments) {
  CLI::App app("The language server, for editors: JSON-RPC on standard input and output. dsl/editors says how to set one up.", "einc lsp");
  bool stdio = false;
  app.add_flag("--stdio", stdio, "accepted for editors that pass it; there is no other way");
  if (auto status = parse_arguments(app, arguments)) return *status;
  JsonRpc rpc(STDIN_FILENO, STDOUT_FILENO);
  return LanguageServer(rpc, costs_of).run() == 0 ? ExitStatus::done : ExitStatus::wrong_usage;
}

}  // namespace einc
