// SPDX-License-Identifier: Apache-2.0
// Dispatch, and when files are analysed. A request that fails in any way is answered by an error; it never ends the server.
#include "compiler/lsp/language_server.h"

#include <algorithm>

namespace einc {
namespace {

constexpr int kMethodNotFound = -32601, kInternalError = -32603;

// file:///a%20b.ein -> /a b.ein; other schemes as they are.
std::string path_of(const std::string& uri) {
  constexpr std::string_view kScheme = "file://";
  std::string_view rest = uri;
  if (rest.starts_with(kScheme)) rest.remove_prefix(kScheme.size());
  const auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  std::string path;
  for (size_t i = 0; i < rest.size(); ++i) {
    const bool escaped = rest[i] == '%' && i + 2 < rest.size() && digit(rest[i + 1]) >= 0 && digit(rest[i + 2]) >= 0;
    path += escaped ? static_cast<char>(digit(rest[i + 1]) * 16 + digit(rest[i + 2])) : rest[i];
    if (escaped) i += 2;
  }
  return path;
}

LspJson capabilities() {
  return {{"textDocumentSync", {{"openClose", true}, {"change", 2}, {"save", true}}},
          {"hoverProvider", true},
          {"definitionProvider", true},
          {"referencesProvider", true},
          {"renameProvider", true},
          {"documentSymbolProvider", true},
          {"documentFormattingProvider", true},
          {"inlayHintProvider", true},
          {"codeActionProvider", {{"codeActionKinds", {"quickfix"}}}},
          {"completionProvider", {{"triggerCharacters", {"\"", "~", "["}}}}};
}

const LspJson& member(const LspJson& object, const char* key) {
  static const LspJson kNothing = LspJson::object();
  if (!object.is_object()) return kNothing;
  const auto found = object.find(key);
  return found == object.end() ? kNothing : *found;
}

std::string text_of(const LspJson& value) { return value.is_string() ? value.get<std::string>() : std::string(); }

}  // namespace

int LanguageServer::run() {
  constexpr int kQuiet = 20;  // milliseconds without a message before a changed file is analysed unasked
  LspJson message;
  while (!ended_) {
    const bool waiting = std::any_of(files_.begin(), files_.end(), [](const auto& f) { return !f.second.published; });
    switch (rpc_.wait(message, waiting ? kQuiet : -1, costs_.descriptor())) {
      case Incoming::message:
        handle(message);
        break;
      case Incoming::other:
        if (costs_.read())
          if (const auto found = files_.find(costs_uri_); found != files_.end()) found->second.costs = costs_.costs();
        break;
      case Incoming::idle:
        work_in_quiet();
        break;
      case Incoming::closed:
        return 1;
    }
  }
  return shut_down_ ? 0 : 1;
}

void LanguageServer::handle(const LspJson& message) {
  const std::string method = text_of(member(message, "method"));
  const LspJson& params = member(message, "params");
  const bool request = message.contains("id");
  if (method.empty()) return;  // an answer to nothing that was asked
  LspJson reply{{"jsonrpc", "2.0"}};
  if (request) reply["id"] = message["id"];
  try {
    if (!request) return notify(method, params);
    reply["result"] = answer(method, params);
    if (reply["result"].is_discarded()) {
      reply.erase("result");
      reply["error"] = {{"code", kMethodNotFound}, {"message", "no method `" + method + "`"}};
    }
  } catch (const std::exception& error) {
    reply.erase("result");
    reply["error"] = {{"code", kInternalError}, {"message", error.what()}};
  }
  if (request) rpc_.send(reply);
}

OpenFile* LanguageServer::file_of(const LspJson& params) {
  const auto found = files_.find(text_of(member(member(params, "textDocument"), "uri")));
  return found == files_.end() ? nullptr : &found->second;
}

Analysis& LanguageServer::analysis_of(OpenFile& file) {
  if (!file.analysis) file.analysis = analyse(file.path, file.document.text());
  return *file.analysis;
}

void LanguageServer::notify(const std::string& method, const LspJson& params) {
  if (method == "exit") {
    ended_ = true;
  } else if (method == "textDocument/didOpen") {
    const LspJson& opened = member(params, "textDocument");
    OpenFile file;
    file.uri = text_of(member(opened, "uri"));
    file.path = path_of(file.uri);
    file.version = member(opened, "version");
    file.document.replace_all(text_of(member(opened, "text")));
    files_.insert_or_assign(file.uri, std::move(file));
  } else if (method == "textDocument/didClose") {
    if (const OpenFile* file = file_of(params)) {
      rpc_.send({{"jsonrpc", "2.0"},
                 {"method", "textDocument/publishDiagnostics"},
                 {"params", {{"uri", file->uri}, {"diagnostics", LspJson::array()}}}});
      files_.erase(file->uri);
    }
  } else if (method == "textDocument/didChange") {
    OpenFile* file = file_of(params);
    if (!file) return;
    for (const LspJson& change : member(params, "contentChanges")) file->document.apply(change);
    file->version = member(member(params, "textDocument"), "version");
    file->analysis.reset();
    file->costs.clear();
    file->published = false;
  }
}

void LanguageServer::work_in_quiet() {
  for (auto& [uri, file] : files_) {
    if (file.published) continue;
    LspJson params{{"uri", uri}, {"diagnostics", LspJson::array()}};
    try {
      Analysis& analysis = analysis_of(file);
      elaborate_now(analysis);
      params["diagnostics"] = diagnostics_of(file, analysis);
      if (analysis.graph) {
        costs_uri_ = uri;
        costs_.start(file.path, file.document.text());
      }
    } catch (const std::exception& error) {
      params["diagnostics"].push_back(
          {{"range", file.document.range(0, 1)}, {"severity", 1}, {"source", "einc"}, {"message", error.what()}});
    }
    if (file.version.is_number()) params["version"] = file.version;
    file.published = true;
    rpc_.send({{"jsonrpc", "2.0"}, {"method", "textDocument/publishDiagnostics"}, {"params", params}});
    return;  // one at a time: a message may wait
  }
}

LspJson LanguageServer::answer(const std::string& method, const LspJson& params) {
  if (method == "initialize") return {{"capabilities", capabilities()}, {"serverInfo", {{"name", "einc"}}}};
  if (method == "shutdown") {
    shut_down_ = true;
    return nullptr;
  }
  constexpr std::string_view kPrefix = "textDocument/";
  if (!method.starts_with(kPrefix)) return LspJson(LspJson::value_t::discarded);
  OpenFile* file = file_of(params);
  if (!file) return nullptr;
  const std::string what = method.substr(kPrefix.size());
  const size_t offset = file->document.offset(member(params, "position"));
  const LspJson& range = member(params, "range");
  const size_t begin = file->document.offset(member(range, "start")), end = file->document.offset(member(range, "end"));
  if (what == "formatting") return formatting(*file);
  Analysis& analysis = analysis_of(*file);
  if (!analysis.file) return nullptr;
  if (what == "hover" || what == "codeAction" || what == "inlayHint") elaborate_now(analysis);
  if (what == "hover") return hover(*file, analysis, offset);
  if (what == "definition") return definition(*file, analysis, offset);
  if (what == "references") return references(*file, analysis, offset);
  if (what == "rename") return rename_symbol(*file, analysis, offset, text_of(member(params, "newName")));
  if (what == "completion") return completion(*file, analysis, offset);
  if (what == "codeAction") return code_actions(*file, analysis, begin, end);
  if (what == "inlayHint") return inlay_shapes(*file, analysis, begin, end);
  if (what == "documentSymbol") return document_symbols(*file, analysis);
  return LspJson(LspJson::value_t::discarded);
}

}  // namespace einc
