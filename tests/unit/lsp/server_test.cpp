// SPDX-License-Identifier: Apache-2.0
// Each method of the language server on a small program, its framing under hostile input, and random edits: the answers are those of a
// fresh look at the text as the client knows it.
#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <random>

#include "compiler/lsp/language_server.h"
#include "tests/unit/lsp/client.h"

using namespace einc;
using einc::test::LspClient;

namespace {

const std::string kProgram =
    "dim batch = 2, embed = 8, hidden = 16\n"
    "input x: f32[batch embed]\n"
    "param w: [embed hidden] ~ normal(std = 0.02)\n"
    "fn act(t: [... c], slope = 1) {\n"
    "  scaled = slope * t\n"
    "  return relu(scaled)\n"
    "}\n"
    "h = einsum(x, w, \"batch embed, embed hidden -> batch hidden\")\n"
    "y = act(h, slope = 2)\n"
    "loss = mean(y^2)\n"
    "minimize loss using sgd(lr = 0.1)\n";

std::string applied(const std::string& text, const LspJson& edits) {
  TextDocument document(text);
  LspJson sorted = edits;  // from the back, so that places stay
  std::sort(sorted.begin(), sorted.end(), [&](const LspJson& a, const LspJson& b) {
    return document.offset(a["range"]["start"]) > document.offset(b["range"]["start"]);
  });
  for (const LspJson& edit : sorted) document.apply({{"range", edit["range"]}, {"text", edit["newText"]}});
  return document.text();
}

std::string hover_text(const LspJson& answer) { return answer.is_null() ? "" : answer["contents"]["value"].get<std::string>(); }

bool holds(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a right program has no diagnostics, and the server ends with 0") {
  LspClient client;
  client.open(kProgram);
  CHECK(client.diagnostics().empty());
  CHECK(client.close() == 0);
}

TEST_CASE("diagnostics come while typing, and a code action takes them away") {
  LspClient client;
  client.open(kProgram + "z = rleu(y)\noutput z\n");
  const LspJson found = client.diagnostics();
  REQUIRE(found.size() == 1);
  CHECK(found[0]["code"] == "E0601");
  CHECK(found[0]["range"]["start"] == LspJson{{"line", 11}, {"character", 4}});
  const LspJson actions = client.within("codeAction", 11, 12);
  REQUIRE(actions.size() == 1);
  CHECK(actions[0]["title"] == "write `relu`");
  LspJson changes = LspJson::array();
  for (const LspJson& edit : actions[0]["edit"]["changes"][einc::test::kUri])
    changes.push_back({{"range", edit["range"]}, {"text", edit["newText"]}});
  client.change(changes);
  CHECK(client.diagnostics().empty());
}

TEST_CASE("hover: type, cost, storage and the way to the loss") {
  LspClient client([](const std::string&, const std::string&) { return std::vector<LineCost>{{8, "h", 512, 1024, "materialized"}}; });
  client.open(kProgram);
  client.diagnostics();
  std::string text;
  for (int i = 0; i < 1000 && !holds(text, "FLOPs"); ++i)
    text = hover_text(client.at("hover", 7, 0));  // the costs come when their child is ready
  CHECK(holds(text, "value h: "));
  CHECK(holds(text, "[batch hidden]"));
  CHECK(holds(text, "512 FLOPs forward, 1.024 kB read and written; materialized"));
  CHECK(holds(text, "gradient from the loss by: "));
  CHECK(holds(text, "loss"));
  CHECK(holds(hover_text(client.at("hover", 8, 8)), "[batch hidden]"));                 // `h` where it is read
  CHECK(holds(hover_text(client.at("hover", 8, 5)), "fn act(t: [... c], slope = 1)"));  // the fn that is called
  CHECK(holds(hover_text(client.at("hover", 5, 10)), "relu(x)"));                       // a built-in
  CHECK(holds(hover_text(client.at("hover", 7, 20)), "batch = 2"));                     // a dim inside a pattern
  CHECK(client.at("hover", 6, 0).is_null());
}

TEST_CASE("definition and references keep fns apart from what is around them") {
  LspClient client;
  client.open(kProgram);
  CHECK(client.at("definition", 7, 11)["range"]["start"] == LspJson{{"line", 1}, {"character", 6}});
  CHECK(client.at("definition", 8, 5)["range"]["start"] == LspJson{{"line", 3}, {"character", 3}});
  CHECK(client.at("definition", 8, 12)["range"]["start"] == LspJson{{"line", 3}, {"character", 19}});  // `slope =` of the call
  CHECK(client.at("references", 0, 4).size() == 4);   // batch: declared, of x, twice in the pattern
  CHECK(client.at("references", 3, 20).size() == 3);  // slope
  CHECK(client.at("references", 4, 3).size() == 2);   // scaled
}

TEST_CASE("rename changes every word that means the same") {
  LspClient client;
  client.open(kProgram);
  const LspJson answer =
      client.request("textDocument/rename",
                     {{"textDocument", {{"uri", einc::test::kUri}}}, {"position", {{"line", 0}, {"character", 28}}}, {"newName", "inner"}});
  const std::string renamed = applied(kProgram, answer["changes"][einc::test::kUri]);
  CHECK(!holds(renamed, "hidden"));
  client.change(LspJson::array({{{"text", renamed}}}));
  CHECK(client.diagnostics().empty());
  for (const char* wrong : {"2x", "param", "f32", "embed", ""}) {
    CAPTURE(wrong);
    const LspJson refused =
        client.ask("textDocument/rename",
                   {{"textDocument", {{"uri", einc::test::kUri}}}, {"position", {{"line", 0}, {"character", 28}}}, {"newName", wrong}});
    CHECK(refused.contains("error"));
  }
}

TEST_CASE("completion, inlay shapes, outline, formatting") {
  LspClient client;
  client.open(kProgram);
  const auto labels = [&](size_t line, size_t character) {
    std::vector<std::string> names;
    for (const LspJson& item : client.at("completion", line, character)) names.push_back(item["label"]);
    return names;
  };
  const auto has = [](const std::vector<std::string>& names, const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const auto at_top = labels(8, 4), in_fn = labels(5, 9), in_pattern = labels(7, 19), initialisers = labels(2, 26);
  CHECK((has(at_top, "h") && has(at_top, "act") && has(at_top, "softmax") && has(at_top, "minimize") && !has(at_top, "scaled")));
  CHECK((has(in_fn, "scaled") && has(in_fn, "slope") && !has(in_fn, "h")));
  CHECK((has(in_pattern, "hidden") && !has(in_pattern, "softmax")));
  CHECK((has(initialisers, "normal") && !has(initialisers, "softmax")));
  const LspJson shapes = client.within("inlayHint", 0, 11);
  REQUIRE(shapes.size() >= 3);
  std::string all;
  for (const LspJson& shape : shapes) all += shape["label"].get<std::string>() + ";";
  CHECK(holds(all, "[batch hidden]"));
  CHECK(client.request("textDocument/documentSymbol", {{"textDocument", {{"uri", einc::test::kUri}}}}).size() == 9);
  client.change(LspJson::array({{{"text", "dim n=3\ninput   x:f32[n]\noutput y=x\n"}}}));
  const LspJson edits = client.request("textDocument/formatting", {{"textDocument", {{"uri", einc::test::kUri}}}});
  REQUIRE(edits.size() == 1);
  CHECK(holds(edits[0]["newText"].get<std::string>(), "dim n = 3\n"));
}

TEST_CASE("columns are UTF-16 units") {
  const TextDocument document("a = \"\xF0\x9F\x98\x80 \xC3\xA9\" # b\n");
  CHECK(document.position(9) == LspJson{{"line", 0}, {"character", 7}});
  CHECK(document.offset({{"line", 0}, {"character", 7}}) == 9);
  CHECK(document.offset({{"line", 9}, {"character", 7}}) == document.text().size());
  CHECK(document.offset({{"line", 0}, {"character", 99}}) == document.text().size() - 1);
}

TEST_CASE("what is no request is answered by an error or not at all") {
  LspClient client;
  client.open(kProgram);
  CHECK(client.ask("textDocument/nothing", {{"textDocument", {{"uri", einc::test::kUri}}}})["error"]["code"] == -32601);
  CHECK(client.ask("unknown/method", nullptr).contains("error"));
  CHECK(client.ask("textDocument/hover", {{"textDocument", {{"uri", "file:///other"}}}})["result"].is_null());
  CHECK(client.ask("textDocument/hover", {{"textDocument", 7}, {"position", "x"}}).contains("id"));
  client.notify("textDocument/didChange",
                {{"textDocument", {{"uri", einc::test::kUri}}}, {"contentChanges", {7, LspJson::object(), {{"text", 3}}}}});
  CHECK(client.at("definition", 7, 11).contains("range"));
}

TEST_CASE("a thousand random edits: no crash, and no answer from an older text") {
  std::ifstream in(std::string(EINC_SOURCE_DIR) + "/examples/nanogpt.ein");
  std::string text{std::istreambuf_iterator<char>(in), {}};
  REQUIRE(text.size() > 500);
  LspClient client;
  client.open(text);
  std::mt19937 random(17);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % std::max<size_t>(n, 1)); };
  static const char* const kPieces[] = {"(",
                                        ")",
                                        "{",
                                        "}",
                                        "[",
                                        "]",
                                        "\"",
                                        "\n",
                                        " ",
                                        "=",
                                        "fn f(x) {",
                                        "return x",
                                        "einsum(",
                                        "...",
                                        "param w: [n] ~ zeros\n",
                                        "dim n = 3\n",
                                        "\xC3\xA9",
                                        "\xF0\x9F\x98\x80",
                                        "for i in 3 {",
                                        "x.T",
                                        "a b -> b a",
                                        "#",
                                        "minimize"};
  TextDocument mine(text);
  const std::string whole = text;
  for (int i = 0; i < 1000; ++i) {
    if (i % 100 == 99) {
      mine.replace_all(whole);
      client.change(LspJson::array({{{"text", whole}}}));
      CHECK(client.diagnostics().empty());
    }
    const size_t begin = mine.offset(mine.position(below(mine.text().size())));
    const size_t end = std::min(mine.text().size(), begin + (below(3) == 0 ? below(40) : 0));
    const LspJson change{{"range", mine.range(begin, end)}, {"text", below(4) == 0 ? "" : kPieces[below(std::size(kPieces))]}};
    mine.apply(change);
    client.change(LspJson::array({change}));
    static const char* const kMethods[] = {"hover", "definition", "references", "completion"};
    const LspJson place = mine.position(below(mine.text().size()));
    client.at(kMethods[below(4)], place["line"], place["character"]);
    OpenFile fresh;
    fresh.uri = einc::test::kUri;
    fresh.document = mine;
    const auto analysis = analyse("/tmp/none/model.ein", mine.text());
    const LspJson outline = client.request("textDocument/documentSymbol", {{"textDocument", {{"uri", einc::test::kUri}}}});
    CHECK(outline == (analysis->file ? document_symbols(fresh, *analysis) : LspJson(nullptr)));
    if (i % 10 == 0) {
      client.within("inlayHint", 0, 100);
      client.within("codeAction", 0, 100);
      elaborate_now(*analysis);
      CHECK(client.diagnostics() == diagnostics_of(fresh, *analysis));
    }
  }
  CHECK(client.close() == 0);
}

TEST_CASE("messages that are none end the stream or are passed over") {
  const auto server_on = [](const std::string& bytes) {
    int to[2], from[2];
    REQUIRE(::pipe(to) == 0);
    REQUIRE(::pipe(from) == 0);
    REQUIRE(::write(to[1], bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
    ::close(to[1]);
    JsonRpc rpc(to[0], from[1]);
    const int status = LanguageServer(rpc, {}).run();
    for (const int end : {to[0], from[0], from[1]}) ::close(end);
    return status;
  };
  CHECK(server_on("") == 1);
  CHECK(server_on("Content-Length: 99999999999999999999\r\n\r\n{}") == 1);
  CHECK(server_on("Content-Length: -1\r\n\r\n{}") == 1);
  CHECK(server_on(std::string(10'000, 'x')) == 1);
  CHECK(server_on(
            "Content-Length: 2\r\n\r\n{}Content-Length: 3\r\n\r\n[}]Content-Length: 33\r\n\r\n{\"jsonrpc\":\"2.0\",\"method\":\"exit\"}") ==
        1);
}
