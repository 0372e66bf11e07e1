// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "runtime/base/hash.h"

namespace einc {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_errno(const std::string& path, const char* doing) {
  throw RuntimeFailure(FailureKind::resource, fmt::format("{}: cannot {}: {}", printable(path), doing, std::strerror(errno)));
}

constexpr const char* kCutShort = "the file was cut short while it was read";

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

}  // namespace

void ByteSource::fail(uint64_t offset, const std::string& what) const {
  throw RuntimeFailure(FailureKind::data, place(offset) + ": " + what);
}

InputFile::InputFile(std::string path) : path_(std::move(path)), file_(path_) {
  if (!file_.is_open()) throw RuntimeFailure(FailureKind::resource, fmt::format("{}: cannot read: {}", printable(path_), file_.problem()));
}

void InputFile::read(uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t n = ::pread(descriptor(), out.data(), out.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_errno(path_, "read");
    if (n == 0) fail(offset, kCutShort);
    offset += static_cast<uint64_t>(n);
    out = out.subspan(static_cast<size_t>(n));
  }
}

std::string InputFile::place(uint64_t offset) const { return fmt::format("{}: byte {}", printable(path_), offset); }

MappedFile::MappedFile(std::string path) : InputFile(std::move(path)) {
  if (size() == 0) return;
  void* at = ::mmap(nullptr, static_cast<size_t>(size()), PROT_READ, MAP_PRIVATE, descriptor(), 0);
  if (at == MAP_FAILED) fail_errno(this->path(), "map");
  bytes_ = {static_cast<const std::byte*>(at), static_cast<size_t>(size())};
  guard_.emplace(bytes_);
}

MappedFile::~MappedFile() {
  guard_.reset();
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

// The rest of the page that a shorter file ends in reads as zeros without a signal: the size says it.
void MappedFile::check_whole() const {
  struct stat now {};
  const bool shorter = ::fstat(descriptor(), &now) != 0 || static_cast<uint64_t>(now.st_size) < size();
  if (shorter || (guard_ && guard_->is_cut())) throw RuntimeFailure(FailureKind::data, printable(path()) + ": " + kCutShort);
}

void MappedFile::expect_random_reads() const {
  if (!bytes_.empty()) ::madvise(const_cast<std::byte*>(bytes_.data()), bytes_.size(), MADV_RANDOM);
}

void MappedFile::fetch(std::span<const std::byte> part) const {
  static const auto kPage = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  if (part.empty()) return;
  const auto begin = reinterpret_cast<uintptr_t>(part.data()) / kPage * kPage, end = reinterpret_cast<uintptr_t>(part.data() + part.size());
  ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_WILLNEED);
}

uint64_t MappedFile::sample_hash() const {
  constexpr size_t kPages = 64, kPage = 4096;
  uint64_t hash = fnv1a(fmt::format("{}", size()));
  const size_t last = bytes_.size() > kPage ? bytes_.size() - kPage : 0;  // where the last page begins
  for (size_t i = 0; i < (last == 0 ? 1 : kPages); ++i) {
    const size_t begin = last / (kPages - 1) * i + last % (kPages - 1) * i / (kPages - 1);
    const std::span<const std::byte> page = bytes_.subspan(begin, std::min(kPage, bytes_.size() - begin));
    hash = hash * 31 + fnv1a({reinterpret_cast<const char*>(page.data()), page.size()});
  }
  check_whole();
  return hash;
}

std::string output_target(const std::string& path) {
  const auto refuse = [&](const char* why) { throw RuntimeFailure(FailureKind::resource, fmt::format("{}: {}", printable(path), why)); };
  std::error_code error;
  std::string target = path;
  if (fs::is_symlink(fs::symlink_status(path, error))) {
    target = fs::canonical(path, error).string();
    if (error) refuse("cannot write: it is a link that leads to no file");
  }
  const fs::file_status status = fs::status(target, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) refuse("cannot write: it is there and not a regular file");
  if (::access(folder_of(target).c_str(), W_OK | X_OK) != 0) fail_errno(path, "write");
  return target;
}

std::optional<FileIdentity> identity_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) return FileIdentity{status.st_dev, status.st_ino, ""};
  if (::stat(folder_of(path).c_str(), &status) != 0) return std::nullopt;
  return FileIdentity{status.st_dev, status.st_ino, fs::path(path).filename().string()};
}

PendingFile::PendingFile(std::string path) : path_(output_target(path)) {
  static std::atomic<uint64_t> counter{0};
  temporary_ = fmt::format("{}.{}-{}.tmp", path_, ::getpid(), counter++);
  ::unlink(temporary_.c_str());  // of a process of the same number that was killed
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail_errno(path_, "write");
  exists_ = true;
  struct stat before {};
  if (::stat(path_.c_str(), &before) == 0) ::fchmod(descriptor_, before.st_mode & 0777);
}

PendingFile::~PendingFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (exists_) ::unlink(temporary_.c_str());
}

void PendingFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(descriptor_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_errno(path_, "write");
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
}

void PendingFile::finish() {
  if (::fsync(descriptor_) != 0) fail_errno(path_, "write");
  const int closed = ::close(descriptor_);
  descriptor_ = -1;
  if (closed != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) fail_errno(path_, "write");
  exists_ = false;
  keep_name();
}

// The folder too is flushed, where its file system can: else a power cut may take the new name back.
void PendingFile::keep_name() const {
  const int descriptor = ::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

void write_file(const std::string& path, std::span<const std::span<const std::byte>> pieces) {
  PendingFile file(path);
  for (const std::span<const std::byte> piece : pieces) file.write(piece);
  file.finish();
}

}  // namespace einc
