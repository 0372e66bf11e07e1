// SPDX-License-Identifier: Apache-2.0
// What einc reads and writes: regular files alone; no output replaces an input or another output.
#include <sys/stat.h>

#include "tests/golden/boundary/place.h"

namespace einc::test {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kProgram = R"(import "lib.ein"
dim n = 4
input x: f32[n]
param w: f32[n] ~ ones
output y = twice(x * w)
output loss = mean((x * w)^2)
minimize loss using sgd(lr = 0.1)
)";
constexpr std::string_view kLibrary = "fn twice(x: [n]) { return x + x }\n";

// Everything that the commands of these tests read.
class Files : public Place {
 public:
  Files() {
    write("lib.ein", kLibrary);
    write("m.ein", kProgram);
    write("x.npy", npy_of_floats({1, 2, 3, 4}));
    write("rows.npy", npy_of_floats({1, 2, 3, 4, 5, 6, 7, 8}, 8));
    write("letter.txt", "dear reader");
    write("w.names", "w -> w\n");
    REQUIRE(run_einc(train({"--save=" + at("w.safetensors"), "--log=" + at("run.jsonl")})).status == 0);
    REQUIRE(run_einc({"tokenize", at("letter.txt"), "-o", at("t.bin"), "--kind=chars"}).status == 0);
  }
  std::vector<std::string> train(const std::vector<std::string>& more) const {
    return with({"train", at("m.ein"), "--data", "x=" + at("rows.npy"), "--steps=2"}, more);
  }
  std::vector<std::string> run(const std::vector<std::string>& more) const {
    return with({"run", at("m.ein"), "--input", "x=" + at("x.npy")}, more);
  }
  std::string fifo(const std::string& name) const {
    REQUIRE(mkfifo(at(name).c_str(), 0600) == 0);
    return at(name);
  }
  std::vector<std::pair<std::string, std::string>> contents() const {
    std::vector<std::pair<std::string, std::string>> all;
    for (const std::string& name : names())
      if (fs::is_regular_file(at(name))) all.emplace_back(name, read(name));
    return all;
  }

 private:
  static std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

}  // namespace

TEST_CASE("an output that names an input, or another output, is refused before any work") {
  const Files files;
  const auto at = [&](const char* name) { return files.at(name); };
  fs::create_symlink("m.ein", at("link.ein"));
  fs::create_hard_link(at("rows.npy"), at("hard.npy"));
  fs::create_directory(at("folder"));
  const std::string roundabout = files.at("folder/../m.ein");
  const std::vector<std::vector<std::string>> commands{
      files.train({"--save=" + at("m.ein")}),
      files.train({"--save=" + roundabout}),
      files.train({"--save=" + at("link.ein")}),
      files.train({"--save=" + at("lib.ein")}),
      files.train({"--save=" + at("hard.npy")}),
      files.train({"--log=" + at("m.ein")}),
      files.train({"--record-batches=" + at("rows.npy")}),
      files.train({"--save=" + at("new"), "--log=" + at("folder/../new")}),
      files.train({"--weights=" + at("w.safetensors"), "--save=" + at("w.safetensors")}),
      files.train({"--val=x=" + at("x.npy"), "--save=" + at("x.npy")}),
      files.run({"--output=y=" + at("x.npy")}),
      files.run({"--weights=" + at("w.safetensors"), "--output=y=" + at("w.safetensors")}),
      files.run({"--output=y=" + at("new.npz"), "--output=loss=" + at("folder/../new.npz")}),
      {"tokenize", at("letter.txt"), "-o", at("letter.txt")},
      {"tokenize", at("letter.txt"), "--vocab", at("chars.json"), "-o", at("chars.json")},
      {"tokenize", at("chars.json"), "--kind=chars", "-o", at("new.bin")},
      {"detokenize", at("t.bin"), "--vocab", at("chars.json"), "-o", at("t.bin")},
      {at("m.ein"), "--emit=obj", "-o", at("m.ein")},
      {"bench", at("m.ein"), "--trace", at("m.ein")},
  };
  const auto before = files.contents();
  for (const std::vector<std::string>& command : commands) {
    CAPTURE(command.back());
    const Ran ran = run_einc(command);
    CHECK(ran.status == 2);
    CHECK(ran.output.empty());
    CHECK_FALSE(ran.errors.empty());
    CHECK(files.contents() == before);
  }
  // Reading on from one's own outputs is as it was: a log that is continued, arrays of one file.
  CHECK(run_einc(files.train({"--log=" + at("run.jsonl")})).status == 0);
  CHECK(run_einc(files.run({"--output=y=" + at("both.npz"), "--output=loss=" + at("both.npz")})).status == 0);
}

