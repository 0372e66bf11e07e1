// SPDX-License-Identifier: Apache-2.0
// The converter reads one temporary file and writes another, in a folder of their own: it is started without a shell, and what it says goes
// to standard error.
#include "compiler/driver/svg_to_png.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/base/failure.h"

namespace einc {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConverter = "rsvg-convert";

[[noreturn]] void fail(const std::string& message) { throw RuntimeFailure(FailureKind::resource, message); }

class TemporaryFolder {
 public:
  TemporaryFolder() : path_((fs::temp_directory_path() / "einc_plot_XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) fail(fmt::format("cannot make a temporary folder: {}", std::strerror(errno)));
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string at(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace

bool has_svg_converter() {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (!folder.empty() && access((folder + "/" + kConverter).c_str(), X_OK) == 0) return true;
  return false;
}

std::string svg_to_png(const std::string& svg) {
  const TemporaryFolder folder;
  const std::string from = folder.at("plot.svg"), to = folder.at("plot.png");
  if (!(std::ofstream(from, std::ios::binary) << svg).flush()) fail(fmt::format("cannot write {}", from));
  std::string words[] = {kConverter, "--zoom=2", "--background-color=white", "-o", to, from};
  char* arguments[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(), words[4].data(), words[5].data(), nullptr};
  pid_t child = 0;
  if (const int error = posix_spawnp(&child, kConverter, nullptr, nullptr, arguments, environ); error != 0)
    fail(fmt::format("cannot start {}: {}", kConverter, std::strerror(error)));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  std::ostringstream png;
  png << std::ifstream(to, std::ios::binary).rdbuf();
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || !png.str().starts_with("\x89PNG"))
    fail(fmt::format("{} made no picture", kConverter));
  return png.str();
}

}  // namespace einc
