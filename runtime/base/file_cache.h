// SPDX-License-Identifier: Apache-2.0
// A folder of results that are costly to make again, keyed by text that says everything they depend on. An entry that is
// missing, damaged or belongs to another key is not found; a folder that cannot be written stores nothing. Several
// processes and threads may use one folder: entries appear whole or not at all.
//
// What is loaded is run. So the folder and the entries must belong to this user and be writable by nobody else, entries are regular files
// of a size that the cache can have written, sealed by SHA-256 over key and content; anything else is as if it were not there. Nothing
// but the cache's own files is ever replaced or removed.
#pragma once
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace einc {

class FileCache {
 public:
  static constexpr uint64_t kDefaultBytes = uint64_t{256} << 20;

  // An empty folder turns the cache off.
  explicit FileCache(std::filesystem::path folder, uint64_t max_bytes = kDefaultBytes);

  // $XDG_CACHE_HOME/einc, else $HOME/.cache/einc, else empty.
  static std::filesystem::path default_folder();

  // Who wants to know, at most once in a process, that something was passed over because others may have written it.
  static void warn_by(void (*print)(const std::string& warning));

  std::optional<std::string> load(std::string_view key) const;

  // When all entries together pass max_bytes, the least recently used go.
  void store(std::string_view key, std::string_view content);

 private:
  std::string path_of(std::string_view name) const { return (folder_ / name).string(); }
  void make_room(int folder);

  std::filesystem::path folder_;
  uint64_t max_bytes_;
  std::mutex mutex_;
  std::optional<uint64_t> held_bytes_;  // counted at the first store
};

// Nobody but this user, and who may do anything, can have written it.
bool is_own(const struct stat& status);

}  // namespace einc
