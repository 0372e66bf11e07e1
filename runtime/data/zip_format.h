// SPDX-License-Identifier: Apache-2.0
// The records of a zip file: their signatures and lengths (PKWARE's APPNOTE, 4.3 and 4.5.3).
#pragma once
#include <cstdint>
#include <string_view>

namespace einc {

inline constexpr uint32_t kLocalHeader = 0x04034b50, kDirectoryEntry = 0x02014b50, kEndRecord = 0x06054b50;
inline constexpr uint32_t kZip64Locator = 0x07064b50, kZip64EndRecord = 0x06064b50;
inline constexpr uint64_t kEndRecordSize = 22, kEntrySize = 46, kLocalSize = 30, kLocatorSize = 20, kZip64EndSize = 56;
inline constexpr uint16_t kZip64Extra = 1, kStored = 0, kDeflated = 8;
inline constexpr std::string_view kNpzSuffix = ".npy";

}  // namespace einc
