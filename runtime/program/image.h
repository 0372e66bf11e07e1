// SPDX-License-Identifier: Apache-2.0
// A whole program as bytes: what an object file made ahead of time holds beside its functions.
#pragma once
#include <string>
#include <string_view>

#include "runtime/program/executable.h"
#include "runtime/program/program_info.h"

namespace einc {

// Of the image, of CompiledObject and of kernel_function.h: raise it when one of them changes.
inline constexpr uint32_t kObjectVersion = 7;

struct ProgramImage {
  ProgramInfo info;
  PerPart<Executable> parts;
};

std::string to_bytes(const ProgramImage& image);

// Reads what to_bytes wrote. Throws RuntimeFailure (data) for bytes that are no image.
ProgramImage parse_image(std::string_view bytes);

}  // namespace einc
