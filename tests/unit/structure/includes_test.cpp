// Who may include whom: the table in ARCHITECTURE.md, held against every #include of the tree.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

// folder -> folders it may include besides itself; the longest matching folder of a file decides.
const std::map<std::string, std::vector<std::string>> kAllowed{
    {"runtime/base", {}},
    {"runtime/data", {"runtime/base"}},
    {"dsl", {"runtime/base"}},
    {"compiler/symbolic", {"runtime/base"}},
    {"compiler/ir", {"compiler/symbolic", "runtime/base"}},
    {"compiler/contraction", {"compiler/ir", "compiler/symbolic", "runtime/base"}},
    {"compiler/autodiff", {"compiler/ir", "compiler/symbolic", "runtime/base"}},
    {"compiler/simplify", {"compiler/ir", "compiler/symbolic", "runtime/base"}},
    {"compiler/precision", {"compiler/ir", "compiler/symbolic", "runtime/base"}},
    {"compiler/elaborate", {"dsl", "compiler/ir", "compiler/symbolic", "compiler/autodiff", "compiler/contraction", "runtime/base"}},
    {"compiler/cost", {"compiler/ir", "compiler/symbolic", "runtime/base"}},
    {"compiler/report", {"compiler/fuse", "compiler/lower", "compiler/cost", "compiler/ir", "compiler/symbolic", "runtime/base"}},
    {"compiler/fuse", {"compiler/lower", "compiler/ir", "compiler/symbolic", "runtime/base"}},
    {"compiler/lower", {"compiler/ir", "compiler/symbolic", "runtime/base", "runtime/program"}},
    {"compiler/codegen/llvm", {"compiler/lower", "compiler/ir", "runtime/base", "runtime/program", "runtime/cpu"}},
    {"compiler/codegen/cuda", {"compiler/lower", "compiler/ir", "runtime/base", "runtime/program", "runtime/cuda"}},
    {"compiler/codegen/none", {"compiler/codegen/llvm", "compiler/lower", "runtime/base", "runtime/program"}},
    {"runtime/program", {"runtime/base"}},
    {"runtime/cpu", {"runtime/base", "runtime/program"}},
    {"runtime/executor", {"runtime/base", "runtime/program", "runtime/cpu", "runtime/data"}},
    {"runtime/cuda", {"runtime/base", "runtime/program", "runtime/cpu", "runtime/executor"}},
    {"runtime/cudnn", {"runtime/base", "runtime/cuda"}},
    {"runtime/train", {"runtime/base", "runtime/data", "runtime/program", "runtime/executor"}},
    {"runtime/text", {"runtime/base", "runtime/data"}},
    {"runtime/sample", {"runtime/base", "einc"}},
    {"runtime/include", {"runtime/base", "einc"}},
    {"runtime/api", {"runtime/base", "runtime/program", "runtime/cpu", "runtime/executor", "runtime/data", "runtime/train"}},
    {"einc", {}},  // public headers among themselves
    {"compiler/include", {"einc"}},
    {"compiler/api",
     {"compiler/pipeline", "dsl", "compiler/ir", "compiler/symbolic", "compiler/elaborate", "compiler/simplify", "compiler/precision",
      "compiler/cost", "compiler/report", "compiler/fuse", "compiler/lower", "compiler/codegen/llvm", "runtime/api", "runtime/base",
      "runtime/program", "runtime/executor", "runtime/cuda"}},
    {"compiler/pipeline",
     {"dsl", "compiler/ir", "compiler/symbolic", "compiler/elaborate", "compiler/simplify", "compiler/precision", "compiler/fuse",
      "compiler/lower", "compiler/codegen/llvm", "compiler/codegen/cuda", "runtime/base", "runtime/program", "runtime/cuda"}},
    {"compiler/driver",
     {"compiler/api",
      "compiler/pipeline",
      "dsl",
      "compiler/ir",
      "compiler/symbolic",
      "compiler/elaborate",
      "compiler/autodiff",
      "compiler/contraction",
      "compiler/simplify",
      "compiler/precision",
      "compiler/cost",
      "compiler/report",
      "compiler/fuse",
      "compiler/lower",
      "compiler/codegen/cuda",
      "compiler/codegen/llvm",
      "runtime/base",
      "runtime/data",
      "runtime/program",
      "runtime/cpu",
      "runtime/executor",
      "runtime/text",
      "runtime/sample",
      "einc",
      "runtime/cuda",
      "runtime/train"}},
};

std::string folder_of(const std::string& file) {
  std::string best;
  for (const auto& [folder, allowed] : kAllowed)
    if (file.rfind(folder + "/", 0) == 0 && folder.size() > best.size()) best = folder;
  return best;
}

std::vector<std::string> includes_of(const fs::path& path) {
  std::ifstream in(path);
  std::vector<std::string> found;
  for (std::string line; std::getline(in, line);)
    if (line.rfind("#include \"", 0) == 0) found.push_back(line.substr(10, line.find('"', 10) - 10));
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

TEST_CASE("every include follows the table of layers") {
  const fs::path root = EINC_SOURCE_DIR;
  int files = 0;
  for (const char* top : {"runtime", "dsl", "compiler"})
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".h" && extension != ".cpp") continue;
      const std::string file = fs::relative(entry.path(), root).generic_string();
      const std::string from = folder_of(file);
      REQUIRE_MESSAGE(!from.empty(), file, " stands in a folder the table does not know");
      ++files;
      for (const std::string& include : includes_of(entry.path())) {
        const std::string to = folder_of(include);
        const auto& allowed = kAllowed.at(from);
        CHECK_MESSAGE((to == from || std::find(allowed.begin(), allowed.end(), to) != allowed.end()), file, " includes ", include);
      }
    }
  CHECK(files > 20);
}
