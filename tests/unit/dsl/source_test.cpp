// SPDX-License-Identifier: Apache-2.0
// Places in text, diagnostics in a sink and on a screen, near names, formatting.
#include "dsl/source.h"

#include <doctest/doctest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "dsl/diagnostic.h"
#include "dsl/format.h"
#include "dsl/near_name.h"
#include "dsl/render.h"

using namespace einc;

TEST_CASE("lines and columns count code points") {
  SourceMap sources;
  Diagnostics diagnostics;
  const auto file = sources.add("a.ein", "ab\n\xC3\xA9x\xE6\xB0\xB4y\n\nend", diagnostics);
  REQUIRE(file);
  const SourceFile& f = sources.file(*file);
  CHECK(f.locate(0) == Location{1, 1});
  CHECK(f.locate(2) == Location{1, 3});
  CHECK(f.locate(3) == Location{2, 1});
  CHECK(f.locate(5) == Location{2, 2});
  CHECK(f.locate(9) == Location{2, 4});
  CHECK(f.locate(11) == Location{3, 1});
  CHECK(f.locate(999) == Location{4, 4});
  CHECK(f.line_text(2) == "\xC3\xA9x\xE6\xB0\xB4y");
  const auto wide = sources.add("long", std::string(5000, 'a') + "\n" + std::string(5000, 'b'), diagnostics);
  CHECK(sources.file(*wide).locate(4999) == Location{1, 5000});
  CHECK(sources.file(*wide).locate(9000) == Location{2, 4000});
}

TEST_CASE("the size limit") {
  SourceMap sources;
  Diagnostics diagnostics;
  CHECK(sources.add("a", std::string(kMaxSourceBytes, ' '), diagnostics));
  CHECK(!sources.add("b", std::string(kMaxSourceBytes + 1, ' '), diagnostics));
}

TEST_CASE("a file far too large is refused without being read") {
  const auto path = std::filesystem::temp_directory_path() / ("einc_sparse_" + std::to_string(::getpid()) + ".ein");
  std::ofstream(path) << "x = 1";
  std::error_code error;
  std::filesystem::resize_file(path, uint64_t{1} << 40, error);  // sparse
  SourceMap sources;
  Diagnostics diagnostics;
  if (!error) CHECK(!sources.load(path.string(), diagnostics));
  if (!error) CHECK(diagnostics.list()[0].code == Code::file_too_large);
  std::filesystem::remove(path);
}

TEST_CASE("the sink drops repeats and stops keeping errors at its limit") {
  Diagnostics diagnostics;
  for (uint32_t i = 0; i < 2; ++i) diagnostics.report(Code::return_outside_fn, Span{FileId{1}, 5, 6}).hint("x");
  CHECK(diagnostics.error_count() == 1);
  for (uint32_t i = 0; i < 30; ++i) diagnostics.report(Code::return_outside_fn, Span{FileId{1}, i + 10, i + 11}).label({}, "dropped");
  CHECK(diagnostics.error_count() == 31);
  CHECK(diagnostics.list().size() == kMaxErrors);
  CHECK(diagnostics.full());
}

TEST_CASE("text for people is made printable") {
  CHECK(printable("a\x1b[31mb\n") == "a\\x1b[31mb\\x0a");
  CHECK(printable(std::string(100, 'x') + " y") == std::string(64, 'x') + "... y");
  CHECK(printable("\xE2\x80\xAE") == "\\u{202e}");
  CHECK(printable("\xFF") == "\\xff");
  CHECK(printable("caf\xC3\xA9") == "caf\xC3\xA9");
  CHECK(printable(std::string(5000, ' ')).size() < 1100);
}

TEST_CASE("rendering") {
  SourceMap sources;
  Diagnostics diagnostics;
  const auto file = sources.add("dir/\x1b.ein", "first = 1\n\t\xE6\xB0\xB4 second = 2\n", diagnostics);
  diagnostics.report(Code::expected, Span{*file, 15, 21}, "this", "that")
      .label(Span{*file, 0, 5}, "from {}", 3)
      .label(Span{*file, 22, 23}, "and here")
      .hint("try");
  CHECK(render_text(sources, diagnostics) ==
        "error[E0201]: expected this, found that\n"
        " --> dir/\\x1b.ein:2:4\n"
        "  |\n"
        "2 |     \xE6\xB0\xB4 second = 2\n"
        "  |        ^^^^^^\n"
        " ::: dir/\\x1b.ein:1:1\n"
        "  |\n"
        "1 | first = 1\n"
        "  | ----- from 3\n"
        " ::: dir/\\x1b.ein:2:11\n"
        "  |\n"
        "2 |     \xE6\xB0\xB4 second = 2\n"
        "  |               - and here\n"
        "  = hint: try\n\n");
  CHECK(render_text(sources, diagnostics, Color::on).find("\x1b[1;31m^^^^^^\x1b[0m") != std::string::npos);
  const auto json = nlohmann::json::parse(render_json(sources, diagnostics));
  CHECK(json[0]["code"] == "E0201");
  CHECK(json[0]["severity"] == "error");
  CHECK(json[0]["line"] == 2);
  CHECK(json[0]["column"] == 4);
  CHECK(json[0]["end"]["column"] == 10);
  CHECK(json[0]["labels"].size() == 2);
  CHECK(json[0]["hint"] == "try");
}

