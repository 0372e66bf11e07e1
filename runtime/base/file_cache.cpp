#include "runtime/base/file_cache.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

#include "runtime/base/hash.h"

namespace einc {
namespace {

namespace fs = std::filesystem;

// In front of key and content, which follow each other.
struct Header {
  char magic[8];
  uint64_t key_bytes, content_bytes, checksum;
};
constexpr char kMagic[8] = {'e', 'i', 'n', 'c', '-', 'o', 'b', '1'};

fs::path absolute_variable(const char* name) {
  const char* value = std::getenv(name);
  fs::path path = value == nullptr ? "" : value;
  return path.is_absolute() ? path : fs::path();
}

std::optional<std::string> read_whole(const fs::path& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) return std::nullopt;
  std::string bytes(static_cast<size_t>(std::max<std::streamoff>(in.tellg(), 0)), '\0');
  in.seekg(0);
  if (!in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) return std::nullopt;
  return bytes;
}

bool write_whole(const fs::path& path, std::initializer_list<std::string_view> parts) {
  std::ofstream out(path, std::ios::binary);
  for (const std::string_view part : parts) out.write(part.data(), static_cast<std::streamsize>(part.size()));
  out.close();
  return out.good();
}

struct Entry {
  fs::path path;
  fs::file_time_type used;
  uint64_t bytes;
};

std::vector<Entry> entries_of(const fs::path& folder) {
  std::vector<Entry> entries;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;
    Entry entry{it->path(), it->last_write_time(gone), 0};
    if (!gone) entry.bytes = it->file_size(gone);
    if (!gone) entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace

FileCache::FileCache(fs::path folder, uint64_t max_bytes) : folder_(std::move(folder)), max_bytes_(max_bytes) {}

fs::path FileCache::default_folder() {
  if (const fs::path cache = absolute_variable("XDG_CACHE_HOME"); !cache.empty()) return cache / "einc";
  if (const fs::path home = absolute_variable("HOME"); !home.empty()) return home / ".cache" / "einc";
  return {};
}

fs::path FileCache::path_of(std::string_view key) const { return folder_ / fmt::format("{:016x}", fnv1a(key)); }

std::optional<std::string> FileCache::load(std::string_view key) const {
  if (folder_.empty()) return std::nullopt;
  const fs::path path = path_of(key);
  const std::optional<std::string> bytes = read_whole(path);
  Header header;
  if (!bytes || bytes->size() < sizeof header) return std::nullopt;
  std::memcpy(&header, bytes->data(), sizeof header);
  const std::string_view rest = std::string_view(*bytes).substr(sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 || header.key_bytes > rest.size() ||
      header.content_bytes != rest.size() - header.key_bytes || rest.substr(0, header.key_bytes) != key || header.checksum != fnv1a(rest))
    return std::nullopt;
  std::error_code ignored;
  fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
  return std::string(rest.substr(header.key_bytes));
}

void FileCache::store(std::string_view key, std::string_view content) {
  if (folder_.empty()) return;
  std::error_code error;
  if (fs::create_directories(folder_, error)) fs::permissions(folder_, fs::perms::owner_all, error);
  static std::atomic<uint64_t> counter{0};
  const fs::path path = path_of(key), draft = folder_ / fmt::format("draft-{}-{}", getpid(), counter++);
  const std::string body = std::string(key) + std::string(content);
  Header header{{}, key.size(), content.size(), fnv1a(body)};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  if (write_whole(draft, {{reinterpret_cast<const char*>(&header), sizeof header}, body})) fs::rename(draft, path, error);
  fs::remove(draft, error);
  const std::lock_guard lock(mutex_);
  if (held_bytes_) *held_bytes_ += sizeof header + body.size();
  if (!held_bytes_ || *held_bytes_ > max_bytes_) make_room();
}

void FileCache::make_room() {
  std::vector<Entry> entries = entries_of(folder_);
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  uint64_t held = 0;
  for (const Entry& entry : entries) held += entry.bytes;
  // A quarter below the bound, so that the folder is not read anew for every entry.
  const uint64_t goal = held > max_bytes_ ? max_bytes_ / 4 * 3 : max_bytes_;
  for (const Entry& entry : entries) {
    if (held <= goal) break;
    std::error_code ignored;
    if (fs::remove(entry.path, ignored)) held -= entry.bytes;
  }
  held_bytes_ = held;
}

}  // namespace einc
