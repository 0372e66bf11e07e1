// SPDX-License-Identifier: Apache-2.0
// The page lies in a frame of the width asked for, since a window is never narrower than 500 points; the document around it asks the frame
// what it shows and writes the answers where --dump-dom prints them.
#include "tests/golden/page/browser.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

namespace einc::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProbe = R"(<!DOCTYPE html>
<html><body><pre id="answers"></pre><iframe id="frame" style="border: 0; height: 800px; width: {WIDTH}px"></iframe><script>
const frame = document.getElementById("frame");
frame.onload = () => {
  const page = frame.contentDocument;
  let heading = "";
  const rows = [], dead = [];
  for (const e of page.querySelectorAll("h2, tr")) {
    if (e.tagName === "H2") heading = e.innerText;
    else rows.push({heading: heading, cells: [...e.cells].map(cell => cell.innerText.trim())});
  }
  for (const a of page.querySelectorAll("a"))
    if (!page.getElementById((a.getAttribute("href") || "").slice(1))) dead.push(a.getAttribute("href") || "");
  const has_extent = e => { const box = e.getBoundingClientRect(); return box.width > 0 && box.height > 0; };
  document.getElementById("answers").textContent = JSON.stringify({
    width: frame.contentWindow.innerWidth, content: page.documentElement.scrollWidth, rows: rows, dead: dead,
    json: page.getElementById("report").textContent,
    shapes: [...page.querySelectorAll("svg rect, svg path, svg circle")].filter(has_extent).length});
};
frame.srcdoc = {PAGE};
</script></body></html>
)";

std::string replaced(std::string text, const std::string& mark, const std::string& by) {
  const size_t at = text.find(mark);
  return text.replace(at, mark.size(), by);
}

// As a literal in a script, which "</script>" would end.
std::string literal(const std::string& text) {
  std::string quoted = nlohmann::json(text).dump();
  for (size_t at = 0; (at = quoted.find('<', at)) != std::string::npos; at += 6) quoted.replace(at, 1, "\\u003c");
  return quoted;
}

std::string read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// What the browser escapes in a text that it prints.
std::string unescaped(std::string text) {
  for (const auto& [mark, by] : {std::pair{"&lt;", "<"}, {"&gt;", ">"}, {"&nbsp;", " "}, {"&amp;", "&"}})
    for (size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += std::string(by).size())
      text.replace(at, std::string(mark).size(), by);
  return text;
}

// Lines that a page wrote to the console, errors of scripts among them.
std::string console_of(const std::string& log) {
  std::string lines, line;
  for (std::istringstream in(log); std::getline(in, line);)
    if (line.find(":CONSOLE") != std::string::npos) lines += line + "\n";
  return lines;
}

ShownPage parse_answers(const std::string& dom) {
  const std::string mark = "<pre id=\"answers\">";
  const size_t at = dom.find(mark), end = dom.find("</pre>", at);
  if (at == std::string::npos || end == at + mark.size()) throw std::runtime_error("the browser showed no page: " + dom.substr(0, 500));
  const auto answers = nlohmann::json::parse(unescaped(dom.substr(at + mark.size(), end - at - mark.size())));
  ShownPage shown{answers["width"], answers["content"], {}, answers["json"], answers["dead"], answers["shapes"], ""};
  for (const auto& row : answers["rows"]) shown.rows.push_back({row["heading"], row["cells"]});
  return shown;
}

}  // namespace

std::optional<std::string> find_browser() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"})
    if (std::system(fmt::format("command -v {} > /dev/null 2>&1", name).c_str()) == 0) return name;
  return std::nullopt;
}

ShownPage show_page(const std::string& browser, const std::string& page, int width) {
  const fs::path folder = fs::temp_directory_path() / fmt::format("einc_page_{}", getpid());
  fs::create_directories(folder);
  const auto at = [&](const char* name) { return (folder / name).string(); };
  std::ofstream(at("probe.html"), std::ios::binary)
      << replaced(replaced(kProbe, "{WIDTH}", std::to_string(width)), "{PAGE}", literal(page));
  // As root it needs --no-sandbox; the budget is of the page's clock, which runs ahead while nothing loads.
  const std::string command = fmt::format(
      "timeout 120 {} --headless --no-sandbox --disable-gpu --user-data-dir={} --window-size=1600,1000 --virtual-time-budget=10000 "
      "--enable-logging=stderr --dump-dom file://{} > {} 2> {}",
      browser, at("profile"), at("probe.html"), at("dom.html"), at("log"));
  const int status = std::system(command.c_str());
  const std::string dom = read(at("dom.html")), log = read(at("log"));
  fs::remove_all(folder);
  if (status != 0) throw std::runtime_error(fmt::format("{} ended with status {}: {}", browser, status, log));
  ShownPage shown = parse_answers(dom);
  shown.console = console_of(log);
  return shown;
}

}  // namespace einc::test
