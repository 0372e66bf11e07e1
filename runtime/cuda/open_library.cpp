// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/open_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

#include "runtime/base/failure.h"

namespace einc::cuda {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) entries.push_back(it->path());
  std::sort(entries.begin(), entries.end());
  return entries;
}

// PREFIX/lib/python3.x/{site,dist}-packages/nvidia/PART/lib: where pip puts NVIDIA's libraries.
void add_python(const fs::path& prefix, std::vector<fs::path>& folders) {
  for (const fs::path& python : entries_of(prefix / "lib")) {
    if (!python.filename().string().starts_with("python3")) continue;
    for (const char* packages : {"site-packages", "dist-packages"})
      for (const fs::path& part : entries_of(python / packages / "nvidia")) folders.push_back(part / "lib");
  }
}

std::vector<fs::path> toolkit_folders() {
  std::vector<fs::path> folders;
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* value = std::getenv(name)) folders.push_back(fs::path(value) / "lib64");
  folders.emplace_back("/usr/local/cuda/lib64");
  if (const char* environment = std::getenv("VIRTUAL_ENV")) add_python(environment, folders);
  add_python("/usr/local", folders);
  add_python("/usr", folders);
  return folders;
}

}  // namespace

OpenLibrary::OpenLibrary(const std::vector<std::string>& names, const std::string& origin) {
  std::vector<std::string> wrong;
  const auto open = [&](const std::string& path) {
    handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle_) {
      const char* error = dlerror();
      if (std::string_view(path).find('/') == std::string_view::npos || fs::exists(path)) wrong.emplace_back(error ? error : path);
    }
    name_ = path;
    return handle_ != nullptr;
  };
  const auto open_in = [&](const fs::path& folder) {
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& name) { return fs::exists(folder / name) && open(folder / name); });
  };
  if (const char* given = std::getenv("EINC_CUDA_PATH"); given && *given && open_in(given)) return;
  if (std::any_of(names.begin(), names.end(), open)) return;
  const std::vector<fs::path> folders = toolkit_folders();
  if (std::any_of(folders.begin(), folders.end(), open_in)) return;
  throw RuntimeFailure(FailureKind::resource, fmt::format("cannot open {}, which comes with {}: {}", names.front(), origin, wrong.front()));
}

void* OpenLibrary::function(const char* name) const {
  void* address = dlsym(handle_, name);
  if (!address) throw RuntimeFailure(FailureKind::resource, fmt::format("{} has no {}: a newer version is needed", name_, name));
  return address;
}

}  // namespace einc::cuda
