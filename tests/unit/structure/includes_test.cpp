// SPDX-License-Identifier: Apache-2.0
// What ARCHITECTURE.md promises of the sources: who may include whom, by its own table; no `default` over ops; names of types.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(' '), end = text.find_last_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(trimmed(part));
  return parts;
}

// The folders that a row stands for: `runtime/cpu/`, or several beside each other, `compiler/autodiff/`, `simplify/`.
std::vector<std::string> folders_of(const std::string& cell) {
  static const std::regex quoted("`([a-z_/]+)/`");
  std::vector<std::string> folders;
  for (std::sregex_iterator it(cell.begin(), cell.end(), quoted), end; it != end; ++it) {
    const std::string folder = (*it)[1].str();
    const bool beside = !folders.empty() && folder.find('/') == std::string::npos;
    folders.push_back(beside ? folders.front().substr(0, folders.front().rfind('/') + 1) + folder : folder);
  }
  return folders;
}

// The table of ARCHITECTURE.md: folder -> folders it may include besides itself, as written there.
std::map<std::string, std::vector<std::string>> table_as_written() {
  std::map<std::string, std::vector<std::string>> table;
  std::ifstream in(fs::path(EINC_SOURCE_DIR) / "ARCHITECTURE.md");
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("| folder | what | may include |", 0) == 0) inside = true;
    if (!inside || line.empty() || line.front() != '|') {
      if (inside) break;
      continue;
    }
    const std::vector<std::string> cells = parts_of(line, '|');
    if (cells.size() < 4 || cells[3].empty() || cells[3] == "may include" || cells[3] == "---") continue;
    const std::vector<std::string> names = cells[3] == "nothing" ? std::vector<std::string>() : parts_of(cells[3], ',');
    for (const std::string& folder : folders_of(cells[1])) table[folder] = names;
  }
  return table;
}

// The same with whole paths: a name is the end of the path of one folder.
std::map<std::string, std::vector<std::string>> allowed_includes() {
  std::map<std::string, std::vector<std::string>> table = table_as_written(), whole;
  for (const auto& [folder, names] : table) {
    std::vector<std::string>& paths = whole[folder];
    for (const std::string& name : names) {
      std::vector<std::string> found;
      for (const auto& [other, unused] : table)
        if (other == name || (other.size() > name.size() && other.ends_with("/" + name))) found.push_back(other);
      REQUIRE_MESSAGE(found.size() == 1, "ARCHITECTURE.md: `", name, "`, which ", folder, " may include, is ", found.size(), " folders");
      paths.push_back(found.front());
    }
  }
  return whole;
}

// The longest folder of the table that a file lies in.
std::string folder_of(const std::map<std::string, std::vector<std::string>>& table, const std::string& file) {
  std::string best;
  for (const auto& [folder, allowed] : table)
    if (file.rfind(folder + "/", 0) == 0 && folder.size() > best.size()) best = folder;
  return best;
}

// Files of ours that a file includes. Public headers are found below runtime/include and compiler/include.
std::vector<std::string> includes_of(const fs::path& path) {
  static const std::regex include("#include [\"<]([^\">]+)[\">].*");
  std::ifstream in(path);
  std::vector<std::string> found;
  std::smatch match;
  for (std::string line; std::getline(in, line);) {
    if (!std::regex_match(line, match, include)) continue;
    for (const char* root : {"", "runtime/include/", "compiler/include/"})
      if (fs::exists(fs::path(EINC_SOURCE_DIR) / (root + match[1].str()))) found.push_back(root + match[1].str());
  }
  return found;
}

