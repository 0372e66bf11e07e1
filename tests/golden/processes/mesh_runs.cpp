// SPDX-License-Identifier: Apache-2.0
#include "tests/golden/processes/mesh_runs.h"

#include <cstdlib>
#include <fstream>

namespace einc::test {

bool launches() {
  static const bool there = [] {
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 1);
    setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
    const bool plugin = fs::exists(fs::path(EINC_BINARY_FOLDER) / "libeinc_mpi.so");
    return plugin && std::system("mpirun --version > /dev/null 2>&1") == 0;
  }();
  if (!there) MESSAGE("SKIP: no mpirun, or no plug-in of it");
  return there;
}

std::vector<pid_t> einc_below(pid_t top) {
  std::vector<std::pair<pid_t, pid_t>> all;  // with their parents
  std::vector<pid_t> below{top}, found;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream in(entry.path() / "stat");
    std::string text((std::istreambuf_iterator<char>(in)), {});
    const size_t end = text.rfind(')');
    if (end == std::string::npos) continue;
    const pid_t parent = std::atoi(text.c_str() + end + 4);
    all.emplace_back(std::atoi(name.c_str()), parent);
    if (text.find("(einc)") != std::string::npos) found.push_back(all.back().first);
  }
  for (size_t i = 0; i < below.size(); ++i)
    for (const auto& [process, parent] : all)
      if (parent == below[i]) below.push_back(process);
  std::erase_if(found, [&](pid_t process) { return std::ranges::find(below, process) == below.end(); });
  return found;
}

std::string variable_of(pid_t process, const std::string& name) {
  std::ifstream in(fmt::format("/proc/{}/environ", process));
  for (std::string entry; std::getline(in, entry, '\0');)
    if (entry.starts_with(name + "=")) return entry.substr(name.size() + 1);
  return "";
}

std::string first_line_with(const std::string& text, std::string_view what) {
  const size_t at = text.find(what);
  return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
}

size_t count_of(const std::string& text, std::string_view what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}
}  // namespace einc::test
