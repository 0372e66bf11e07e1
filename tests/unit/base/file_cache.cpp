// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/file_cache.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <fstream>
#include <thread>
#include <vector>

using namespace einc;

namespace {

namespace fs = std::filesystem;

struct Folder {
  fs::path path = fs::temp_directory_path() / ("einc-cache-" + std::to_string(getpid()));
  Folder() { fs::remove_all(path); }
  ~Folder() { fs::remove_all(path); }

  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(path)) found.push_back(entry.path());
    return found;
  }
};

void age(const fs::path& file, int minutes) { fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::minutes(minutes)); }

}  // namespace

TEST_CASE("file cache: what is stored is found, by this and by later processes") {
  const Folder folder;
  const std::string content("\0object\xff", 8);
  FileCache cache(folder.path);
  CHECK_FALSE(cache.load("key"));
  cache.store("key", content);
  cache.store("other", "");
  CHECK(cache.load("key") == content);
  CHECK(FileCache(folder.path).load("key") == content);
  CHECK(cache.load("other") == "");
  CHECK_FALSE(cache.load("ke"));
  cache.store("key", "new");
  CHECK(cache.load("key") == "new");
  CHECK(folder.files().size() == 2);
}

TEST_CASE("file cache: any change to an entry's bytes makes it unknown, and storing mends it") {
  const Folder folder;
  FileCache cache(folder.path);
  cache.store("key", "content");
  const fs::path file = folder.files().at(0);
  std::string bytes(fs::file_size(file), '\0');
  std::ifstream(file, std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  const auto write = [&](const std::string& text) { std::ofstream(file, std::ios::binary) << text; };
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] ^= 0x10;
    write(damaged);
    CHECK_FALSE(cache.load("key"));
    write(bytes.substr(0, i));
    CHECK_FALSE(cache.load("key"));
  }
  write(bytes + "x");
  CHECK_FALSE(cache.load("key"));
  cache.store("key", "content");
  CHECK(cache.load("key") == "content");
}

TEST_CASE("file cache: the least recently used entries make room") {
  const Folder folder;
  const std::string content(1000, 'x');
  FileCache cache(folder.path, 5000);
  for (const char* key : {"a", "b", "c", "d"}) {
    cache.store(key, content);
    for (const fs::path& file : folder.files()) age(file, 10);
  }
  REQUIRE(cache.load("a"));
  cache.store("e", content);
  CHECK(cache.load("a"));
  CHECK(cache.load("e"));
  uint64_t held = 0;
  for (const fs::path& file : folder.files()) held += fs::file_size(file);
  CHECK(held <= 5000);
  CHECK(folder.files().size() >= 3);
}

TEST_CASE("file cache: a folder that cannot be used stores nothing and does no harm") {
  const Folder folder;
  std::ofstream(folder.path) << "a file, not a folder";
  FileCache cache(folder.path);
  cache.store("key", "content");
  CHECK_FALSE(cache.load("key"));
  FileCache none{fs::path()};
  none.store("key", "content");
  CHECK_FALSE(none.load("key"));
}

TEST_CASE("file cache: only entries and drafts of its own make room") {
  const Folder folder;
  const std::string content(1000, 'x');
  FileCache cache(folder.path, 3000);
  cache.store("a", content);
  for (const char* name : {"letter.txt", "0123456789abcdef", "draft-1-1-1", "draft-x"})
    std::ofstream(folder.path / name) << std::string(5000, '?');
  std::ofstream(folder.path / "draft-2-2-2") << "einc-ob2" << std::string(5000, '?');  // of a process that was killed
  for (const fs::path& file : folder.files()) age(file, 10);
  age(folder.path / "draft-2-2-2", 20);
  FileCache other(folder.path, 3000);
  other.store("b", content);
  CHECK(other.load("a"));
  CHECK(other.load("b"));
  CHECK(fs::exists(folder.path / "letter.txt"));
  CHECK(fs::exists(folder.path / "0123456789abcdef"));
  CHECK(fs::exists(folder.path / "draft-1-1-1"));
  CHECK(fs::exists(folder.path / "draft-x"));
  CHECK_FALSE(fs::exists(folder.path / "draft-2-2-2"));
}

TEST_CASE("file cache: a folder or entry that others may write to is not read, and not written") {
  const Folder folder;
  FileCache cache(folder.path);
  cache.store("key", "content");
  const fs::path file = folder.files().at(0);
  fs::permissions(folder.path, fs::perms::all);
  CHECK_FALSE(cache.load("key"));
  cache.store("new", "content");
  CHECK(folder.files().size() == 1);
  fs::permissions(folder.path, fs::perms::owner_all);
  CHECK(cache.load("key") == "content");
  fs::permissions(file, fs::perms::others_write, fs::perm_options::add);
  CHECK_FALSE(cache.load("key"));
  cache.store("key", "another");  // nor is it einc's to replace
  CHECK_FALSE(cache.load("key"));
}

TEST_CASE("file cache: threads that write the same entries leave whole ones") {
  const Folder folder;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      FileCache cache(folder.path);
      for (int i = 0; i < 200; ++i) {
        const std::string key = "key" + std::to_string(i % 7), content(static_cast<size_t>(i % 7) * 1000, 'y');
        cache.store(key, content);
        if (cache.load(key) != content) std::abort();
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(folder.files().size() == 7);
}

TEST_CASE("file cache: where the folder is") {
  const auto with = [](const char* cache, const char* home) {
    setenv("XDG_CACHE_HOME", cache, 1);
    setenv("HOME", home, 1);
    return FileCache::default_folder();
  };
  CHECK(with("/x", "/h") == "/x/einc");
  CHECK(with("", "/h") == "/h/.cache/einc");
  CHECK(with("relative", "/h") == "/h/.cache/einc");
  CHECK(with("", "") == "");
}
