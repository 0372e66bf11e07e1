// SPDX-License-Identifier: Apache-2.0
// A folder of its own for each test, with what these tests put there.
#pragma once
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/run_einc.h"

namespace einc::test {

class Place {
 public:
  Place() : path_(std::filesystem::temp_directory_path() / fmt::format("einc_boundary_{}_{}", getpid(), count_++)) {
    std::filesystem::create_directories(path_);
  }
  ~Place() { std::filesystem::remove_all(path_); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  std::string at(const std::string& name) const { return (path_ / name).string(); }
  std::string write(const std::string& name, std::string_view content) const {
    std::ofstream(at(name), std::ios::binary) << content;
    return at(name);
  }
  std::string read(const std::string& name) const {
    std::ifstream in(at(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // Of all that is in the folder, hidden ones too.
  std::vector<std::string> names(const std::string& folder = "") const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(at(folder))) names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  static inline int count_ = 0;
  std::filesystem::path path_;
};

// A .npy file of rows of `width` numbers.
inline std::string npy_of_floats(const std::vector<float>& values, size_t width = 4) {
  std::string header = values.size() == width
                           ? fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({},), }}", width)
                           : fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", values.size() / width, width);
  header.resize(117, ' ');
  std::string bytes("\x93NUMPY\x01\x00\x76\x00", 10);
  bytes += header + "\n";
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return bytes;
}

}  // namespace einc::test
