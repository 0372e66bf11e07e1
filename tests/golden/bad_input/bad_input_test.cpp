// SPDX-License-Identifier: Apache-2.0
// Hostile input through the real binary: every row ends by itself, quickly and in little memory, with a code and a place on
// standard error, exit status 1 and nothing on standard output. Small programs lie in programs/, their first line saying
// what must come; large ones and those that are no text are generated. What row stands for what: the case's name.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "compiler/elaborate/elaborate.h"
#include "dsl/source.h"
#include "dsl/token.h"
#include "tests/golden/bad_input/hostile_texts.h"
#include "tests/support/run_einc.h"

namespace einc::test {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / fmt::format("einc_bad_input_{}", getpid())) { fs::create_directories(path_); }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string write(const std::string& name, std::string_view text) const {
    const fs::path path = path_ / name;
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }
  fs::path path() const { return path_; }

 private:
  fs::path path_;
};

// "E0302 4:28" of the first message; warnings are passed over.
std::string first_error(const std::string& text) {
  const size_t at = text.find("error[");
  if (at == std::string::npos) return "";
  const std::string code = text.substr(at + 6, 5);
  const size_t arrow = text.find("--> ", at), end = text.find('\n', arrow);
  if (arrow == std::string::npos || text.find('\n', at) + 1 < text.rfind(' ', arrow) - 8) return code;
  const std::string place = text.substr(arrow, end - arrow);
  const size_t column = place.rfind(':'), line = place.rfind(':', column - 1);
  return code + " " + place.substr(line + 1);
}

bool is_printable(const std::string& text) {
  return std::none_of(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7f; });
}

constexpr int kAllowedMebibytes = 256;

void check_use(const Ran& ran, int mebibytes) {
  CHECK(ran.signal == 0);
  CHECK(ran.cpu_seconds < 2.0 * kSlowdown);
  CHECK(ran.peak_kib < int64_t{1024} * mebibytes * kMemoryFactor);
  CHECK(ran.errors.size() <= (size_t{64} << 10));
  CHECK(is_printable(ran.errors));
}

void check_rejected(const Ran& ran, const std::string& error, int mebibytes = kAllowedMebibytes) {
  INFO(ran.errors.substr(0, 2000));
  check_use(ran, mebibytes);
  CHECK(ran.status == 1);
  CHECK(ran.output.empty());
  CHECK(first_error(ran.errors) == error);
}

void check_accepted(const Ran& ran) {
  INFO(ran.errors.substr(0, 2000));
  check_use(ran, kAllowedMebibytes);
  CHECK(ran.status == 0);
  CHECK(!ran.output.empty());
}

void check_expected(const Ran& ran, const std::string& expected) {
  if (expected == "accepted")
    check_accepted(ran);
  else
    check_rejected(ran, expected);
}

}  // namespace

TEST_CASE("small programs") {
  int rows = 0;
  for (const auto& entry : fs::directory_iterator("tests/golden/bad_input/programs")) {
    const std::string path = entry.path().string();
    CAPTURE(path);
    std::string first;
    std::getline(std::ifstream(path) >> std::ws, first);
    REQUIRE(first.starts_with("# expect "));
    std::string expected = first.substr(9);
    if (const size_t at = expected.find(" at "); at != std::string::npos) expected.replace(at, 4, " ");
    check_expected(run_einc({path, "--report"}), expected);
    ++rows;
  }
  CHECK(rows > 80);
}

TEST_CASE("generated programs") {
  const Folder folder;
  for (const HostileText& row : hostile_texts()) {
    CAPTURE(row.name);
    const std::string path = folder.write(row.name + ".ein", row.make());
    check_rejected(run_einc({path, "--report"}), row.error, row.mebibytes);
  }
}

TEST_CASE("reports of programs of many statements") {
  const Folder folder;
  for (const LongProgram& program : long_programs()) {
    CAPTURE(program.name);
    const Ran ran = run_einc({folder.write("long.ein", program.make()), "--report"});
    INFO(ran.errors.substr(0, 2000));
    CHECK(ran.status == 0);
    CHECK(!ran.output.empty());
    CHECK(ran.cpu_seconds < 5.0 * kSlowdown);
    CHECK(ran.peak_kib < int64_t{1024} * 1024 * kMemoryFactor);
  }
}

