// SPDX-License-Identifier: Apache-2.0
// `einc lsp`: the language server. Requests are answered in order from the newest text; a changed file is analysed when it is first asked
// about, or as soon as no message waits, and its diagnostics are published then.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "compiler/lsp/analysis.h"
#include "compiler/lsp/costs.h"
#include "compiler/lsp/json_rpc.h"
#include "compiler/lsp/text_document.h"

namespace einc {

struct OpenFile {
  std::string uri, path;
  LspJson version;
  TextDocument document{""};
  std::unique_ptr<Analysis> analysis;  // null: the text has changed since
  std::vector<LineCost> costs;
  bool published = false;
};

// What a method answers for a place in a file; null for nothing.
LspJson hover(const OpenFile& file, const Analysis& analysis, size_t offset);
LspJson definition(const OpenFile& file, const Analysis& analysis, size_t offset);
LspJson references(const OpenFile& file, const Analysis& analysis, size_t offset);
LspJson rename_symbol(const OpenFile& file, const Analysis& analysis, size_t offset, const std::string& name);
LspJson completion(const OpenFile& file, const Analysis& analysis, size_t offset);
LspJson code_actions(const OpenFile& file, const Analysis& analysis, size_t begin, size_t end);
LspJson inlay_shapes(const OpenFile& file, const Analysis& analysis, size_t begin, size_t end);
LspJson formatting(const OpenFile& file);
LspJson document_symbols(const OpenFile& file, const Analysis& analysis);
LspJson diagnostics_of(const OpenFile& file, const Analysis& analysis);

class LanguageServer {
 public:
  LanguageServer(JsonRpc& rpc, CostMaker maker) : rpc_(rpc), costs_(std::move(maker)) {}
  // Until `exit` or the end of the input: 0 after a `shutdown`, else 1.
  int run();

 private:
  void handle(const LspJson& message);
  LspJson answer(const std::string& method, const LspJson& params);
  void notify(const std::string& method, const LspJson& params);
  void work_in_quiet();
  Analysis& analysis_of(OpenFile& file);
  OpenFile* file_of(const LspJson& params);

  JsonRpc& rpc_;
  CostChild costs_;
  std::string costs_uri_;
  std::map<std::string, OpenFile> files_;
  bool shut_down_ = false, ended_ = false;
};

}  // namespace einc
