// SPDX-License-Identifier: Apache-2.0
// The cache of compiled code: what others may have written is not run, what is no entry neither waits nor fills memory, and nothing of
// somebody else's is removed. Each row does something to the entry of a program whose result is known.
#include <sys/stat.h>

#include <functional>

#include "tests/golden/boundary/place.h"

namespace einc::test {
namespace {

namespace fs = std::filesystem;

class Cached : public Place {
 public:
  Cached() {
    write("m.ein", "input x: f32[4]\noutput y = x * 2 + 1\n");
    write("other.ein", "input x: f32[4]\noutput y = x * 3 + 1\n");
    write("x.npy", npy_of_floats({1, 2, 3, 4}));
    setenv("XDG_CACHE_HOME", at("cache").c_str(), 1);
  }
  Ran run(const char* program = "m.ein") const {
    const Ran ran = run_einc({"run", at(program), "--input", "x=" + at("x.npy")});
    CHECK_MESSAGE(ran.status == 0, ran.errors);
    return ran;
  }
  // Compiles; the file that holds the code.
  std::string entry(const char* program = "m.ein") const {
    const auto before = fs::exists(folder()) ? names("cache/einc") : std::vector<std::string>{};
    run(program);
    for (const std::string& name : names("cache/einc"))
      if (!std::binary_search(before.begin(), before.end(), name)) return folder() + "/" + name;
    FAIL("nothing was stored");
    return "";
  }
  std::string folder() const { return at("cache/einc"); }
};

constexpr const char* kResult = "y: f32[4] 3. 5. 7. 9.\n";

}  // namespace

TEST_CASE("entries and folders that others may have written are compiled anew, with one warning") {
  struct Row {
    const char* what;
    std::function<void(const Cached&, const std::string& entry)> change;
    const char* warning;  // in it
  };
  const auto swap = [](const Cached& cached, const std::string& entry) {  // another program's code, in the place of this one's
    const std::string other = cached.entry("other.ein");
    fs::remove(entry);
    fs::copy_file(other, entry);
  };
  std::vector<Row> rows{
      {"nothing", [](const Cached&, const std::string&) {}, nullptr},
      {"writable by all", [](const Cached&, const std::string& entry) { chmod(entry.c_str(), 0666); },
       "belongs to another user, or others"},
      {"writable by the group", [](const Cached&, const std::string& entry) { chmod(entry.c_str(), 0660); }, "or others may write"},
      {"the folder writable by all", [](const Cached& c, const std::string&) { chmod(c.folder().c_str(), 0777); }, "or others may write"},
      {"a pipe",
       [](const Cached&, const std::string& entry) {
         fs::remove(entry);
         mkfifo(entry.c_str(), 0600);
       },
       "it is no regular file"},
      {"a folder",
       [](const Cached&, const std::string& entry) {
         fs::remove(entry);
         fs::create_directory(entry);
       },
       "it is no regular file"},
      {"a link",
       [](const Cached& c, const std::string& entry) {
         fs::rename(entry, c.at("elsewhere"));
         fs::create_symlink(c.at("elsewhere"), entry);
       },
       "it is a link"},
      {"a sparse file of a tebibyte", [](const Cached&, const std::string& entry) { fs::resize_file(entry, uintmax_t{1} << 40); }, nullptr},
      {"cut off", [](const Cached&, const std::string& entry) { fs::resize_file(entry, fs::file_size(entry) / 2); }, nullptr},
      {"another program's code", swap, nullptr},
      {"one changed bit",
       [](const Cached&, const std::string& entry) {
         std::fstream file(entry, std::ios::in | std::ios::out | std::ios::binary);
         file.seekg(-100, std::ios::end);
         const char changed = static_cast<char>(file.get() ^ 1);
         file.seekp(-100, std::ios::end);
         file.put(changed);
       },
       nullptr},
  };
  if (geteuid() == 0) {
    rows.push_back({"another user's entry", [](const Cached&, const std::string& entry) { CHECK(chown(entry.c_str(), 65534, 65534) == 0); },
                    "belongs to another user"});
    rows.push_back({"another user's folder",
                    [](const Cached& c, const std::string&) { CHECK(chown(c.folder().c_str(), 65534, 65534) == 0); },
                    "belongs to another user"});
  }
  for (const Row& row : rows) {
    CAPTURE(row.what);
    const Cached cached;
    const std::string entry = cached.entry();
    row.change(cached, entry);
    const Ran ran = cached.run();
    CHECK(ran.output == kResult);
    CHECK(ran.peak_kib < int64_t{256} * 1024 * kMemoryFactor);
    if (row.warning == nullptr) {
      CHECK(ran.errors.empty());
    } else {
      CHECK(ran.errors.starts_with("einc: warning: "));
      CHECK_MESSAGE(ran.errors.find(row.warning) != std::string::npos, ran.errors);
      CHECK(std::count(ran.errors.begin(), ran.errors.end(), '\n') == 1);
    }
  }
}

TEST_CASE("what is not einc's in the folder stays, however full it is") {
  const Cached cached;
  cached.entry();
  cached.write("cache/einc/thesis.doc", "years of work");
  cached.write("cache/einc/0123456789abcdef", "not what einc writes");
  fs::resize_file(cached.write("cache/einc/backup", ""), uintmax_t{300} << 20);
  cached.run("other.ein");
  CHECK(cached.read("cache/einc/thesis.doc") == "years of work");
  CHECK(cached.read("cache/einc/0123456789abcdef") == "not what einc writes");
  CHECK(fs::exists(cached.at("cache/einc/backup")));
  CHECK(cached.names("cache/einc").size() == 5);
}

TEST_CASE("a cache that cannot be written is no error, and a full file size limit no signal") {
  const Cached cached;
  const Ran short_files = run_einc({"run", cached.at("m.ein"), "--input", "x=" + cached.at("x.npy")}, {.file_bytes = 1024});
  CHECK(short_files.status == 0);
  CHECK(short_files.output == kResult);
  CHECK(short_files.errors.empty());
  CHECK(cached.names("cache/einc").empty());
}

}  // namespace einc::test
