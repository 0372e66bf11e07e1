// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/choose_device.h"

#include <fmt/format.h>

#include "compiler/driver/command_line.h"
#include "compiler/driver/machine_device.h"
#include "runtime/base/regular_file.h"

namespace einc {
namespace {

constexpr size_t kMaxDeviceFile = size_t{16} << 20;  // bytes, as of a program

}  // namespace

std::optional<Device> choose_device(const std::string& name, std::string_view command, std::optional<int> threads) {
  if (const Device* known = find_device(name)) return *known;
  if (name == "here") return measured_here(threads);
  if (const RegularFile opened(name); opened.is_open()) {
    const std::optional<std::string> text = opened.read_start(kMaxDeviceFile);
    const DeviceFile file = read_device_file(text.value_or(""), name);
    for (const std::string& problem : file.problems) fmt::print(stderr, "{}: {}\n", command, problem);
    if (!file.problems.empty() || file.devices.empty()) return std::nullopt;
    return file.devices.front();
  }
  std::string hint;
  if (name == "gpu" || name == "cuda")
    hint = "; a GPU has its name, such as h200";
  else
    for (const std::string& near : near_devices(name)) hint += (hint.empty() ? "; did you mean " : " or ") + near;
  fmt::print(stderr, "{}: no device `{}`{} (einc --list-devices names them; a JSON file describes one of your own)\n", command,
             printable(name), hint);
  return std::nullopt;
}

}  // namespace einc
