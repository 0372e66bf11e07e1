// SPDX-License-Identifier: Apache-2.0
// `import` reads regular files under the importing file's folder, or one that -I names, and shows nothing of any other.
#include "tests/golden/boundary/place.h"

namespace einc::test {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRest = "input x: f32[4]\noutput y = twice(x)\n", kImported = "fn twice(x) { return x + x }\n";

}  // namespace

TEST_CASE("imports from outside are refused unseen; -I allows a folder") {
  const Place place;
  for (const char* folder : {"program", "program/inner", "library", "secret"}) fs::create_directories(place.at(folder));
  const auto import = [&](const std::string& name) { return place.write("program/m.ein", fmt::format("import \"{}\"\n{}", name, kRest)); };
  place.write("program/lib.ein", kImported);
  place.write("program/inner/lib.ein", kImported);
  place.write("library/lib2.ein", kImported);
  place.write("secret/secret.txt", "password = hunter2 !!\n");
  fs::create_symlink("../secret/secret.txt", place.at("program/link.ein"));
  fs::create_directory_symlink("../secret", place.at("program/linked"));
  fs::create_symlink("inner/lib.ein", place.at("program/inside.ein"));

  for (const std::string& name : {std::string("lib.ein"), std::string("inner/lib.ein"), std::string("./inner/../lib.ein"),
                                  std::string("inside.ein"), place.at("program/lib.ein")}) {
    CAPTURE(name);
    const Ran ran = run_einc({import(name), "--report"});
    CHECK_MESSAGE(ran.status == 0, ran.errors);
  }
  for (const std::string& name :
       {std::string("../secret/secret.txt"), place.at("secret/secret.txt"), std::string("link.ein"), std::string("linked/secret.txt"),
        std::string("/etc/passwd"), std::string("../library/lib2.ein"), std::string("../secret/missing.txt")}) {
    CAPTURE(name);
    const Ran ran = run_einc({import(name), "--report"});
    CHECK(ran.status == 1);
    CHECK(ran.output.empty());
    CHECK_MESSAGE(ran.errors.find("error[E0610]: cannot import `") == 0, ran.errors);
    CHECK(ran.errors.find("it lies outside of this file's folder") != std::string::npos);
    CHECK(ran.errors.find("hunter2") == std::string::npos);
    CHECK(ran.errors.find("root:") == std::string::npos);
  }
  const std::string with = "-I" + place.at("library");
  CHECK(run_einc({import("../library/lib2.ein"), "--report", with}).status == 0);
  CHECK(run_einc({import("lib2.ein"), "--report", with}).status == 0);
  CHECK(run_einc({import("lib2.ein"), "--report"}).status == 1);
  CHECK(run_einc({import("link.ein"), "--report", with}).status == 1);
  for (const char* command : {"run", "train", "bench", "gradcheck", "sample"}) {
    CAPTURE(command);
    CHECK(run_einc({command, "--help"}).output.find("-I FOLDER") != std::string::npos);
  }
  // An imported file imports from its own folder, not from its importer's.
  place.write("program/inner/lib.ein", "import \"../lib.ein\"\n" + std::string(kImported));
  CHECK(run_einc({import("inner/lib.ein"), "--report"}).status == 1);
  CHECK(run_einc({import("inner/lib.ein"), "--report", "-I", place.at("program")}).status == 0);
}

}  // namespace einc::test
