// SPDX-License-Identifier: Apache-2.0
// Expected texts in files of the repository. `scripts/golden` rewrites them: read the difference before committing it.
#pragma once
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace einc {

inline std::string golden_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// Compares with the file, or rewrites it when EINC_UPDATE_GOLDEN is set.
inline void expect_golden(const std::string& text, const std::filesystem::path& path) {
  if (std::getenv("EINC_UPDATE_GOLDEN")) {
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  const std::string wanted = golden_text(path);
  std::istringstream is(text), was(wanted);
  std::string now, before;
  size_t line = 0;
  bool is_more = true, was_more = true;
  while ((is_more || was_more) && now == before) {
    now.clear(), before.clear();
    is_more = !!std::getline(is, now), was_more = !!std::getline(was, before);
    ++line;
  }
  CHECK_MESSAGE(text == wanted, path.string(), ":", line, "\n is  ", now, "\n was ", before);
}

}  // namespace einc
