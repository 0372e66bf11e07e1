// SPDX-License-Identifier: Apache-2.0
// Deflated bytes of a file, and the checksum of zip files: the one place that sees zlib.
#pragma once
#include <vector>

#include "runtime/data/file.h"

namespace einc {

// `compressed` bytes of the file from `begin` on, inflated (raw deflate, as in zip files) to exactly `size`.
class InflatedBytes : public ByteSource {
 public:
  // `name` is for messages. Throws RuntimeFailure: data when the bytes are not deflated ones of that size, or resource.
  InflatedBytes(const InputFile& file, uint64_t begin, uint64_t compressed, uint64_t size, std::string name);

  const std::string& path() const override { return file_.path(); }
  void read(uint64_t offset, std::span<std::byte> out) const override;
  // The offset counts inflated bytes.
  std::string place(uint64_t offset) const override;

 private:
  const InputFile& file_;
  uint64_t begin_;
  std::string name_;
  std::vector<std::byte> bytes_;
};

// CRC-32 of bytes that follow others whose CRC is `crc` (0: none).
uint32_t crc32_of(uint32_t crc, std::span<const std::byte> bytes);

}  // namespace einc
