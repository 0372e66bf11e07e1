// SPDX-License-Identifier: Apache-2.0
// Whole-file access for the readers of data files. Nothing is believed before it is checked: the size comes from the open
// file, and memory is only asked for bytes that are there. Failures are RuntimeFailure and name the file.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/failure.h"
#include "runtime/base/printable.h"
#include "runtime/base/regular_file.h"
#include "runtime/data/guarded_mapping.h"

namespace einc {

// Bytes that a reader takes in any order, and whose place a message can tell.
class ByteSource {
 public:
  ByteSource() = default;
  virtual ~ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  virtual const std::string& path() const = 0;
  // Fills `out` with the bytes from `offset` on, all of which are there.
  virtual void read(uint64_t offset, std::span<std::byte> out) const = 0;
  // "x.npy: byte 12": for people.
  virtual std::string place(uint64_t offset) const = 0;
  // "x.npy: byte 12: what": the bytes are not as they should be.
  [[noreturn]] void fail(uint64_t offset, const std::string& what) const;
};

class InputFile : public ByteSource {
 public:
  // A regular file; otherwise a resource failure that says why it cannot be read.
  explicit InputFile(std::string path);

  const std::string& path() const override { return path_; }
  uint64_t size() const { return static_cast<uint64_t>(file_.status().st_size); }
  int descriptor() const { return file_.descriptor(); }
  void read(uint64_t offset, std::span<std::byte> out) const override;
  std::string place(uint64_t offset) const override;

 private:
  std::string path_;
  RegularFile file_;
};

// A file's bytes in the address space, read from the disk as they are touched. Bytes that somebody cuts off meanwhile read as zeros:
// whoever has used bytes() calls check_whole() before the result counts.
class MappedFile : public InputFile {
 public:
  explicit MappedFile(std::string path);
  ~MappedFile() override;
  std::span<const std::byte> bytes() const { return bytes_; }
  // Throws RuntimeFailure (data) when bytes that were touched so far were not the file's.
  void check_whole() const;
  // Tells the system that bytes are wanted here and there: it no longer reads what lies beside them.
  void expect_random_reads() const;
  // Has the system start to read bytes that are wanted soon, all at once and not page by page as they are touched.
  void fetch(std::span<const std::byte> part) const;
  // Of the size and of 64 pages spread over the file: quick, and all but certainly another one for another file.
  uint64_t sample_hash() const;

 private:
  std::span<const std::byte> bytes_;
  std::optional<GuardedMapping> guard_;
};

// The file that an output of this name makes or replaces: links are followed, so that they stay. Throws RuntimeFailure (resource) for
// the name of a folder, device, pipe or socket, of a link to nothing, and where there is no folder to write into.
std::string output_target(const std::string& path);

// What tells a file from others, by whatever names they are given: its number on its device; of one that is not there yet, its folder's
// number and its name.
struct FileIdentity {
  dev_t device;
  ino_t number;
  std::string name;  // empty: the file is there
  bool operator==(const FileIdentity&) const = default;
};
std::optional<FileIdentity> identity_of(const std::string& path);  // nullopt: not even its folder is there

// A file that is written under a temporary name beside it, flushed to disk and renamed: output_target(path) is never half written, and
// keeps its permissions. Without finish(), nothing stays. Failures are RuntimeFailure (resource).
class PendingFile {
 public:
  explicit PendingFile(std::string path);
  ~PendingFile();
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void finish();

 private:
  void keep_name() const;

  std::string path_, temporary_;
  int descriptor_ = -1;
  bool exists_ = false;  // the temporary file
};

// The same of pieces in memory.
void write_file(const std::string& path, std::span<const std::span<const std::byte>> pieces);

}  // namespace einc
