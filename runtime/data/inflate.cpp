// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/inflate.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <new>

#include "runtime/base/check.h"

namespace einc {
namespace {

constexpr uint64_t kInflateBlock = 1 << 16;  // bytes given to zlib at once; its counters have 32 bits

class Stream {
 public:
  Stream() { EINC_CHECK(::inflateInit2(&state_, -MAX_WBITS) == Z_OK, "zlib does not start"); }
  ~Stream() { ::inflateEnd(&state_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  z_stream& state() { return state_; }

 private:
  z_stream state_{};
};

}  // namespace

InflatedBytes::InflatedBytes(const InputFile& file, uint64_t begin, uint64_t compressed, uint64_t size, std::string name)
    : file_(file), begin_(begin), name_(std::move(name)) {
  try {
    bytes_.resize(static_cast<size_t>(size));
  } catch (const std::bad_alloc&) {
    throw RuntimeFailure(FailureKind::resource, fmt::format("{}: not enough memory for {} bytes", printable(file.path()), size));
  }
  Stream stream;
  z_stream& z = stream.state();
  std::array<std::byte, kInflateBlock> in{};
  std::byte more{};  // takes what comes behind the last byte
  uint64_t taken = 0, given = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    if (z.avail_in == 0) {
      const uint64_t n = std::min(kInflateBlock, compressed - taken);
      file.read(begin + taken, std::span(in).first(static_cast<size_t>(n)));
      z.next_in = reinterpret_cast<Bytef*>(in.data());
      z.avail_in = static_cast<uInt>(n);
      taken += n;
    }
    const uint64_t room = std::min(kInflateBlock, size - given);
    z.next_out = reinterpret_cast<Bytef*>(room > 0 ? bytes_.data() + given : &more);
    z.avail_out = room > 0 ? static_cast<uInt>(room) : 1;
    const uInt offered = z.avail_out;
    status = ::inflate(&z, Z_NO_FLUSH);
    const uInt made = offered - z.avail_out;
    if (room == 0 && made > 0) file.fail(begin, fmt::format("{} has more than its {} bytes", name_, size));
    given += made;
  }
  if (status != Z_STREAM_END || taken - z.avail_in != compressed)
    file.fail(begin + taken - z.avail_in, fmt::format("{} is damaged: its deflated bytes are wrong", name_));
  if (given != size) file.fail(begin, fmt::format("{} has {} bytes instead of {}", name_, given, size));
}

void InflatedBytes::read(uint64_t offset, std::span<std::byte> out) const {
  std::copy_n(bytes_.begin() + static_cast<ptrdiff_t>(offset), out.size(), out.begin());
}

std::string InflatedBytes::place(uint64_t offset) const { return fmt::format("{}: byte {} of {}", file_.place(begin_), offset, name_); }

uint32_t crc32_of(uint32_t crc, std::span<const std::byte> bytes) {
  if (bytes.empty()) return crc;  // zlib takes a null address for a start
  return static_cast<uint32_t>(::crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace einc
