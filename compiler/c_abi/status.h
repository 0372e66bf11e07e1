// SPDX-License-Identifier: Apache-2.0
// The edge of the C library: whatever is thrown inside becomes a status, and the thread's last error. Nothing is thrown out of it.
#pragma once
#include <einc/c.h>
#include <einc/error.h>

#include <string>

namespace einc::c_abi {

// Of the exception that is being handled: keeps it as this thread's last error. Without the memory for that, the message is a fixed one.
einc_status keep_failure() noexcept;

[[noreturn]] void wrong_call(const std::string& message);

// Throws Error (usage) for null: "einc_compile_file: `path` is null".
void require(const void* pointer, const char* function, const char* parameter);

template <class Function>
einc_status guard(Function&& function) noexcept {
  try {
    function();
    return EINC_OK;
  } catch (...) {
    return keep_failure();
  }
}

}  // namespace einc::c_abi