TEST_CASE("an output neither replaces nor waits for what is no regular file") {
  const Files files;
  const std::string fifo = files.fifo("fifo");
  fs::create_symlink("fifo", files.at("to_fifo"));
  fs::create_symlink("nowhere/file", files.at("to_nothing"));
  fs::create_directory(files.at("folder.npy"));
  for (const char* name : {"fifo", "to_fifo", "to_nothing", "folder.npy", "missing/w"}) {
    CAPTURE(name);
    const std::string path = files.at(name);
    const std::vector<std::vector<std::string>> commands{
        files.train({"--save=" + path}),
        files.train({"--log=" + path}),
        {"tokenize", files.at("letter.txt"), "-o", path},
        {"detokenize", files.at("t.bin"), "--vocab", files.at("chars.json"), "-o", path},
        {"bench", files.at("m.ein"), "--steps=1", "--trace", path},
    };
    for (const std::vector<std::string>& command : commands) {
      CAPTURE(command.front());
      const Ran ran = run_einc(command);
      CHECK(ran.status == 4);
      CHECK(ran.output.empty());
      CHECK(ran.errors.find("cannot write") != std::string::npos);
    }
  }
  CHECK(fs::is_fifo(fifo));
}

TEST_CASE("an output that is a link stays one, and a file keeps its permissions") {
  const Files files;
  files.write("there.safetensors", "old");
  fs::permissions(files.at("there.safetensors"), fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("there.safetensors", files.at("link.safetensors"));
  REQUIRE(run_einc(files.train({"--save=" + files.at("link.safetensors")})).status == 0);
  CHECK(fs::is_symlink(files.at("link.safetensors")));
  CHECK(files.read("there.safetensors") == files.read("w.safetensors"));
  CHECK(fs::status(files.at("there.safetensors")).permissions() == (fs::perms::owner_read | fs::perms::owner_write));

  files.write("untidy.ein", "dim   n=4\n");
  fs::permissions(files.at("untidy.ein"), fs::perms::owner_all);
  REQUIRE(run_einc({"fmt", files.at("untidy.ein")}).status == 0);
  CHECK(files.read("untidy.ein") == "dim n = 4\n");
  CHECK(fs::status(files.at("untidy.ein")).permissions() == fs::perms::owner_all);
}

TEST_CASE("only regular files are read: a pipe is an error at once") {
  const Files files;
  const std::string fifo = files.fifo("fifo.npy"), source = files.fifo("fifo.ein");
  files.write("imports.ein", "import \"fifo.ein\"\n" + std::string(kProgram));
  const std::vector<std::vector<std::string>> commands{
      {source, "--report"},
      {source, "--emit=ast"},
      {"fmt", source},
      {"gradcheck", source},
      {files.at("m.ein"), "--report", "--device=" + fifo},
      {"run", files.at("m.ein"), "--input", "x=" + fifo},
      files.run({"--param=w=" + fifo}),
      files.run({"--weights=" + fifo}),
      files.run({"--weights=" + files.at("w.safetensors"), "--rename=" + fifo}),
      {"train", files.at("m.ein"), "--data", "x=" + fifo, "--steps=1"},
      files.train({"--weights=" + fifo}),
      {"tokenize", fifo, "-o", files.at("new.bin")},
      {"tokenize", files.at("letter.txt"), "--vocab", fifo, "-o", files.at("new.bin")},
      {"detokenize", fifo},
      {"plot", fifo, "-o", files.at("new.svg")},
      {files.at("imports.ein"), "--report"},
      {"/dev/zero", "--report"},
  };
  for (const std::vector<std::string>& command : commands) {
    CAPTURE(command.back());
    const Ran ran = run_einc(command);
    const bool imports = command.front() == files.at("imports.ein"), device = command.back() == "--device=" + fifo;
    CHECK(ran.status == (imports ? 1 : device ? 2 : 4));
    CHECK(ran.output.empty());
    CHECK_FALSE(ran.errors.empty());
  }
}

}  // namespace einc::test
