// SPDX-License-Identifier: Apache-2.0
// A client of the language server, which runs in a thread of the test and is talked to over pipes.
#pragma once
#include <doctest/doctest.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "compiler/lsp/language_server.h"
#include "runtime/base/big_stack.h"

namespace einc::test {

inline const std::string kUri = "file:///tmp/none/model.ein";

class LspClient {
 public:
  explicit LspClient(CostMaker costs = [](const std::string&, const std::string&) { return std::vector<LineCost>(); }) {
    REQUIRE(::pipe(to_) == 0);
    REQUIRE(::pipe(from_) == 0);
    rpc_.emplace(from_[0], to_[1]);
    server_ = std::thread([this, costs = std::move(costs)] {
      run_on_big_stack([&] {
        JsonRpc rpc(to_[0], from_[1]);
        status_ = LanguageServer(rpc, costs).run();
      });
    });
    request("initialize", {{"capabilities", LspJson::object()}});
    notify("initialized", LspJson::object());
  }
  ~LspClient() {
    if (server_.joinable()) close();
    for (const int end : {to_[0], from_[0], from_[1]}) ::close(end);
  }

  // The server's exit status.
  int close() {
    request("shutdown", nullptr);
    notify("exit", nullptr);
    server_.join();
    ::close(to_[1]);
    return status_;
  }

  void notify(const std::string& method, LspJson params) {
    rpc_->send({{"jsonrpc", "2.0"}, {"method", method}, {"params", std::move(params)}});
  }

  // The whole answer; diagnostics that come before it are kept.
  LspJson ask(const std::string& method, LspJson params) {
    const int id = ++id_;
    rpc_->send({{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", std::move(params)}});
    for (;;) {
      const LspJson message = next();
      if (message.contains("id") && message["id"] == id) return message;
    }
  }
  LspJson request(const std::string& method, LspJson params) {
    const LspJson answer = ask(method, std::move(params));
    CAPTURE(answer.dump());
    REQUIRE(answer.contains("result"));
    return answer["result"];
  }

  void open(const std::string& text) {
    notify("textDocument/didOpen", {{"textDocument", {{"uri", kUri}, {"languageId", "ein"}, {"version", 0}, {"text", text}}}});
  }
  void change(LspJson changes) {
    notify("textDocument/didChange", {{"textDocument", {{"uri", kUri}, {"version", ++version_}}}, {"contentChanges", std::move(changes)}});
  }
  LspJson at(const std::string& method, size_t line, size_t character) {
    return request(
        "textDocument/" + method,
        {{"textDocument", {{"uri", kUri}}}, {"position", {{"line", line}, {"character", character}}}, {"context", LspJson::object()}});
  }
  LspJson within(const std::string& method, size_t first, size_t last) {
    return request("textDocument/" + method,
                   {{"textDocument", {{"uri", kUri}}},
                    {"range", {{"start", {{"line", first}, {"character", 0}}}, {"end", {{"line", last}, {"character", 0}}}}},
                    {"context", LspJson::object()}});
  }
  // The diagnostics of the newest version.
  LspJson diagnostics() {
    while (published_.is_null() || (version_ > 0 && published_.value("version", 0) != version_)) next();
    return published_["diagnostics"];
  }

 private:
  LspJson next() {
    LspJson message;
    REQUIRE(rpc_->wait(message, 20'000, -1) == Incoming::message);
    if (message.value("method", "") == "textDocument/publishDiagnostics") published_ = message["params"];
    return message;
  }

  int to_[2], from_[2];
  std::optional<JsonRpc> rpc_;
  std::thread server_;
  int status_ = -1, id_ = 0, version_ = 0;
  LspJson published_;
};

}  // namespace einc::test
