// SPDX-License-Identifier: Apache-2.0
// The JSON object at the head of a .safetensors file, read as a stream of events: nothing nests deeper than the format does, and
// nothing is kept that is not wanted.
#pragma once
#include <array>
#include <string_view>
#include <vector>

#include "runtime/data/safetensors.h"

namespace einc {

// The format's name of a dtype, in its order: a file holds later ones first.
struct SafetensorsCode {
  std::string_view text;
  int bits;
  bool ours;
  DType dtype;  // when `ours`
};
inline constexpr std::array<SafetensorsCode, 20> kSafetensorsCodes{{{"BOOL", 8, true, DType::boolean},
                                                                    {"F4", 4, false, {}},
                                                                    {"F6_E2M3", 6, false, {}},
                                                                    {"F6_E3M2", 6, false, {}},
                                                                    {"U8", 8, true, DType::u8},
                                                                    {"I8", 8, false, {}},
                                                                    {"F8_E5M2", 8, true, DType::f8e5m2},
                                                                    {"F8_E4M3", 8, true, DType::f8e4m3},
                                                                    {"F8_E8M0", 8, false, {}},
                                                                    {"I16", 16, false, {}},
                                                                    {"U16", 16, true, DType::u16},
                                                                    {"F16", 16, true, DType::f16},
                                                                    {"BF16", 16, true, DType::bf16},
                                                                    {"I32", 32, true, DType::i32},
                                                                    {"U32", 32, false, {}},
                                                                    {"F32", 32, true, DType::f32},
                                                                    {"C64", 64, false, {}},
                                                                    {"F64", 64, true, DType::f64},
                                                                    {"I64", 64, true, DType::i64},
                                                                    {"U64", 64, false, {}}}};
// nullptr: no dtype of the format.
const SafetensorsCode* safetensors_code(std::string_view text);

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> tensors;  // offsets from the first byte behind the header
  SafetensorsMetadata metadata;
};

// `text` lies in the file from byte 8 on.
SafetensorsHeader parse_safetensors_header(const InputFile& file, std::string_view text);

}  // namespace einc
