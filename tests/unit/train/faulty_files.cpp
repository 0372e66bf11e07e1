// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/train/faulty_files.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace einc::test {

bool FaultyFiles::fails(Room room) {
  here_ = calls_++ == at_ && fault_ != Fault::none;
  if (here_ && fault_ == Fault::killed_before) ::_exit(9);
  if (here_ && fault_ == Fault::disk_full) full_ = true;
  if (here_ && fault_ == Fault::input_output) return errno = EIO, true;
  if (full_ && room == Room::needs) return errno = ENOSPC, true;
  return false;
}

int FaultyFiles::finish(int result) {
  if (here_ && fault_ == Fault::killed_amid) ::_exit(9);
  return result;
}

ssize_t FaultyFiles::write(int file, std::span<const std::byte> bytes) {
  if (fails(Room::needs)) return -1;
  if (here_ && fault_ != Fault::none) {
    const ssize_t taken = FileSystem::write(file, bytes.first((bytes.size() + 1) / 2));
    finish(0);
    full_ = fault_ == Fault::short_then_full;
    return taken;
  }
  return FileSystem::write(file, bytes);
}

int FaultyFiles::create_file(const std::string& path) { return fails(Room::needs) ? -1 : finish(FileSystem::create_file(path)); }
int FaultyFiles::open_folder(const std::string& path) { return fails(Room::none) ? -1 : finish(FileSystem::open_folder(path)); }
int FaultyFiles::sync(int descriptor) { return fails(Room::needs) ? -1 : finish(QuickFiles::sync(descriptor)); }
int FaultyFiles::close(int descriptor) {
  const bool wrong = fails(Room::none);
  const int result = FileSystem::close(descriptor);
  return wrong ? (errno = EIO, -1) : finish(result);
}
int FaultyFiles::make_folder(const std::string& path) { return fails(Room::needs) ? -1 : finish(FileSystem::make_folder(path)); }
int FaultyFiles::make_link(const std::string& target, const std::string& path) {
  return fails(Room::needs) ? -1 : finish(FileSystem::make_link(target, path));
}
int FaultyFiles::rename(const std::string& from, const std::string& to) {
  return fails(Room::needs) ? -1 : finish(FileSystem::rename(from, to));
}
int FaultyFiles::exchange(const std::string& one, const std::string& other) {
  return fails(Room::needs) ? -1 : finish(FileSystem::exchange(one, other));
}
int FaultyFiles::remove(const std::string& path) { return fails(Room::none) ? -1 : finish(FileSystem::remove(path)); }

bool VolatileFiles::off() {
  if (left_ == 0) on_ = false;
  if (!on_) return errno = EIO, true;
  --left_;
  return false;
}

// Files below a name that changes go along.
void VolatileFiles::moved(const std::string& from, const std::string& to) {
  std::set<std::string> names;
  for (const std::string& name : unsynced_) names.insert(name.starts_with(from + "/") ? to + name.substr(from.size()) : name);
  unsynced_ = std::move(names);
}

int VolatileFiles::noted(int result, const Change& change) {
  if (result == 0) changes_.push_back(change);
  return result;
}

int VolatileFiles::discard(const std::string& path) {
  const std::string kept = trash_ + "/" + std::to_string(removed_++);
  return noted(FileSystem::rename(path, kept), {kept, path});
}

int VolatileFiles::create_file(const std::string& path) {
  if (off()) return -1;
  const int file = FileSystem::create_file(path);
  open_[file] = path;
  unsynced_.insert(path);
  changes_.push_back({path, ""});
  return file;
}

ssize_t VolatileFiles::write(int file, std::span<const std::byte> bytes) {
  if (off()) return -1;
  unsynced_.insert(open_.at(file));
  return FileSystem::write(file, bytes);
}

int VolatileFiles::open_folder(const std::string& path) {
  if (off()) return -1;
  const int folder = FileSystem::open_folder(path);
  open_[folder] = path;
  return folder;
}

int VolatileFiles::sync(int descriptor) {
  if (off()) return -1;
  const std::string path = open_.at(descriptor);
  unsynced_.erase(path);
  const auto parent = [](const std::string& name) { return std::filesystem::path(name).parent_path().string(); };
  std::erase_if(changes_, [&](const Change& c) { return parent(c.now.starts_with(trash_) ? c.before : c.now) == path; });
  return QuickFiles::sync(descriptor);
}

int VolatileFiles::close(int descriptor) {
  open_.erase(descriptor);
  const int result = FileSystem::close(descriptor);
  return off() ? -1 : result;
}

int VolatileFiles::make_folder(const std::string& path) { return off() ? -1 : noted(FileSystem::make_folder(path), {path, ""}); }

int VolatileFiles::make_link(const std::string& target, const std::string& path) {
  return off() ? -1 : noted(FileSystem::make_link(target, path), {path, ""});
}

int VolatileFiles::rename(const std::string& from, const std::string& to) {
  if (off()) return -1;
  if (std::filesystem::exists(std::filesystem::symlink_status(to))) discard(to);
  moved(from, to);
  return noted(FileSystem::rename(from, to), {to, from});
}

int VolatileFiles::exchange(const std::string& one, const std::string& other) {
  return off() ? -1 : noted(FileSystem::exchange(one, other), {one, other, true});
}

int VolatileFiles::remove(const std::string& path) {
  if (off()) return -1;
  return discard(path);
}

void VolatileFiles::cut(Names names) {
  if (names == Names::as_before) {
    for (auto change = changes_.rbegin(); change != changes_.rend(); ++change) {
      if (change->exchanged) {
        FileSystem::exchange(change->now, change->before);
      } else if (change->before.empty()) {
        std::filesystem::remove_all(change->now);
      } else {
        FileSystem::rename(change->now, change->before);
        moved(change->now, change->before);
      }
    }
  }
  for (const std::string& file : unsynced_)
    if (std::filesystem::exists(file)) std::filesystem::resize_file(file, 0);
}

}  // namespace einc::test
