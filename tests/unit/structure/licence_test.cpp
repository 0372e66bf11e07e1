// SPDX-License-Identifier: Apache-2.0
// Every source file says under which licence it stands: scripts/license writes the line.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

namespace {

namespace fs = std::filesystem;

bool is_source(const fs::path& path) {
  static const std::set<std::string> kinds = {".cpp", ".h", ".c", ".cu", ".def", ".py", ".pyi", ".sh", ".cmake", ".map", ".in", ".toml"};
  return kinds.contains(path.extension().string()) || path.filename() == "CMakeLists.txt" || path.parent_path().filename() == "scripts";
}

bool says_licence(const fs::path& path) {
  std::ifstream in(path);
  std::string line;
  for (int i = 0; i < 2 && std::getline(in, line); ++i)
    if (line.find("SPDX-License-Identifier: Apache-2.0") != std::string::npos) return true;
  return fs::file_size(path) == 0;
}

}  // namespace

TEST_CASE("every source file names its licence") {
  const fs::path root = EINC_SOURCE_DIR;
  CHECK(fs::exists(root / "LICENSE"));
  int files = 0;
  for (const char* top : {"dsl", "compiler", "runtime", "examples", "tests", "scripts", "cmake"})
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      if (!entry.is_regular_file() || !is_source(entry.path())) continue;
      ++files;
      CHECK_MESSAGE(says_licence(entry.path()), fs::relative(entry.path(), root).generic_string(), ": scripts/license");
    }
  CHECK(files > 600);
  for (const char* file : {"CMakeLists.txt", "pyproject.toml"}) CHECK_MESSAGE(says_licence(root / file), file);
}
