// SPDX-License-Identifier: Apache-2.0
// LLVM's error values as InternalError.
#pragma once
#include <llvm/Support/Error.h>

#include <utility>

#include "runtime/base/check.h"

namespace einc {

inline void take(llvm::Error error) {
  if (error) EINC_CHECK(false, "LLVM: {}", llvm::toString(std::move(error)));
}

template <class T>
T take(llvm::Expected<T> value) {
  take(value.takeError());
  return std::move(*value);
}

}  // namespace einc
