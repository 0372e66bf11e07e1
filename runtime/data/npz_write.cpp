// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/data/inflate.h"
#include "runtime/data/npy.h"
#include "runtime/data/npz.h"
#include "runtime/data/zip_format.h"

namespace einc {
namespace {

constexpr uint16_t kVersion = 45, kUtf8Names = 1 << 11, kFirstDay = 33;  // 1 January 1980

struct Record {
  std::string bytes;

  Record& put(uint64_t value, size_t width) {
    for (size_t i = 0; i < width; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
    return *this;
  }
  Record& text(std::string_view more) {
    bytes += more;
    return *this;
  }
};

uint64_t narrow(uint64_t value) { return std::min<uint64_t>(value, UINT32_MAX); }

struct ZipMember {
  std::string name, head;  // of the zip file; of the .npy
  uint64_t size = 0, offset = 0;
  uint32_t crc = 0;
};

// Sizes and offset that do not fit 32 bits stand in a field of their own.
std::string wide_fields(const std::vector<uint64_t>& values) {
  Record wide;
  for (const uint64_t value : values)
    if (value >= UINT32_MAX) wide.put(value, 8);
  return wide.bytes.empty() ? "" : Record().put(kZip64Extra, 2).put(wide.bytes.size(), 2).text(wide.bytes).bytes;
}

// What the local header and the directory's entry have in common.
void put_common(Record& record, const ZipMember& m, size_t extra) {
  record.put(kUtf8Names, 2).put(kStored, 2).put(0, 2).put(kFirstDay, 2).put(m.crc, 4).put(narrow(m.size), 4).put(narrow(m.size), 4);
  record.put(m.name.size(), 2).put(extra, 2);
}

std::string local_header(const ZipMember& m) {
  const std::string extra = wide_fields({m.size, m.size});
  Record record;
  put_common(record.put(kLocalHeader, 4).put(kVersion, 2), m, extra.size());
  return record.text(m.name).text(extra).bytes;
}

std::string directory_entry(const ZipMember& m) {
  const std::string extra = wide_fields({m.size, m.size, m.offset});
  Record record;
  put_common(record.put(kDirectoryEntry, 4).put(kVersion, 2).put(kVersion, 2), m, extra.size());
  return record.put(0, 2).put(0, 2).put(0, 2).put(0, 4).put(narrow(m.offset), 4).text(m.name).text(extra).bytes;
}

std::string end_records(uint64_t count, uint64_t begin, uint64_t size) {
  Record record;
  if (begin >= UINT32_MAX || size >= UINT32_MAX) {
    record.put(kZip64EndRecord, 4).put(kZip64EndSize - 12, 8).put(kVersion, 2).put(kVersion, 2).put(0, 4).put(0, 4);
    record.put(count, 8).put(count, 8).put(size, 8).put(begin, 8);
    record.put(kZip64Locator, 4).put(0, 4).put(begin + size, 8).put(1, 4);
  }
  record.put(kEndRecord, 4).put(0, 2).put(0, 2).put(count, 2).put(count, 2).put(narrow(size), 4).put(narrow(begin), 4).put(0, 2);
  return record.bytes;
}

}  // namespace

void write_npz(const std::string& path, const NamedArrays& arrays) {
  EINC_CHECK(arrays.size() < kMaxNpzMembers, "{} arrays for one .npz file", arrays.size());
  std::vector<ZipMember> members(arrays.size());
  std::vector<std::string> heads;
  uint64_t offset = 0;
  for (size_t i = 0; i < arrays.size(); ++i) {
    const auto& [name, array] = arrays[i];
    ZipMember& m = members[i];
    m.name = name + std::string(kNpzSuffix);
    EINC_CHECK(m.name.size() <= UINT16_MAX, "a name of {} bytes", m.name.size());
    m.head = npy_header(array);
    m.size = m.head.size() + array.bytes.size();
    m.crc = crc32_of(crc32_of(0, std::as_bytes(std::span(m.head))), array.bytes);
    m.offset = offset;
    heads.push_back(local_header(m));
    offset += heads.back().size() + m.size;
  }
  std::string directory;
  for (const ZipMember& m : members) directory += directory_entry(m);
  const std::string end = end_records(members.size(), offset, directory.size());
  std::vector<std::span<const std::byte>> pieces;
  for (size_t i = 0; i < arrays.size(); ++i)
    pieces.insert(pieces.end(), {std::as_bytes(std::span(heads[i])), std::as_bytes(std::span(members[i].head)), arrays[i].second.bytes});
  pieces.insert(pieces.end(), {std::as_bytes(std::span(directory)), std::as_bytes(std::span(end))});
  write_file(path, pieces);
}

}  // namespace einc
