// SPDX-License-Identifier: Apache-2.0
// What this process has of the machine's memory, as the system counts it.
#pragma once
#include <cstdint>

namespace einc {

int64_t resident_bytes();    // now
int64_t file_bytes();        // of that, pages of mapped files: data, code
int64_t high_water_bytes();  // at most since the start, or since forget_high_water
// Gives back what is free and counts anew: what compiling took is not what running takes.
void forget_high_water();

}  // namespace einc
