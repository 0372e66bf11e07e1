// SPDX-License-Identifier: Apache-2.0
// What the emulated NVRTC gives for a cubin: the bytes of a shared library with their number in front.
#pragma once
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace emulator {

inline constexpr char kKernelFileMagic[8] = {'e', 'i', 'n', 'c', '-', 'e', 'm', 'u'};

inline std::string write_kernel_file(const std::string& library) {
  const uint64_t bytes = library.size();
  std::string file(kKernelFileMagic, sizeof kKernelFileMagic);
  file.append(reinterpret_cast<const char*>(&bytes), sizeof bytes);
  return file + library;
}

inline std::optional<std::string_view> read_kernel_file(const void* code) {
  const auto* text = static_cast<const char*>(code);
  if (std::memcmp(text, kKernelFileMagic, sizeof kKernelFileMagic) != 0) return std::nullopt;
  uint64_t bytes = 0;
  std::memcpy(&bytes, text + sizeof kKernelFileMagic, sizeof bytes);
  return std::string_view(text + sizeof kKernelFileMagic + sizeof bytes, bytes);
}

}  // namespace emulator