TEST_CASE("deep nesting on a stack of 256 KiB") {
  const Folder folder;
  for (const HostileText& row : hostile_texts()) {
    if (!row.name.starts_with("S11")) continue;
    CAPTURE(row.name);
    const std::string path = folder.write(row.name + ".ein", row.make());
    check_rejected(run_einc({path, "--report"}, Stack::small), row.error);
  }
  const std::string deepest = folder.write("deepest.ein", nested("(", ")", 256));
  check_accepted(run_einc({deepest, "--report"}, Stack::small));
}

TEST_CASE("limits hold at the limit and not above") {
  const Folder folder;
  for (const Limit& limit : limits()) {
    CAPTURE(limit.name);
    check_accepted(run_einc({folder.write("at.ein", limit.make(limit.value)), "--report"}));
    check_rejected(run_einc({folder.write("above.ein", limit.make(limit.value + 1)), "--report"}), limit.error);
  }
}

TEST_CASE("a file of a tebibyte is refused unread") {
  const Folder folder;
  const std::string path = folder.write("sparse.ein", "");
  fs::resize_file(path, uintmax_t{1} << 40);
  check_rejected(run_einc({path}), "E0002 1:1", 128);
}

TEST_CASE("imports that are many, together too large, or loop") {
  const Folder folder;
  const std::string rest = "dim n = 4\ninput x: [n]\noutput y = x\n";
  const auto imports = [&](const std::string& text) {
    folder.write("part", text);
    std::string main;
    for (int i = 0; i < 200; ++i) {
      const fs::path link = folder.path() / fmt::format("part{}.ein", i);
      if (!fs::exists(fs::symlink_status(link))) fs::create_symlink("part", link);
      main += fmt::format("import \"part{}.ein\"\n", i);
    }
    return folder.write("main.ein", main + rest);
  };
  check_rejected(run_einc({imports("fn f(x) { return x }\n# " + std::string(size_t{5} << 20, 'a'))}), "E0912 4:9");
  check_rejected(run_einc({imports("fn f(x) {\n" + repeated("a = x\n", 100'000) + "return x }\n")}), "E0912 3:9");
  check_accepted(run_einc({imports("import \"main.ein\"\nfn f(x) { return x }\n"), "--report"}));  // a circle
}

TEST_CASE("files that are not there, and names that are strange") {
  const Folder folder;
  const std::string good = "dim n = 4\ninput x: [n]\noutput y = x\n", bad = "output y = q\n";
  folder.write("model.ein", good);
  const Ran missing = run_einc({(folder.path() / "modle.ein").string()});
  CHECK(missing.status == 4);
  CHECK(missing.errors.find("did you mean") != std::string::npos);
  CHECK(run_einc({folder.path().string()}).status == 4);
  for (const std::string name : {"new\nline.ein", "esc\x1b[31m.ein", "not\xffutf8.ein", "\xe2\x80\xae.ein"}) {
    CAPTURE(name);
    const Ran ran = run_einc({folder.write(name, bad), "--report"});
    check_rejected(ran, "E0401 1:12");
    check_accepted(run_einc({folder.write(name, good), "--report"}));
  }
  const Ran dashed = run_einc({"--", "-x.ein"});
  CHECK(dashed.status == 4);
  CHECK(run_einc({"-x.ein"}).status == 2);
  const Ran long_name = run_einc({std::string(100'000, 'a')});
  CHECK(long_name.status == 4);
  CHECK(is_printable(long_name.errors));
}

TEST_CASE("dims and seeds from the command line") {
  const std::string program = "tests/golden/bad_input/programs/T10_free_dim.ein";
  for (const char* value : {"n=0", "n=-1", "n=0.5", "n=9223372036854775808", "n=", "=3", "n", "n=1e3", "n=0x10"}) {
    CAPTURE(value);
    const Ran ran = run_einc({program, "-D", value, "--report"});
    CHECK(ran.status == 2);
    CHECK(ran.output.empty());
    CHECK(is_printable(ran.errors));
  }
  check_rejected(run_einc({program, "-D", "m=3", "--report"}), "E0801");
  check_accepted(run_einc({program, "-D", "n=1", "--report"}));
  for (const char* seed : {"0", "18446744073709551615"})
    CHECK(run_einc({"run", "tests/golden/bad_input/programs/draws.ein", "--target=reference", "--seed", seed}).status == 0);
  for (const char* seed : {"-1", "abc", "18446744073709551616"}) {
    CAPTURE(seed);
    CHECK(run_einc({"run", "tests/golden/bad_input/programs/draws.ein", "--seed", seed}).status == 2);
  }
}

}  // namespace einc::test
