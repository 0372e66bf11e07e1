// SPDX-License-Identifier: Apache-2.0
// What dsl/README.md lists between its two marks is made of the tables of built-ins and of the bundled library's text: signatures with
// what they give. `scripts/golden reference` writes the list anew.
#include <fmt/format.h>

#include "compiler/elaborate/builtins.h"
#include "tests/support/golden_file.h"

namespace {

const std::string kBegin = "<!-- signatures: written by scripts/golden reference -->\n", kEnd = "<!-- end of signatures -->\n";

std::string row(std::string signature, std::string gives) {
  for (size_t i = 0; (i = gives.find('|', i)) != std::string::npos; i += 2) gives.insert(i, "\\");
  return fmt::format("| `{}` | {} |\n", signature, gives);
}

// The first sentence of a comment that stands before a fn. "Ba et al. 2016" and "[... c]" end none.
std::string first_sentence(const std::string& comment) {
  size_t end = comment.find(". ");
  while (end != std::string::npos && (comment[end + 2] < 'A' || comment[end + 2] > 'Z')) end = comment.find(". ", end + 1);
  std::string text = comment.substr(0, end);
  if (!text.empty() && text.back() == '.') text.pop_back();
  return text;
}

// "fn f(x: [... c], n = 1) {" is f(x: [... c], n = 1); comments are lines of "# ". A fn without one has nothing to add to its name.
std::string library_rows(const std::string& text) {
  std::istringstream lines(text);
  std::string rows, comment;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("# ", 0) == 0) {
      comment += (comment.empty() ? "" : " ") + line.substr(2);
    } else {
      if (line.rfind("fn ", 0) == 0) rows += row(line.substr(3, line.find(" {") - 3), first_sentence(comment));
      comment.clear();
    }
  }
  return rows;
}

std::string signatures() {
  std::string text = "| built in | gives |\n| --- | --- |\n";
  for (const auto& table : einc::builtin_tables())
    for (const einc::Builtin& builtin : table) text += row(std::string(builtin.signature), std::string(builtin.gives));
  text += "\n| `import nn` | is |\n| --- | --- |\n";
  return text + library_rows(einc::golden_text(EINC_SOURCE_DIR "/dsl/stdlib/nn.ein"));
}

}  // namespace

TEST_CASE("reference: each built-in begins its signature and says what it gives") {
  for (const auto& table : einc::builtin_tables())
    for (const einc::Builtin& builtin : table) {
      CHECK(builtin.signature.rfind(std::string(builtin.name) + "(", 0) == 0);
      CHECK_MESSAGE(!builtin.gives.empty(), builtin.name);
    }
}

TEST_CASE("reference: dsl/README.md lists every signature") {
  const std::string path = EINC_SOURCE_DIR "/dsl/README.md", page = einc::golden_text(path);
  const size_t begin = page.find(kBegin), end = page.find(kEnd);
  REQUIRE(begin != std::string::npos);
  REQUIRE(end != std::string::npos);
  einc::expect_golden(page.substr(0, begin) + kBegin + "\n" + signatures() + page.substr(end), path);
}
