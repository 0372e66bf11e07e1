// SPDX-License-Identifier: Apache-2.0
// The processor's matrix registers (AMX): the system lets a process use them when it has asked.
#pragma once

namespace einc {

// Asks, once in a process. False where the processor has no bf16 tiles or the system refuses.
bool enable_matrix_tiles();

}  // namespace einc
