// A folder of results that are costly to make again, keyed by text that says everything they depend on. An entry that is
// missing, damaged or belongs to another key is not found; a folder that cannot be written stores nothing. Several
// processes and threads may use one folder: entries appear whole or not at all.
#pragma once
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

  std::optional<std::string> load(std::string_view key) const;

  // When all entries together pass max_bytes, the least recently used go.
  void store(std::string_view key, std::string_view content);

 private:
  std::filesystem::path path_of(std::string_view key) const;
  void make_room();

  std::filesystem::path folder_;
  uint64_t max_bytes_;
  std::mutex mutex_;
  std::optional<uint64_t> held_bytes_;  // counted at the first store
};

}  // namespace einc
