// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/npz.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <set>

#include "runtime/data/inflate.h"
#include "runtime/data/npy.h"
#include "runtime/data/zip_format.h"

namespace einc {
namespace {

constexpr uint64_t kMaxComment = 65'535;

// Little-endian fields of bytes that were read from `origin` on.
struct Bytes {
  uint64_t origin = 0;
  std::vector<std::byte> data;

  uint64_t field(size_t at, size_t width) const {
    uint64_t value = 0;
    for (size_t i = width; i-- > 0;) value = value << 8 | std::to_integer<uint64_t>(data[at + i]);
    return value;
  }
  uint16_t u16(size_t at) const { return static_cast<uint16_t>(field(at, 2)); }
  uint32_t u32(size_t at) const { return static_cast<uint32_t>(field(at, 4)); }
  uint64_t u64(size_t at) const { return field(at, 8); }
};

struct Member {
  std::string name;
  uint64_t entry = 0;  // where the directory speaks of it
  uint64_t local = 0, size = 0, compressed = 0;
  bool deflated = false;
  uint32_t crc = 0;
};

// A member's bytes in the file: its header from `begin`, its elements from `data` to `end`.
struct MemberExtent {
  uint64_t begin = 0, data = 0, end = 0;
};

struct Directory {
  uint64_t begin = 0, size = 0, count = 0;
};

class Archive {
 public:
  explicit Archive(const InputFile& file) : file_(file) {}

  NamedArrays read() {
    const std::vector<Member> members = list(find_directory());
    std::vector<MemberExtent> extents;
    for (const Member& member : members) extents.push_back(extent_of(member));
    check_disjoint(members, extents);
    NamedArrays arrays;
    for (size_t i = 0; i < members.size(); ++i) {
      const std::string& name = members[i].name;
      arrays.emplace_back(name.substr(0, name.size() - kNpzSuffix.size()), array_of(members[i], extents[i].data));
    }
    return arrays;
  }

 private:
  Bytes bytes(uint64_t offset, uint64_t size, const char* what) const {
    if (offset > file_.size() || size > file_.size() - offset)
      file_.fail(std::min(offset, file_.size()), fmt::format("{} lies beyond the end of the file", what));
    Bytes bytes{offset, std::vector<std::byte>(static_cast<size_t>(size))};
    file_.read(offset, bytes.data);
    return bytes;
  }

  // The last end-of-directory record of the file; a comment may follow it.
  Directory find_directory() const {
    const char* what = is_torch_name(file_.path()) ? "PyTorch checkpoint (a zip file)" : ".npz file";
    if (file_.size() < kEndRecordSize) file_.fail(file_.size(), fmt::format("too short for a {}", what));
    const uint64_t tail = std::min(file_.size(), kEndRecordSize + kMaxComment);
    const Bytes last = bytes(file_.size() - tail, tail, "the end record");
    for (size_t at = static_cast<size_t>(tail - kEndRecordSize) + 1; at-- > 0;) {
      if (last.u32(at) != kEndRecord || at + kEndRecordSize + last.u16(at + 20) != tail) continue;
      if (last.u16(at + 4) != 0 || last.u16(at + 6) != 0 || last.u16(at + 8) != last.u16(at + 10))
        file_.fail(last.origin + at, "archives of several files are not supported");
      const Directory small{last.u32(at + 16), last.u32(at + 12), last.u16(at + 10)};
      const bool wide = small.begin == UINT32_MAX || small.size == UINT32_MAX || small.count == UINT16_MAX;
      return wide ? find_zip64(last.origin + at) : small;
    }
    file_.fail(file_.size(), fmt::format("not a whole {}: the end of its directory is missing", what));
  }

  Directory find_zip64(uint64_t end_record) const {
    if (end_record < kLocatorSize) file_.fail(end_record, "the zip64 locator is missing");
    const Bytes locator = bytes(end_record - kLocatorSize, kLocatorSize, "the zip64 locator");
    if (locator.u32(0) != kZip64Locator) file_.fail(locator.origin, "the zip64 locator is missing");
    const Bytes end = bytes(locator.u64(8), kZip64EndSize, "the zip64 end record");
    if (end.u32(0) != kZip64EndRecord) file_.fail(end.origin, "the zip64 end record is missing");
    return {end.u64(48), end.u64(40), end.u64(32)};
  }

  std::vector<Member> list(const Directory& directory) const {
    if (directory.count > kMaxNpzMembers) file_.fail(directory.begin, fmt::format("more than {} members", kMaxNpzMembers));
    if (directory.count * kEntrySize > directory.size) file_.fail(directory.begin, "the directory is too small for its members");
    const Bytes all = bytes(directory.begin, directory.size, "the directory");
    std::vector<Member> members;
    std::set<std::string> names;
    size_t at = 0;
    for (uint64_t i = 0; i < directory.count; ++i) {
      members.push_back(entry(all, at));
      if (!names.insert(members.back().name).second) file_.fail(members.back().entry, quoted_name(members.back().name) + " is there twice");
    }
    return members;
  }