// Switches over Op or MapFn that a `default` hides new rows of the op tables from: the line of each.
std::vector<int> defaults_over_ops(const fs::path& path) {
  static const std::regex opens("\\s*switch \\(.*"), over_ops("\\s*case (Op|MapFn)::.*"), fallback("\\s*default:.*");
  struct Switch {
    size_t indent;
    bool over_ops = false;
    int fallback = 0;
  };
  std::ifstream in(path);
  std::vector<Switch> open;
  std::vector<int> found;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const size_t indent = line.find_first_not_of(' ');
    if (std::regex_match(line, opens)) {
      open.push_back({indent});
    } else if (!open.empty()) {
      Switch& inner = open.back();
      inner.over_ops = inner.over_ops || std::regex_match(line, over_ops);
      if (std::regex_match(line, fallback)) inner.fallback = number;
      if (indent == inner.indent && line[indent] == '}') {
        if (inner.over_ops && inner.fallback > 0) found.push_back(inner.fallback);
        open.pop_back();
      }
    }
  }
  return found;
}

// namespace::name of every type that a file defines with external linkage: the first word of a line, outside `namespace {`.
std::vector<std::string> types_of(const fs::path& path) {
  static const std::regex opens("(inline )?namespace ?([A-Za-z_:0-9]*) ?\\{"), closes("\\}  // namespace.*"),
      type("(?:struct|class|enum class|enum) ([A-Za-z0-9_]+)( [^;]*)?");
  std::ifstream in(path);
  std::vector<std::string> scopes, found;
  std::smatch match;
  for (std::string line; std::getline(in, line);) {
    if (std::regex_match(line, match, opens)) {
      scopes.push_back(match[2].str());
    } else if (std::regex_match(line, closes) && !scopes.empty()) {
      scopes.pop_back();
    } else if (std::regex_match(line, match, type) && std::find(scopes.begin(), scopes.end(), "") == scopes.end()) {
      std::string name;
      for (const std::string& scope : scopes) name += scope + "::";
      found.push_back(name + match[1].str());
    }
  }
  return found;
}

}  // namespace

// Two types of one name in one namespace are undefined behaviour that no compiler sees: the linker merges their functions.
TEST_CASE("a type's name is defined once") {
  const fs::path root = EINC_SOURCE_DIR;
  std::map<std::string, std::string> defined;
  for (const char* top : {"runtime", "dsl", "compiler"})
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".h" && extension != ".cpp") continue;
      const std::string file = fs::relative(entry.path(), root).generic_string();
      for (const std::string& name : types_of(entry.path())) {
        const auto [first, fresh] = defined.emplace(name, file);
        CHECK_MESSAGE(fresh, name, " is defined in ", first->second, " and in ", file);
      }
    }
  CHECK(defined.size() > 100);
}

TEST_CASE("every include follows the table of ARCHITECTURE.md") {
  const fs::path root = EINC_SOURCE_DIR;
  const auto table = allowed_includes();
  CHECK(table.size() > 25);
  int files = 0, includes = 0;
  for (const char* top : {"runtime", "dsl", "compiler"})
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".h" && extension != ".cpp") continue;
      const std::string file = fs::relative(entry.path(), root).generic_string();
      const std::string from = folder_of(table, file);
      REQUIRE_MESSAGE(!from.empty(), file, " stands in a folder the table does not know");
      ++files;
      for (const std::string& include : includes_of(entry.path())) {
        ++includes;
        const std::string to = folder_of(table, include);
        const auto& allowed = table.at(from);
        CHECK_MESSAGE((to == from || std::find(allowed.begin(), allowed.end(), to) != allowed.end()), file, " includes ", include);
      }
    }
  CHECK(files > 300);
  CHECK(includes > 1000);
}

// "An op without a cost rule, gradient rule or interpreter case does not compile."
TEST_CASE("no switch over ops has a default") {
  const fs::path root = EINC_SOURCE_DIR;
  for (const auto& entry : fs::recursive_directory_iterator(root / "compiler")) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".h" && extension != ".cpp") continue;
    for (const int line : defaults_over_ops(entry.path()))
      CHECK_MESSAGE(false, fs::relative(entry.path(), root).generic_string(), ":", line, ": a default beside cases of Op or MapFn");
  }
}
