// SPDX-License-Identifier: Apache-2.0
// Exact diagnostics. Every code has a file named after it, <identifier>.ein, with the expected text in <identifier>.txt:
// syntax/ goes through the parser alone, program/ through elaboration (so through the parser too). A first line
// `# einc: -D n=3` sets dims. `scripts/golden` rewrites the expectations; read the difference before committing it.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "compiler/elaborate/elaborate.h"
#include "dsl/parser.h"
#include "dsl/render.h"
#include "tests/golden/errors/checked_program.h"
#include "tests/support/golden_file.h"

using namespace einc;
namespace fs = std::filesystem;

namespace {

const std::string kFolder = "tests/golden/errors/";  // tests run in the repository's root

enum class CheckedAs : uint8_t { syntax, program };

struct Checked {
  std::string text;
  std::set<std::string> codes;
};

Checked check_file(std::string name, std::string text, CheckedAs as) {
  SourceMap sources;
  Diagnostics diagnostics;
  ElaborateOptions options;
  options.dims = einc::test::dims_of(text);
  options.unused_names = UnusedNames::reported;
  if (const auto file = sources.add(std::move(name), std::move(text), diagnostics)) {
    if (as == CheckedAs::syntax)
      parse(sources, *file, diagnostics);
    else
      elaborate(sources, *file, options, diagnostics);
  }
  Checked out{render_text(sources, diagnostics), {}};
  for (const Diagnostic& d : diagnostics.list()) out.codes.emplace(info(d.code).identifier);
  return out;
}

std::vector<fs::path> programs(const std::string& folder) {
  std::vector<fs::path> out;
  if (!fs::exists(folder)) return out;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".ein") out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

// Inputs that cannot or should not stand in a file of the repository.
std::vector<std::pair<std::string, std::string>> generated() {
  using namespace std::string_literals;
  return {
      {"file_too_large", std::string(kMaxSourceBytes + 1, ' ')},
      {"nothing_to_compile", "# only a comment"},
      {"utf16_source", "\xFF\xFEx\0=\0"s},
      {"invalid_utf8", "x = 3\ny = \"caf\xE9\"\n"},
      {"nul_byte", "x = 3\ny = 4\0\n"s},
      {"hidden_character", "x = 3  # \xE2\x80\xAE reversed\n"},
      {"too_many_tokens",
       [] {
         std::string text;
         for (int i = 0; i < (1 << 18) + 1; ++i) text += "a=1\n";
         return text;
       }()},
  };
}

std::set<std::string> all_codes_seen() {
  std::set<std::string> seen;
  const auto add = [&](const std::set<std::string>& codes, const std::string& name) {
    if (codes.contains(name)) seen.insert(name);
  };
  for (const auto& path : programs(kFolder + "syntax"))
    add(check_file(path.string(), golden_text(path), CheckedAs::syntax).codes, path.stem().string());
  for (const auto& path : programs(kFolder + "program"))
    add(check_file(path.string(), golden_text(path), CheckedAs::program).codes, path.stem().string());
  for (const auto& [name, text] : generated()) add(check_file(name, text, CheckedAs::syntax).codes, name);
  return seen;
}

}  // namespace

TEST_CASE("syntax errors") {
  for (const fs::path& path : programs(kFolder + "syntax")) {
    const Checked result = check_file(path.string(), golden_text(path), CheckedAs::syntax);
    CAPTURE(path.string());
    CHECK(result.codes.contains(path.stem().string()));
    expect_golden(result.text, fs::path(path).replace_extension(".txt"));
  }
}

TEST_CASE("errors of elaboration") {
  for (const fs::path& path : programs(kFolder + "program")) {
    const Checked result = check_file(path.string(), golden_text(path), CheckedAs::program);
    expect_golden(result.text, fs::path(path).replace_extension(".txt"));
  }
}

TEST_CASE("errors of generated files") {
  for (const auto& [name, text] : generated()) {
    const Checked result = check_file(name + ".ein", text, CheckedAs::syntax);
    CHECK(result.codes.contains(name));
    expect_golden(result.text, kFolder + "syntax/" + name + ".txt");
  }
}

