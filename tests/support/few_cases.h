// SPDX-License-Identifier: Apache-2.0
// Whether a part of the cases is enough: AddressSanitizer takes ten times as long.
#pragma once

namespace einc {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kFewCases = true;
#else
inline constexpr bool kFewCases = false;
#endif

}  // namespace einc
