// SPDX-License-Identifier: Apache-2.0
// A file system that counts its calls and lets the one that is asked for go wrong.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/data/file_system.h"

namespace einc::test {

// Without the waits for a disk: no test can cut the power.
class QuickFiles : public FileSystem {
 public:
  int sync(int) override { return 0; }
};

enum class Fault : uint8_t {
  none,
  input_output,     // the call fails once
  disk_full,        // it and every later call that takes room fail
  short_write,      // it writes a part, and no more than that is wrong
  short_then_full,  // it writes a part, then the disk is full
  killed_before,    // the process ends at once
  killed_amid,      // after half of a write, or after the call
};

class FaultyFiles : public QuickFiles {
 public:
  // Calls count from 0.
  FaultyFiles(Fault fault, size_t at) : fault_(fault), at_(at) {}
  size_t calls() const { return calls_; }

  int create_file(const std::string& path) override;
  ssize_t write(int file, std::span<const std::byte> bytes) override;
  int open_folder(const std::string& path) override;
  int sync(int descriptor) override;
  int close(int descriptor) override;
  int make_folder(const std::string& path) override;
  int make_link(const std::string& target, const std::string& path) override;
  int rename(const std::string& from, const std::string& to) override;
  int exchange(const std::string& one, const std::string& other) override;
  int remove(const std::string& path) override;

 private:
  enum class Room : uint8_t { none, needs };
  // Whether the call is to fail, with errno set.
  bool fails(Room room);
  int finish(int result);

  Fault fault_;
  size_t at_, calls_ = 0;
  bool full_ = false, here_ = false;
};

// Does what it is told and remembers what of it would not outlive a power cut, which cut() then brings about: contents that
// were not synced are gone; names that were made, changed or removed in a folder that was not synced afterwards are as before, or
// as they are now (`names`): a disk may do either.
enum class Names : uint8_t { as_before, as_now };
class VolatileFiles : public QuickFiles {
 public:
  // Removed files are kept in `trash`. After `calls` calls nothing is done any more: the power is off.
  VolatileFiles(std::string trash, size_t calls) : trash_(std::move(trash)), left_(calls) {}
  bool on() const { return on_; }
  void cut(Names names);

  int create_file(const std::string& path) override;
  ssize_t write(int file, std::span<const std::byte> bytes) override;
  int open_folder(const std::string& path) override;
  int sync(int descriptor) override;
  int close(int descriptor) override;
  int make_folder(const std::string& path) override;
  int make_link(const std::string& target, const std::string& path) override;
  int rename(const std::string& from, const std::string& to) override;
  int exchange(const std::string& one, const std::string& other) override;
  int remove(const std::string& path) override;

 private:
  struct Change {  // undone by renaming `now` to `before`, or by exchanging them
    std::string now, before;
    bool exchanged = false;
  };
  bool off();
  void moved(const std::string& from, const std::string& to);
  int discard(const std::string& path);
  int noted(int result, const Change& change);

  std::string trash_;
  size_t left_, removed_ = 0;
  bool on_ = true;
  std::map<int, std::string> open_;
  std::set<std::string> unsynced_;  // files whose content is not on the disk
  std::vector<Change> changes_;     // of names, that are not on the disk
};

}  // namespace einc::test
