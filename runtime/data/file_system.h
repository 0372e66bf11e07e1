// SPDX-License-Identifier: Apache-2.0
// The system calls that saving a folder of files consists of. Tests put others in their place, to let each of them fail.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace einc {

// Each as the system's own: -1 with errno on failure; write may take less than it was given.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual int create_file(const std::string& path);  // to write to; one that is there is emptied
  virtual ssize_t write(int file, std::span<const std::byte> bytes);
  virtual int open_folder(const std::string& path);
  virtual int sync(int descriptor);
  virtual int close(int descriptor);
  virtual int make_folder(const std::string& path);
  virtual int make_link(const std::string& target, const std::string& path);
  virtual int rename(const std::string& from, const std::string& to);
  virtual int exchange(const std::string& one, const std::string& other);  // of two names that both exist
  virtual int remove(const std::string& path);                             // a file or an empty folder
};

struct FileDigest {
  uint64_t bytes = 0, hash = 0;  // hash: Xxh64
  bool operator==(const FileDigest&) const = default;
};

// All of these throw RuntimeFailure (resource), which names the path and the system's reason.
// The file's bytes are on the disk afterwards; its name is when its folder has been synced.
FileDigest write_synced(FileSystem& files, const std::string& path, std::span<const std::span<const std::byte>> pieces);
void sync_folder(FileSystem& files, const std::string& path);
[[noreturn]] void fail_with_errno(const std::string& path, const char* doing);

}  // namespace einc
