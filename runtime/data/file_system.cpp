// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/file_system.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "runtime/base/failure.h"
#include "runtime/base/printable.h"
#include "runtime/base/xxh64.h"

namespace einc {
namespace {

// Closed at the end, unless that was done before.
class OpenDescriptor {
 public:
  OpenDescriptor(FileSystem& files, const std::string& path, int descriptor, const char* doing)
      : files_(files), path_(path), doing_(doing), descriptor_(descriptor) {
    if (descriptor < 0) fail_with_errno(path, doing);
  }
  ~OpenDescriptor() {
    if (descriptor_ >= 0) files_.close(descriptor_);
  }
  OpenDescriptor(const OpenDescriptor&) = delete;
  OpenDescriptor& operator=(const OpenDescriptor&) = delete;

  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t taken = files_.write(descriptor_, bytes);
      if (taken < 0 && errno == EINTR) continue;
      if (taken < 0) fail_with_errno(path_, doing_);
      bytes = bytes.subspan(static_cast<size_t>(taken));
    }
  }
  void sync_and_close() {
    if (files_.sync(descriptor_) != 0) fail_with_errno(path_, doing_);
    const int closed = files_.close(descriptor_);
    descriptor_ = -1;
    if (closed != 0) fail_with_errno(path_, doing_);
  }

 private:
  FileSystem& files_;
  const std::string& path_;
  const char* doing_;
  int descriptor_;
};

}  // namespace

int FileSystem::create_file(const std::string& path) { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666); }

ssize_t FileSystem::write(int file, std::span<const std::byte> bytes) { return ::write(file, bytes.data(), bytes.size()); }

int FileSystem::open_folder(const std::string& path) { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }

int FileSystem::sync(int descriptor) { return ::fsync(descriptor); }

int FileSystem::close(int descriptor) { return ::close(descriptor); }

int FileSystem::make_folder(const std::string& path) { return ::mkdir(path.c_str(), 0777); }

int FileSystem::make_link(const std::string& target, const std::string& path) { return ::symlink(target.c_str(), path.c_str()); }

int FileSystem::rename(const std::string& from, const std::string& to) { return ::rename(from.c_str(), to.c_str()); }

int FileSystem::exchange(const std::string& one, const std::string& other) {
  return ::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE);
}

int FileSystem::remove(const std::string& path) { return ::remove(path.c_str()); }

void fail_with_errno(const std::string& path, const char* doing) {
  throw RuntimeFailure(FailureKind::resource, fmt::format("{}: cannot {}: {}", printable(path), doing, std::strerror(errno)));
}

FileDigest write_synced(FileSystem& files, const std::string& path, std::span<const std::span<const std::byte>> pieces) {
  FileDigest digest;
  Xxh64 hash;
  OpenDescriptor file(files, path, files.create_file(path), "write");
  for (const std::span<const std::byte> piece : pieces) {
    file.write(piece);
    hash.update(piece);
    digest.bytes += piece.size();
  }
  file.sync_and_close();
  digest.hash = hash.digest();
  return digest;
}

void sync_folder(FileSystem& files, const std::string& path) {
  OpenDescriptor folder(files, path, files.open_folder(path), "sync");
  folder.sync_and_close();
}

}  // namespace einc
