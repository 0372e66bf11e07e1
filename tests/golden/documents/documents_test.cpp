// SPDX-License-Identifier: Apache-2.0
// The pages of documentation, carried out: each page has a folder of its own, in which its blocks are worked through from the top.
//   ```ein             a whole program, which must compile
//   ```ein NAME.ein    the same, kept under that name for the commands that follow
//   ```console         commands after `$ `, and below each what it prints: `…` stands for any text of a line, alone for any lines
// Any other block is not looked at. A page that says something else than einc does fails here, with its line.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/golden_file.h"

namespace einc {
namespace {
namespace fs = std::filesystem;

constexpr std::string_view kAny = "…";

struct Block {
  int line = 0;      // of the page, where the fence stands
  std::string info;  // what stands behind the fence
  std::vector<std::string> lines;
};

std::vector<Block> blocks_of(const std::string& page) {
  std::vector<Block> blocks;
  std::istringstream in(page);
  bool inside = false;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.starts_with("```")) {
      if (!inside) blocks.push_back({number, line.substr(3), {}});
      inside = !inside;
    } else if (inside) {
      blocks.back().lines.push_back(line);
    }
  }
  return blocks;
}

struct Answer {
  int status;
  std::string text;  // standard output and errors, as a terminal shows them
};

// `command` in `folder`, with this build's einc in front of all others.
Answer carry_out(const std::string& command, const fs::path& folder) {
  const fs::path script = folder / ".command", printed = folder / ".printed";
  std::ofstream(script) << command << '\n';
  const std::string line = fmt::format("cd '{}' && PATH='{}':\"$PATH\" NO_COLOR=1 timeout 120 bash .command > .printed 2>&1 < /dev/null",
                                       folder.string(), fs::path(EINC_BINARY).parent_path().string());
  const int status = std::system(line.c_str());
  return {status, golden_text(printed)};
}

// Whether a line is the expected one; the pieces between `…` must follow one another.
bool is_line(std::string_view wanted, std::string_view is) {
  size_t at = wanted.find(kAny);
  if (at == std::string_view::npos) return wanted == is;
  if (!is.starts_with(wanted.substr(0, at))) return false;
  is.remove_prefix(at);
  while (true) {
    wanted.remove_prefix(at + kAny.size());
    at = wanted.find(kAny);
    if (at == std::string_view::npos) return is.size() >= wanted.size() && is.ends_with(wanted);
    const size_t found = is.find(wanted.substr(0, at));
    if (found == std::string_view::npos) return false;
    is.remove_prefix(found + at);
  }
}

using Lines = std::vector<std::string>;

// The first line of `wanted` that `is` does not answer, or none: then everything fits. A lone `…` takes as few lines as it can.
bool matches(const Lines& wanted, size_t w, const Lines& is, size_t i, size_t& furthest) {
  furthest = std::max(furthest, w);
  if (w == wanted.size()) return i == is.size();
  if (wanted[w] == kAny) {
    for (; i <= is.size(); ++i) {
      if (matches(wanted, w + 1, is, i, furthest)) return true;
    }
    return false;
  }
  return i < is.size() && is_line(wanted[w], is[i]) && matches(wanted, w + 1, is, i + 1, furthest);
}

// Lines without what trails: editors take spaces at the ends of lines away, and a page shows no empty line before the next command.
Lines lines_of(const std::string& text) {
  Lines lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (const size_t bar = line.rfind('\r'); bar != std::string::npos) line.erase(0, bar + 1);
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(line);
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

void check_program(const Block& block, const std::string& page, const fs::path& folder) {
  const std::string name = block.info.size() > 4 ? block.info.substr(4) : "snippet.ein";
  std::ofstream out(folder / name);
  for (const std::string& line : block.lines) out << line << '\n';
  out.close();
  const Answer answer = carry_out("einc " + name, folder);
  CHECK_MESSAGE(answer.status == 0, page, ":", block.line, "\n", answer.text);
}

void check_commands(const Block& block, const std::string& page, const fs::path& folder) {
  const auto is_command = [](const std::string& line) { return line.starts_with("$ "); };
  for (size_t at = 0; at < block.lines.size();) {
    const int line = block.line + 1 + static_cast<int>(at);
    if (!is_command(block.lines[at])) {
      FAIL_CHECK(page, ":", line, " is no command");
      return;
    }
    std::string command = block.lines[at++].substr(2);
    while (command.ends_with('\\')) command += "\n" + block.lines.at(at++);
    std::string wanted_text;
    for (; at < block.lines.size() && !is_command(block.lines[at]); ++at) wanted_text += block.lines[at] + '\n';
    const Answer answer = carry_out(command, folder);
    const Lines wanted = lines_of(wanted_text), is = lines_of(answer.text);
    size_t furthest = 0;
    if (matches(wanted, 0, is, 0, furthest)) continue;
    const std::string expected = furthest < wanted.size() ? wanted[furthest] : "the end";
    FAIL_CHECK(page, ":", line, ": `", command, "`\n does not print: ", expected, "\n it prints:\n", answer.text);
  }
}

void check_page(const std::string& page) {
  const fs::path folder = fs::temp_directory_path() / fmt::format("einc_page_{}", std::hash<std::string>()(page));
  fs::remove_all(folder);
  fs::create_directories(folder);
  fs::create_symlink(fs::absolute(EINC_SOURCE_DIR "/examples"), folder / "examples");
  int looked_at = 0;
  for (const Block& block : blocks_of(golden_text(fs::path(EINC_SOURCE_DIR) / page))) {
    if (block.info == "ein" || block.info.starts_with("ein ")) ++looked_at, check_program(block, page, folder);
    if (block.info == "console") ++looked_at, check_commands(block, page, folder);
  }
  CHECK_MESSAGE(looked_at > 0, page, " has nothing to carry out");
  fs::remove_all(folder);
}

TEST_CASE("documents: pages say what einc does") {
  for (const char* page : {"README.md", "examples/tutorial.md", "examples/cookbook.md", "dsl/from_pytorch.md", "dsl/report.md",
                           "dsl/faq.md", "runtime/training.md", "runtime/many_machines.md"}) {
    CAPTURE(page);
    check_page(page);
  }
}

// The comparison itself: what it must accept, and what it must not.
TEST_CASE("documents: outputs are compared with their gaps") {
  const auto fits = [](const Lines& wanted, const Lines& is) {
    size_t furthest = 0;
    return matches(wanted, 0, is, 0, furthest);
  };
  CHECK(fits({"a", "…", "c"}, {"a", "b1", "b2", "c"}));
  CHECK(fits({"loss … in … s"}, {"loss 1.5 in 3 s"}));
  CHECK(fits({"…"}, {}));
  CHECK_FALSE(fits({"a"}, {"a", "b"}));
  CHECK_FALSE(fits({"a", "b"}, {"a"}));
  CHECK_FALSE(fits({"loss … in … s"}, {"loss 1.5 at 3 s"}));
  CHECK_FALSE(fits({"x…x"}, {"x"}));
}

}  // namespace
}  // namespace einc
