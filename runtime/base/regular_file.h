// SPDX-License-Identifier: Apache-2.0
// Files that others name, opened to read. Only regular files are: opening a pipe would wait for a writer, and reading a device may never
// end or change it.
#pragma once
#include <sys/stat.h>

#include <cstddef>
#include <optional>
#include <string>

namespace einc {

class RegularFile {
 public:
  explicit RegularFile(const std::string& path);
  ~RegularFile();
  RegularFile(const RegularFile&) = delete;
  RegularFile& operator=(const RegularFile&) = delete;

  bool is_open() const { return descriptor_ >= 0; }
  const std::string& problem() const { return problem_; }  // why it is not: "No such file or directory", "not a regular file"
  int descriptor() const { return descriptor_; }
  const struct stat& status() const { return status_; }  // when it was opened
  // Its first bytes, `most` of them or all; nullopt with errno when the system cannot read them.
  std::optional<std::string> read_start(size_t most) const;

 private:
  int descriptor_ = -1;
  struct stat status_ {};
  std::string problem_;
};

}  // namespace einc