  Member entry(const Bytes& all, size_t& at) const {
    const uint64_t place = all.origin + at;
    const size_t left = all.data.size() - at;
    if (left < kEntrySize || all.u32(at) != kDirectoryEntry) file_.fail(place, "an entry of the directory is damaged");
    const size_t name_size = all.u16(at + 28), extra_size = all.u16(at + 30), comment_size = all.u16(at + 32);
    const size_t whole = kEntrySize + name_size + extra_size + comment_size;
    if (left < whole) file_.fail(place, "an entry of the directory is cut short");
    Member member;
    member.entry = place;
    member.name.assign(reinterpret_cast<const char*>(all.data.data()) + at + kEntrySize, name_size);
    check_name(member);
    if ((all.u16(at + 8) & 1) != 0) file_.fail(place, quoted_name(member.name) + " is encrypted");
    const uint16_t method = all.u16(at + 10);
    if (method != kStored && method != kDeflated)
      file_.fail(place, fmt::format("{} is compressed by method {}; stored and deflated ones are read", quoted_name(member.name), method));
    member.deflated = method == kDeflated;
    member.crc = all.u32(at + 16);
    member.compressed = all.u32(at + 20);
    member.size = all.u32(at + 24);
    member.local = all.u32(at + 42);
    zip64_fields(all, at + kEntrySize + name_size, extra_size, {&member.size, &member.compressed, &member.local});
    check_sizes(member);
    at += whole;
    return member;
  }

  void check_sizes(const Member& member) const {
    if (!member.deflated && member.compressed != member.size) file_.fail(member.entry, quoted_name(member.name) + " has two sizes");
    if (member.deflated && member.size > kFreeNpzBytes && member.size / kMaxNpzExpansion > member.compressed)
      file_.fail(member.entry, fmt::format("{} would grow from {} to {} bytes, which is more than {}-fold", quoted_name(member.name),
                                           member.compressed, member.size, kMaxNpzExpansion));
  }

  // Fields that did not fit 32 bits stand, in this order, in an extra field.
  void zip64_fields(const Bytes& all, size_t at, size_t size, std::array<uint64_t*, 3> fields) const {
    const size_t end = at + size;
    while (end - at >= 4) {
      const uint16_t tag = all.u16(at);
      const size_t length = all.u16(at + 2);
      at += 4;
      if (length > end - at) file_.fail(all.origin + at, "an extra field is cut short");
      size_t used = 0;
      for (uint64_t* field : fields) {
        if (tag != kZip64Extra || *field != UINT32_MAX) continue;
        if (length - used < 8) file_.fail(all.origin + at, "a zip64 field is missing");
        *field = all.u64(at + used);
        used += 8;
      }
      at += length;
    }
  }

  void check_name(const Member& member) const {
    const std::string& name = member.name;
    const bool plain = name.size() > kNpzSuffix.size() && name.ends_with(kNpzSuffix) && name[0] != '/' &&
                       name.find('\\') == std::string::npos && name.find("..") == std::string::npos && name.find('\0') == std::string::npos;
    if (name.ends_with("/data.pkl")) file_.fail(member.entry, std::string(kTorchCheckpoint));
    if (!plain) file_.fail(member.entry, fmt::format("{} is not the name of an array (expected name.npy)", quoted_name(name)));
  }

  MemberExtent extent_of(const Member& member) const {
    const Bytes header = bytes(member.local, kLocalSize, "a member");
    if (header.u32(0) != kLocalHeader) file_.fail(member.local, quoted_name(member.name) + " has no header");
    const uint64_t name_size = header.u16(26), data = member.local + kLocalSize + name_size + header.u16(28);
    const Bytes name = bytes(member.local + kLocalSize, name_size, "a member's name");
    if (name_size != member.name.size() || std::memcmp(name.data.data(), member.name.data(), member.name.size()) != 0)
      file_.fail(member.local, quoted_name(member.name) + " has another name in its own header");
    if (data > file_.size() || member.compressed > file_.size() - data)
      file_.fail(member.entry, quoted_name(member.name) + " lies beyond the end of the file");
    return {member.local, data, data + member.compressed};
  }

  void check_disjoint(const std::vector<Member>& members, const std::vector<MemberExtent>& extents) const {
    std::vector<size_t> order(extents.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return extents[a].begin < extents[b].begin; });
    for (size_t i = 1; i < order.size(); ++i)
      if (extents[order[i]].begin < extents[order[i - 1]].end)
        file_.fail(members[order[i]].entry, quoted_name(members[order[i]].name) + " overlaps another member");
  }

  HostArray array_of(const Member& member, uint64_t begin) const {
    if (member.deflated) {
      const InflatedBytes bytes(file_, begin, member.compressed, member.size, quoted_name(member.name));
      check_crc(member, begin, bytes);
      return read_npy(bytes, 0, member.size);
    }
    check_crc(member, begin, file_, begin);
    return read_npy(file_, begin, member.size);
  }

  // The member's bytes are those of the source from `from` on.
  void check_crc(const Member& member, uint64_t begin, const ByteSource& source, uint64_t from = 0) const {
    uint32_t crc = 0;
    std::vector<std::byte> block;
    for (uint64_t done = 0; done < member.size; done += block.size()) {
      block.resize(static_cast<size_t>(std::min<uint64_t>(member.size - done, 1 << 20)));
      source.read(from + done, block);
      crc = crc32_of(crc, block);
    }
    if (crc != member.crc) file_.fail(begin, quoted_name(member.name) + " is damaged: its checksum is wrong");
  }

  const InputFile& file_;
};

}  // namespace

NamedArrays read_npz(const std::string& path) {
  const InputFile file(path);
  return Archive(file).read();
}

}  // namespace einc
