// Programs that were once compiled wrongly.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/support/agree.h"

using namespace einc;

TEST_CASE("programs once compiled wrongly agree") {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(EINC_SOURCE_DIR "/tests/regress"))
    if (entry.path().extension() == ".ein") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  REQUIRE(!files.empty());
  for (const auto& file : files) {
    CAPTURE(file.filename().string());
    std::ifstream in(file);
    std::stringstream text;
    text << in.rdbuf();
    for (const uint64_t seed : {8, 9}) CHECK(disagreement(text.str(), seed) == "");
  }
}
