// SPDX-License-Identifier: Apache-2.0
// CPUID, as Intel's and AMD's manuals have it (Software Developer's Manual vol. 2A, "CPUID"). Other processors have none of these features:
// no code is made for them yet.
#include "runtime/cpu/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <array>
#include <cstdint>

#include "runtime/base/matrix_tiles.h"

namespace einc {
namespace {

enum Register : uint8_t { eax, ebx, ecx, edx };

// Registers that the system must save: parts of XCR0.
constexpr uint64_t kNone = 0, kVectors = 0x6, kWide = 0xE6, kTiles = 0x60000;

struct Feature {
  std::string_view name;
  uint32_t leaf, subleaf;
  Register in;
  int bit;
  uint64_t saved;
};

constexpr Feature kFeatures[] = {
    {"sse3", 1, 0, ecx, 0, kNone},
    {"pclmul", 1, 0, ecx, 1, kNone},
    {"ssse3", 1, 0, ecx, 9, kNone},
    {"fma", 1, 0, ecx, 12, kVectors},
    {"cx16", 1, 0, ecx, 13, kNone},
    {"sse4.1", 1, 0, ecx, 19, kNone},
    {"sse4.2", 1, 0, ecx, 20, kNone},
    {"movbe", 1, 0, ecx, 22, kNone},
    {"popcnt", 1, 0, ecx, 23, kNone},
    {"aes", 1, 0, ecx, 25, kNone},
    {"avx", 1, 0, ecx, 28, kVectors},
    {"f16c", 1, 0, ecx, 29, kVectors},
    {"bmi", 7, 0, ebx, 3, kNone},
    {"avx2", 7, 0, ebx, 5, kVectors},
    {"bmi2", 7, 0, ebx, 8, kNone},
    {"avx512f", 7, 0, ebx, 16, kWide},
    {"avx512dq", 7, 0, ebx, 17, kWide},
    {"adx", 7, 0, ebx, 19, kNone},
    {"avx512ifma", 7, 0, ebx, 21, kWide},
    {"avx512cd", 7, 0, ebx, 28, kWide},
    {"sha", 7, 0, ebx, 29, kNone},
    {"avx512bw", 7, 0, ebx, 30, kWide},
    {"avx512vl", 7, 0, ebx, 31, kWide},
    {"avx512vbmi", 7, 0, ecx, 1, kWide},
    {"avx512vbmi2", 7, 0, ecx, 6, kWide},
    {"gfni", 7, 0, ecx, 8, kNone},
    {"vaes", 7, 0, ecx, 9, kVectors},
    {"vpclmulqdq", 7, 0, ecx, 10, kVectors},
    {"avx512vnni", 7, 0, ecx, 11, kWide},
    {"avx512bitalg", 7, 0, ecx, 12, kWide},
    {"avx512vpopcntdq", 7, 0, ecx, 14, kWide},
    {"avx512vp2intersect", 7, 0, edx, 8, kWide},
    {"amx-bf16", 7, 0, edx, 22, kTiles},
    {"avx512fp16", 7, 0, edx, 23, kWide},
    {"amx-tile", 7, 0, edx, 24, kTiles},
    {"amx-int8", 7, 0, edx, 25, kTiles},
    {"avxvnni", 7, 1, eax, 4, kVectors},
    {"avx512bf16", 7, 1, eax, 5, kWide},
    {"avxifma", 7, 1, eax, 23, kVectors},
    {"avxvnniint8", 7, 1, edx, 4, kVectors},
    {"avxneconvert", 7, 1, edx, 5, kVectors},
    {"lzcnt", 0x80000001, 0, ecx, 5, kNone},
    {"sse4a", 0x80000001, 0, ecx, 6, kNone},
    {"prfchw", 0x80000001, 0, ecx, 8, kNone},
    {"xop", 0x80000001, 0, ecx, 11, kVectors},
    {"fma4", 0x80000001, 0, ecx, 16, kVectors},
    {"tbm", 0x80000001, 0, ecx, 21, kNone},
};

constexpr auto kFeatureNames = [] {
  std::array<std::string_view, std::size(kFeatures)> names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = kFeatures[i].name;
  return names;
}();

#if defined(__x86_64__)
uint64_t saved_registers() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kSystemUsesXsave = 1U << 27;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kSystemUsesXsave) == 0) return 0;
  uint32_t low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

bool read_leaf(const Feature& feature, unsigned (&registers)[4]) {
  return __get_cpuid_count(feature.leaf, feature.subleaf, &registers[eax], &registers[ebx], &registers[ecx], &registers[edx]) != 0;
}
#else
uint64_t saved_registers() { return 0; }
bool read_leaf(const Feature&, unsigned (&)[4]) { return false; }
#endif

}  // namespace

std::span<const std::string_view> cpu_feature_names() { return kFeatureNames; }

bool has_cpu_feature(std::string_view name) {
  const auto* feature = std::find_if(std::begin(kFeatures), std::end(kFeatures), [&](const Feature& f) { return f.name == name; });
  if (feature == std::end(kFeatures)) return false;
  if (feature->saved == kTiles && !enable_matrix_tiles()) return false;
  unsigned registers[4] = {};
  if (!read_leaf(*feature, registers)) return false;
  return (registers[feature->in] >> feature->bit & 1) != 0 && (saved_registers() & feature->saved) == feature->saved;
}

std::string missing_cpu_features(std::string_view wanted) {
  std::string missing;
  while (!wanted.empty()) {
    const size_t end = std::min(wanted.find(' '), wanted.size());
    const std::string_view name = wanted.substr(0, end);
    if (!name.empty() && !has_cpu_feature(name)) (missing += missing.empty() ? "" : " ") += name;
    wanted.remove_prefix(std::min(end + 1, wanted.size()));
  }
  return missing;
}

}  // namespace einc
