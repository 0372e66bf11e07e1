#include "compiler/driver/choose_device.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "compiler/driver/command_line.h"

namespace einc {

std::optional<Device> choose_device(const std::string& name, std::string_view command) {
  if (const Device* known = find_device(name)) return *known;
  if (std::ifstream in(name); in && std::filesystem::is_regular_file(name)) {
    std::ostringstream text;
    text << in.rdbuf();
    const DeviceFile file = read_device_file(text.str(), name);
    for (const std::string& problem : file.problems) fmt::print(stderr, "{}: {}\n", command, problem);
    if (!file.problems.empty() || file.devices.empty()) return std::nullopt;
    return file.devices.front();
  }
  std::string hint;
  for (const std::string& near : near_devices(name)) hint += (hint.empty() ? "; did you mean " : " or ") + near;
  fmt::print(stderr, "{}: no device `{}`{} (einc --list-devices names them; a JSON file describes one of your own)\n", command,
             printable(name), hint);
  return std::nullopt;
}

}  // namespace einc
