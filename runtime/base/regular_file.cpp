// SPDX-License-Identifier: Apache-2.0
// Looked at before it is opened, since opening alone may act on a device, and once more after, since the name may be another file's by
// then; O_NONBLOCK keeps that one from waiting.
#include "runtime/base/regular_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace einc {

RegularFile::RegularFile(const std::string& path) {
  constexpr const char* kNotRegular = "not a regular file";
  if (::stat(path.c_str(), &status_) != 0) {
    problem_ = std::strerror(errno);
    return;
  }
  if (!S_ISREG(status_.st_mode)) {
    problem_ = kNotRegular;
    return;
  }
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor_ < 0) {
    problem_ = std::strerror(errno);
  } else if (::fstat(descriptor_, &status_) != 0 || !S_ISREG(status_.st_mode)) {
    problem_ = kNotRegular;
    ::close(descriptor_);
    descriptor_ = -1;
  }
}

RegularFile::~RegularFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::optional<std::string> RegularFile::read_start(size_t most) const {
  // One byte more than there should be, so that the end is seen; a file that grows is read in chunks.
  constexpr size_t kChunk = size_t{1} << 16;
  std::string bytes;
  while (bytes.size() < most) {
    const size_t before = bytes.size(), expected = static_cast<size_t>(status_.st_size);
    bytes.resize(std::min(most, before < expected ? expected + 1 : before + kChunk));
    const ssize_t got = ::pread(descriptor_, bytes.data() + before, bytes.size() - before, static_cast<off_t>(before));
    bytes.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
  }
  return bytes;
}

}  // namespace einc
