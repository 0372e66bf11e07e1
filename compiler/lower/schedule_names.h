// SPDX-License-Identifier: Apache-2.0
// The words of a schedule's text, for its printer and its reader.
#pragma once
#include <string_view>

#include "compiler/lower/buffer_plan.h"
#include "compiler/lower/kernel_names.h"
#include "runtime/program/executable.h"
#include "runtime/program/library_product.h"

namespace einc {

inline constexpr int64_t kScheduleFormat = 1;

std::string_view name_of(LaunchWhen when);
std::string_view name_of(ProductSums sums);
std::string_view name_of(LibraryActivation activation);
std::string_view name_of(BufferPlace place);

}  // namespace einc