TEST_CASE("near names") {
  CHECK(edit_distance("kitten", "sitting", 5) == 3);
  CHECK(edit_distance("ab", "ba", 5) == 1);
  CHECK(edit_distance("abc", "xyz", 1) == 2);
  CHECK(near_name("batch", {"seq", "bacth", "embed"}) == "bacth");
  CHECK(near_name("hiden", {"head", "hidden", "hidde"}) == "hidden");
  CHECK(!near_name("x", {"y"}));
  CHECK(!near_name("batch", {"vocab"}));
  CHECK(!near_name(std::string(100, 'a'), {std::string_view("aaa")}));
}

namespace {

std::string formatted(const std::string& text) {
  SourceMap sources;
  Diagnostics diagnostics;
  const auto file = sources.add("a.ein", text, diagnostics);
  return file ? format(sources, *file, diagnostics).value_or("error") : "error";
}

}  // namespace

TEST_CASE("formatting") {
  const std::string untidy =
      "\n# head\ndim a=8,b   # eight\ndim cc = 2*a # more\n\n\ninput  x:f32[a , b k = 2 * a]\ninput  yy:f32 [a]\nfn  f( x:[... c],y = - 1 "
      ") {\n\n"
      "  param w:[c]~ones\n  param bias : [c c]~normal( std=0.02 )\n  z=x [c=0:- 1]*w ^ 2+ -  3;\n  q = foo(x,\n   y,\n      bar(1,\n      "
      "2), # trailing\n    h=8)\n"
      "  t = x +\n  y\n  return - z  # done\n\n}\nfor i in 3 {y = f(x)  as g;y = y}\nx = {\n";
  const std::string tidy =
      "# head\ndim a = 8, b    # eight\ndim cc = 2 * a  # more\n\ninput x:  f32[a, b k=2*a]\ninput yy: f32[a]\nfn f(x: [... c], y = -1) {\n"
      "  param w:    [c]   ~ ones\n  param bias: [c c] ~ normal(std=0.02)\n  z = x[c = 0:-1] * w^2 + -3\n  q = foo(x,\n          y,\n      "
      "    bar(1,\n"
      "              2),  # trailing\n          h=8)\n  t = x +\n      y\n  return -z  # done\n}\nfor i in 3 { y = f(x) as g; y = y }\n";
  CHECK(formatted(untidy) == "error");  // its last line does not parse
  CHECK(formatted(untidy.substr(0, untidy.size() - 6)) == tidy);
  CHECK(formatted(tidy) == tidy);
  CHECK(formatted("dim m=n//2,k=n%3\ny=a//b%2\nz=x[n= ::- 2, m =:3 , k= 1 : : 2]\ninput w:f32[q=n//2]\n") ==
        "dim m = n // 2, k = n % 3\ny = a // b % 2\nz = x[n = ::-2, m = :3, k = 1::2]\ninput w: f32[q=n//2]\n");
  CHECK(formatted("shard layers over stage( microbatches = 8)\nminimize y over \"w\" using sgd (lr = 1)\n") ==
        "shard layers over stage (microbatches = 8)\nminimize y over \"w\" using sgd(lr = 1)\n");
  const std::string choices =
      "if (training) and a {\n  x = 1\n} else if b > 2 { y = 2 } else {\n  z = 3\n}\nfn f(x) {\n  return x\n} gradient(dy) { return dy, p "
      "= dy }\n";
  CHECK(formatted("if(training)and a{\nx = 1\n}  else  if b>2 {y = 2} else{\n  z=3\n}\nfn f(x) {\n  return x\n}gradient( dy ) {return "
                  "dy,p=dy}\n") == choices);
  CHECK(formatted(choices) == choices);
  CHECK(formatted("if  (x) \n") == "if(x)\n");  // a call of a fn of that name
}

TEST_CASE("the examples and the bundled library are formatted") {
  for (const char* path :
       {"examples/gpt2.ein", "examples/two_layer.ein", "examples/mlp.ein", "dsl/stdlib/nn.ein", "dsl/stdlib/optim.ein"}) {
    SourceMap sources;
    Diagnostics diagnostics;
    const auto file = sources.load(std::string(EINC_SOURCE_DIR) + "/" + path, diagnostics);
    REQUIRE(file);
    CAPTURE(path);
    CHECK(format(sources, *file, diagnostics) == std::string(sources.file(*file).text()));
  }
}
