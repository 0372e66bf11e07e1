// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>

#include "runtime/base/check.h"
#include "runtime/data/npy_header.h"

namespace einc {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";

// Element count times element size, when it fits.
std::optional<uint64_t> byte_count(const NpyHeader& header) {
  if (std::find(header.shape.begin(), header.shape.end(), 0) != header.shape.end()) return 0;
  auto bytes = static_cast<uint64_t>(bytes_of(header.dtype));
  for (const int64_t size : header.shape)
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes)) return std::nullopt;
  return bytes;
}

void swap_bytes(std::vector<std::byte>& bytes, size_t width) {
  for (size_t i = 0; i + width <= bytes.size(); i += width) std::reverse(bytes.data() + i, bytes.data() + i + width);
}

// Column-major elements into row-major order.
std::vector<std::byte> transpose(const std::vector<std::byte>& in, const std::vector<int64_t>& shape, size_t width) {
  std::vector<std::byte> out(in.size());
  std::vector<size_t> index(shape.size(), 0), strides(shape.size(), 0);
  size_t step = width;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    strides[axis] = step;
    step *= static_cast<size_t>(shape[axis]);
  }
  size_t from = 0;
  for (size_t to = 0; to < out.size(); to += width) {
    std::memcpy(out.data() + to, in.data() + from, width);
    for (size_t axis = shape.size(); axis-- > 0;) {
      from += strides[axis];
      if (++index[axis] < static_cast<size_t>(shape[axis])) break;
      from -= strides[axis] * index[axis];
      index[axis] = 0;
    }
  }
  return out;
}

struct HeaderExtent {
  uint64_t header, data;  // offsets
};

// Checks the magic string, the version and the header's length.
HeaderExtent find_header(const ByteSource& file, uint64_t begin, uint64_t length) {
  if (length < 10) file.fail(begin + length, fmt::format("{} bytes are too few for a .npy file", length));
  std::array<std::byte, 12> start{};
  file.read(begin, std::span(start).first(static_cast<size_t>(std::min<uint64_t>(length, start.size()))));
  if (std::memcmp(start.data(), kNpyMagic.data(), kNpyMagic.size()) != 0)
    file.fail(begin, "not a .npy file: it does not start with \\x93NUMPY");
  const int major = std::to_integer<int>(start[6]), minor = std::to_integer<int>(start[7]);
  if (major < 1 || major > 3 || minor != 0)
    file.fail(begin + 6, fmt::format("format version {}.{} is not supported (1.0, 2.0 and 3.0 are)", major, minor));
  const uint64_t prefix = major == 1 ? 10 : 12;
  if (length < prefix) file.fail(begin + length, "the file ends within its header");
  uint32_t size = 0;
  for (auto i = static_cast<size_t>(prefix); i-- > 8;) size = size << 8 | std::to_integer<uint32_t>(start[i]);
  if (size > kMaxNpyHeader) file.fail(begin + 8, fmt::format("a header of {} bytes is above the limit of {}", size, kMaxNpyHeader));
  if (size > length - prefix) file.fail(begin + 8, fmt::format("a header of {} bytes, but only {} follow", size, length - prefix));
  return {begin + prefix, begin + prefix + size};
}

}  // namespace

NpyPlace find_npy(const ByteSource& file, uint64_t begin, uint64_t length) {
  const HeaderExtent extent = find_header(file, begin, length);
  std::string text(static_cast<size_t>(extent.data - extent.header), '\0');
  file.read(extent.header, std::as_writable_bytes(std::span(text)));
  NpyHeader header = parse_npy_header(file, extent.header, text);

  const uint64_t present = begin + length - extent.data;
  const std::optional<uint64_t> bytes = byte_count(header);
  if (!bytes) file.fail(extent.header, "the size of the array does not fit 64 bits");
  if (*bytes != present) file.fail(extent.data, fmt::format("the header promises {} bytes of elements, but {} follow", *bytes, present));
  return {std::move(header), extent.data, *bytes};
}

HostArray read_npy(const ByteSource& file, uint64_t begin, uint64_t length) {
  const NpyPlace place = find_npy(file, begin, length);
  const NpyHeader& header = place.header;
  HostArray array{header.dtype, header.shape, {}};
  try {
    array.bytes.resize(static_cast<size_t>(place.bytes));
    file.read(place.begin, array.bytes);
    const auto width = static_cast<size_t>(bytes_of(array.dtype));
    if (header.order == ByteOrder::big) swap_bytes(array.bytes, width);
    if (header.layout == Layout::column_major && array.shape.size() > 1) array.bytes = transpose(array.bytes, array.shape, width);
  } catch (const std::bad_alloc&) {
    throw RuntimeFailure(FailureKind::resource, fmt::format("{}: not enough memory for {} bytes", printable(file.path()), place.bytes));
  }
  if (array.dtype == DType::boolean)
    for (std::byte& b : array.bytes) b = b == std::byte{0} ? std::byte{0} : std::byte{1};
  return array;
}

HostArray read_npy(const std::string& path) {
  const InputFile file(path);
  return read_npy(file, 0, file.size());
}

std::string npy_header(const HostArray& array) {
  const auto* code = std::find_if(kNpyCodes.begin(), kNpyCodes.end(), [&](const NpyCode& c) { return c.dtype == array.dtype; });
  EINC_CHECK(code != kNpyCodes.end(), "NumPy has no dtype {}", to_string(array.dtype));
  std::string shape;
  for (const int64_t size : array.shape) shape += fmt::format("{}{}", shape.empty() ? "" : ", ", size);
  if (array.shape.size() == 1) shape += ',';
  const char order = bytes_of(array.dtype) == 1 ? '|' : '<';
  std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}", order, code->text, shape);
  text.append(63 - (kNpyMagic.size() + 4 + text.size()) % 64, ' ');
  text += '\n';
  std::string head(kNpyMagic);
  head += {'\1', '\0', static_cast<char>(text.size() & 0xFF), static_cast<char>(text.size() >> 8)};
  return head + text;
}

void write_npy(const std::string& path, const HostArray& array) {
  const std::string head = npy_header(array);
  const std::span<const std::byte> pieces[] = {std::as_bytes(std::span(head)), array.bytes};
  write_file(path, pieces);
}

}  // namespace einc
