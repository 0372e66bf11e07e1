// SPDX-License-Identifier: Apache-2.0
// Everything goes through a descriptor of the folder, so that what was checked is what is used.
#include "runtime/base/file_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "runtime/base/hash.h"
#include "runtime/base/printable.h"
#include "runtime/base/sha256.h"

namespace einc {
namespace {

namespace fs = std::filesystem;

// In front of key and content, which follow each other.
struct Header {
  char magic[8];
  uint64_t key_bytes, content_bytes;
  Sha256 seal;  // of the two lengths, key and content
};
constexpr std::string_view kMagic("einc-ob2", 8), kAnyMagic = kMagic.substr(0, 7);  // of this and of earlier versions
constexpr std::string_view kDraft = "draft-";

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

std::atomic<void (*)(const std::string&)> printer{nullptr};

void warn(const std::string& path, const char* why) {
  if (void (*print)(const std::string&) = printer.exchange(nullptr))
    print(fmt::format("{}: compiled code there is not used: {}", printable(path), why));
}

constexpr const char* kForeign = "it belongs to another user, or others may write there";

fs::path absolute_variable(const char* name) {
  const char* value = std::getenv(name);
  fs::path path = value == nullptr ? "" : value;
  return path.is_absolute() ? path : fs::path();
}

std::string name_of(std::string_view key) { return fmt::format("{:016x}", fnv1a(key)); }

// A name that the cache gives: sixteen hexadecimal digits, or draft- and numbers.
bool is_own_name(std::string_view name) {
  const bool draft = name.starts_with(kDraft);
  if (draft) name.remove_prefix(kDraft.size());
  const std::string_view letters = draft ? "0123456789-" : "0123456789abcdef";
  return (draft || name.size() == 16) && !name.empty() && name.find_first_not_of(letters) == std::string_view::npos;
}

bool read_at(int file, uint64_t offset, char* out, size_t count) {
  while (count > 0) {
    const ssize_t got = ::pread(file, out, count, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    out += got;
    count -= static_cast<size_t>(got);
    offset += static_cast<uint64_t>(got);
  }
  return true;
}

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t taken = ::write(file, bytes.data(), bytes.size());
    if (taken < 0 && errno == EINTR) continue;
    if (taken <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(taken));
  }
  return true;
}

// Neither follows a link nor waits for a pipe's other end.
int open_entry(int folder, const std::string& name) {
  return ::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

bool is_own_file(int file, struct stat& status) { return ::fstat(file, &status) == 0 && S_ISREG(status.st_mode) && is_own(status); }

// A file that begins as the cache's do; a power cut may leave less.
bool begins_as_ours(int file, uint64_t size) {
  char start[kAnyMagic.size()];
  const size_t count = std::min<uint64_t>(size, sizeof start);
  return read_at(file, 0, start, count) && std::memcmp(start, kAnyMagic.data(), count) == 0;
}

// Whether the name may be taken by a new entry: by nobody yet, or by an older one.
bool may_replace(int folder, const std::string& name) {
  struct stat status {};
  if (::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT;
  if (!S_ISREG(status.st_mode)) return false;
  const Descriptor file(open_entry(folder, name));
  return file.number() >= 0 && is_own_file(file.number(), status) && begins_as_ours(file.number(), static_cast<uint64_t>(status.st_size));
}

Header header_of(std::string_view key, std::string_view content) {
  Header header{{}, key.size(), content.size(), {}};
  std::memcpy(header.magic, kMagic.data(), kMagic.size());
  const uint64_t lengths[] = {key.size(), content.size()};
  header.seal = sha256({{reinterpret_cast<const char*>(lengths), sizeof lengths}, key, content});
  return header;
}

// The folder, when it is there and safe.
int open_folder(const fs::path& path) {
  const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  struct stat status {};
  if (folder < 0 || (::fstat(folder, &status) == 0 && is_own(status))) return folder;
  ::close(folder);
  warn(path.string(), kForeign);
  return -1;
}

struct Entry {
  std::string name;
  timespec used;
  uint64_t bytes;
};

// The cache's own files.
std::vector<Entry> entries_of(int folder, const fs::path& path) {
  std::vector<Entry> entries;
  std::error_code error;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    struct stat status {};
    if (!is_own_name(name) || !may_replace(folder, name) || ::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    entries.push_back({name, status.st_mtim, static_cast<uint64_t>(status.st_size)});
  }
  return entries;
}

}  // namespace

bool is_own(const struct stat& status) { return status.st_uid == ::geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0; }

FileCache::FileCache(fs::path folder, uint64_t max_bytes) : folder_(std::move(folder)), max_bytes_(max_bytes) {}

fs::path FileCache::default_folder() {
  if (const fs::path cache = absolute_variable("XDG_CACHE_HOME"); !cache.empty()) return cache / "einc";
  if (const fs::path home = absolute_variable("HOME"); !home.empty()) return home / ".cache" / "einc";
  return {};
}

void FileCache::warn_by(void (*print)(const std::string& warning)) { printer = print; }

std::optional<std::string> FileCache::load(std::string_view key) const {
  if (folder_.empty()) return std::nullopt;
  const Descriptor folder(open_folder(folder_));
  if (folder.number() < 0) return std::nullopt;
  const std::string name = name_of(key);
  const Descriptor file(open_entry(folder.number(), name));
  if (file.number() < 0) {
    if (errno != ENOENT) warn(path_of(name), errno == ELOOP ? "it is a link" : std::strerror(errno));
    return std::nullopt;
  }
  struct stat status {};
  if (!is_own_file(file.number(), status)) {
    warn(path_of(name), S_ISREG(status.st_mode) ? kForeign : "it is no regular file");
    return std::nullopt;
  }
  // The lengths are believed when the file has just as many bytes; the content is read when the key is this one.
  const auto size = static_cast<uint64_t>(status.st_size);
  Header header;
  std::string stored_key(key.size(), '\0');
  if (size < sizeof header + key.size() || size - sizeof header - key.size() > max_bytes_ ||
      !read_at(file.number(), 0, reinterpret_cast<char*>(&header), sizeof header) ||
      !read_at(file.number(), sizeof header, stored_key.data(), key.size()) || stored_key != key ||
      header.content_bytes != size - sizeof header - key.size())
    return std::nullopt;
  std::string content(header.content_bytes, '\0');
  if (!read_at(file.number(), sizeof header + key.size(), content.data(), content.size())) return std::nullopt;
  const Header expected = header_of(key, content);
  if (std::memcmp(&header, &expected, sizeof header) != 0) return std::nullopt;
  ::futimens(file.number(), nullptr);  // used just now
  return content;
}

void FileCache::store(std::string_view key, std::string_view content) {
  if (folder_.empty()) return;
  std::error_code error;
  if (folder_.has_parent_path()) fs::create_directories(folder_.parent_path(), error);
  ::mkdir(folder_.c_str(), 0700);
  const Descriptor folder(open_folder(folder_));
  const std::string name = name_of(key);
  if (folder.number() < 0 || !may_replace(folder.number(), name)) return;
  // Processes of several machines or containers may share the folder, and their numbers.
  static std::atomic<uint64_t> counter{0};
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  const std::string draft = fmt::format("{}{}-{}-{}", kDraft, ::getpid(), now, counter++);
  const Header header = header_of(key, content);
  bool whole = false;
  {
    const Descriptor file(::openat(folder.number(), draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (file.number() < 0) return;
    whole = write_all(file.number(), {reinterpret_cast<const char*>(&header), sizeof header}) && write_all(file.number(), key) &&
            write_all(file.number(), content);
  }
  if (!whole || ::renameat(folder.number(), draft.c_str(), folder.number(), name.c_str()) != 0)
    ::unlinkat(folder.number(), draft.c_str(), 0);
  const std::lock_guard lock(mutex_);
  if (held_bytes_) *held_bytes_ += sizeof header + key.size() + content.size();
  if (!held_bytes_ || *held_bytes_ > max_bytes_) make_room(folder.number());
}

void FileCache::make_room(int folder) {
  std::vector<Entry> entries = entries_of(folder, folder_);
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.used.tv_sec, a.used.tv_nsec) < std::pair(b.used.tv_sec, b.used.tv_nsec);
  });
  uint64_t held = 0;
  for (const Entry& entry : entries) held += entry.bytes;
  // A quarter below the bound, so that the folder is not read anew for every entry.
  const uint64_t goal = held > max_bytes_ ? max_bytes_ / 4 * 3 : max_bytes_;
  for (const Entry& entry : entries) {
    if (held <= goal) break;
    if (::unlinkat(folder, entry.name.c_str(), 0) == 0) held -= entry.bytes;
  }
  held_bytes_ = held;
}

}  // namespace einc
