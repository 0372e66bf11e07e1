// SPDX-License-Identifier: Apache-2.0
// Files that tests make and remove, and the message of what a call throws.
#pragma once
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/base/failure.h"

namespace einc {

class TestFile {
 public:
  TestFile(const std::string& name, const std::string& content)
      : folder_(std::filesystem::temp_directory_path() / ("einc-test-" + std::to_string(::getpid()))), path_(folder_ / name) {
    std::filesystem::create_directories(folder_);
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~TestFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
    std::filesystem::remove(folder_, ignored);  // only when empty
  }
  TestFile(const TestFile&) = delete;
  TestFile& operator=(const TestFile&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path folder_, path_;
};

template <class F>
std::string failure_of(F call) {
  try {
    call();
  } catch (const RuntimeFailure& failure) {
    return failure.what();
  }
  return "";
}

}  // namespace einc