TEST_CASE("a file that cannot be read") {
  SourceMap sources;
  Diagnostics diagnostics;
  CHECK(!sources.load("no/such/file.ein", diagnostics));
  CHECK(!sources.load("tests", diagnostics));
  CHECK(render_text(sources, diagnostics) ==
        "error[E0001]: cannot read `no/such/file.ein`: No such file or directory\n\nerror[E0001]: cannot read `tests`: not a regular "
        "file\n\n");
}

TEST_CASE("too many files") {
  const fs::path folder = fs::temp_directory_path() / fmt::format("einc_imports_{}", ::getpid());
  fs::create_directories(folder);
  for (size_t i = 0; i <= kMaxFiles; ++i) std::ofstream(folder / fmt::format("f{}.ein", i)) << fmt::format("import \"f{}.ein\"\n", i + 1);
  std::ofstream(folder / fmt::format("f{}.ein", kMaxFiles + 1)) << "fn last(x) { return x }\n";
  const Checked result = check_file((folder / "main.ein").string(), "import \"f0.ein\"\ninput x: []\noutput y = x\n", CheckedAs::program);
  fs::remove_all(folder);
  CHECK(result.codes.contains("too_many_files"));
}

TEST_CASE("files too large together") {
  const fs::path folder = fs::temp_directory_path() / fmt::format("einc_large_{}", ::getpid());
  fs::create_directories(folder);
  const std::string half(kMaxSourceBytes / 2, ' ');
  for (const char* name : {"a.ein", "b.ein"}) std::ofstream(folder / name) << "fn " << name[0] << "(x) { return x }\n" << half;
  const std::string text = "input x: []\noutput y = x\n";
  const Checked one = check_file((folder / "main.ein").string(), "import \"a.ein\"\n" + text, CheckedAs::program);
  const Checked two = check_file((folder / "main.ein").string(), "import \"a.ein\"\nimport \"b.ein\"\n" + text, CheckedAs::program);
  fs::remove_all(folder);
  CHECK(one.codes.empty());
  CHECK(two.codes == std::set<std::string>{"program_too_large"});
  CHECK(two.text.find("main.ein:2:9") != std::string::npos);
}

TEST_CASE("what stands behind --mesh and --shard") {
  const auto codes = [](const std::string& mesh, const std::string& shard) {
    SourceMap sources;
    Diagnostics diagnostics;
    ElaborateOptions options;
    options.mesh = mesh;
    options.shard = shard;
    const auto file =
        sources.add("m.ein", "dim batch = 8\nmesh old = 3\nshard batch over old\ninput x: [batch]\noutput y = x\n", diagnostics);
    elaborate(sources, *file, options, diagnostics);
    std::string all;
    for (const Diagnostic& d : diagnostics.list()) all += std::string(info(d.code).code) + " ";
    return all;
  };
  CHECK(codes("data=4,model=2", "batch=data") == "");
  CHECK(codes("data=2", "batch=data; x, y") == "E1007 ");
  CHECK(codes("data=2; output z = x", "batch=data") == "E1007 ");
  CHECK(codes("data", "batch=data") == "");  // a size that is not given
  CHECK(codes("data=3", "batch=data") == "E1005 ");
  CHECK(codes("data=2", "") == "E1002 ");  // the program's own lines name another mesh
  CHECK(codes("", "") == "E1005 ");
  CHECK(codes("a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1", "batch=a,b,c,d,e,f,g,h") == "");
  CHECK(codes("a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1", "batch=a") == "E1007 ");
}

TEST_CASE("codes are distinct and each has a test") {
  std::set<std::string_view> numbers;
  for (const CodeInfo& code : kCodes) {
    CAPTURE(code.code);
    CHECK(numbers.insert(code.code).second);
  }
  std::set<std::string> seen = all_codes_seen();
  seen.insert({"file_not_readable", "too_many_files", "program_too_large", "mesh_option"});  // above
  seen.insert("no_partition");                                                               // tests/agree/partition
  std::string missing;
  for (const CodeInfo& code : kCodes)
    if (!seen.contains(std::string(code.identifier))) missing += fmt::format("{} {}\n", code.code, code.identifier);
  INFO("codes without tests/golden/errors/program/<identifier>.ein:\n", missing);
  CHECK(missing.empty());
}
