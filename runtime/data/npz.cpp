#include "runtime/data/npz.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <set>

#include "runtime/data/npy.h"

namespace einc {
namespace {

constexpr uint32_t kLocalHeader = 0x04034b50, kDirectoryEntry = 0x02014b50, kEndRecord = 0x06054b50;
constexpr uint32_t kZip64Locator = 0x07064b50, kZip64EndRecord = 0x06064b50;
constexpr uint64_t kEndRecordSize = 22, kEntrySize = 46, kLocalSize = 30, kLocatorSize = 20, kZip64EndSize = 56;
constexpr uint64_t kMaxComment = 65'535;
constexpr uint16_t kZip64Extra = 1;
constexpr std::string_view kSuffix = ".npy";

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
  uint64_t local = 0, size = 0;
  uint32_t crc = 0;
};

// A member's bytes in the file: its header from `begin`, its elements from `data` to `end`.
struct Extent {
  uint64_t begin = 0, data = 0, end = 0;
};

struct Directory {
  uint64_t begin = 0, size = 0, count = 0;
};

class Archive {
 public:
  explicit Archive(const InputFile& file) : file_(file) {}

  std::vector<std::pair<std::string, HostArray>> read() {
    const std::vector<Member> members = list(find_directory());
    std::vector<Extent> extents;
    for (const Member& member : members) extents.push_back(extent_of(member));
    check_disjoint(members, extents);
    std::vector<std::pair<std::string, HostArray>> arrays;
    for (size_t i = 0; i < members.size(); ++i) {
      check_crc(members[i], extents[i].data);
      const std::string& name = members[i].name;
      arrays.emplace_back(name.substr(0, name.size() - kSuffix.size()), read_npy(file_, extents[i].data, members[i].size));
    }
    return arrays;
  }

 private:
  static std::string shown(std::string_view name) { return "'" + printable(name.substr(0, 64)) + "'"; }

  Bytes bytes(uint64_t offset, uint64_t size, const char* what) const {
    if (offset > file_.size() || size > file_.size() - offset)
      file_.fail(std::min(offset, file_.size()), fmt::format("{} lies beyond the end of the file", what));
    Bytes bytes{offset, std::vector<std::byte>(static_cast<size_t>(size))};
    file_.read(offset, bytes.data);
    return bytes;
  }

  // The last end-of-directory record of the file; a comment may follow it.
  Directory find_directory() const {
    if (file_.size() < kEndRecordSize) file_.fail(file_.size(), "too short for a .npz file");
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
    file_.fail(file_.size(), "not a whole .npz file: the end of its directory is missing");
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
      if (!names.insert(members.back().name).second) file_.fail(members.back().entry, shown(members.back().name) + " is there twice");
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
    if ((all.u16(at + 8) & 1) != 0) file_.fail(place, shown(member.name) + " is encrypted");
    if (all.u16(at + 10) != 0) file_.fail(place, shown(member.name) + " is compressed, which is not supported: save it with np.savez");
    member.crc = all.u32(at + 16);
    uint64_t compressed = all.u32(at + 20);
    member.size = all.u32(at + 24);
    member.local = all.u32(at + 42);
    zip64_fields(all, at + kEntrySize + name_size, extra_size, {&member.size, &compressed, &member.local});
    if (compressed != member.size) file_.fail(place, shown(member.name) + " has two sizes");
    at += whole;
    return member;
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
    const bool plain = name.size() > kSuffix.size() && name.ends_with(kSuffix) && name[0] != '/' && name.find('\\') == std::string::npos &&
                       name.find("..") == std::string::npos && name.find('\0') == std::string::npos;
    if (!plain) file_.fail(member.entry, fmt::format("{} is no name of an array (expected name.npy)", shown(name)));
  }

  Extent extent_of(const Member& member) const {
    const Bytes header = bytes(member.local, kLocalSize, "a member");
    if (header.u32(0) != kLocalHeader) file_.fail(member.local, shown(member.name) + " has no header");
    const uint64_t name_size = header.u16(26), data = member.local + kLocalSize + name_size + header.u16(28);
    const Bytes name = bytes(member.local + kLocalSize, name_size, "a member's name");
    if (name_size != member.name.size() || std::memcmp(name.data.data(), member.name.data(), member.name.size()) != 0)
      file_.fail(member.local, shown(member.name) + " has another name in its own header");
    if (data > file_.size() || member.size > file_.size() - data)
      file_.fail(member.entry, shown(member.name) + " lies beyond the end of the file");
    return {member.local, data, data + member.size};
  }

  void check_disjoint(const std::vector<Member>& members, const std::vector<Extent>& extents) const {
    std::vector<size_t> order(extents.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return extents[a].begin < extents[b].begin; });
    for (size_t i = 1; i < order.size(); ++i)
      if (extents[order[i]].begin < extents[order[i - 1]].end)
        file_.fail(members[order[i]].entry, shown(members[order[i]].name) + " overlaps another member");
  }

  void check_crc(const Member& member, uint64_t begin) const {
    static const std::array<uint32_t, 256> table = [] {
      std::array<uint32_t, 256> rows{};
      for (uint32_t i = 0; i < 256; ++i) {
        uint32_t row = i;
        for (int bit = 0; bit < 8; ++bit) row = row >> 1 ^ (row & 1 ? 0xEDB88320u : 0);
        rows[i] = row;
      }
      return rows;
    }();
    uint32_t crc = 0xFFFFFFFFu;
    std::vector<std::byte> block;
    for (uint64_t done = 0; done < member.size; done += block.size()) {
      block.resize(static_cast<size_t>(std::min<uint64_t>(member.size - done, 1 << 20)));
      file_.read(begin + done, block);
      for (const std::byte b : block) crc = crc >> 8 ^ table[(crc ^ std::to_integer<uint32_t>(b)) & 0xFF];
    }
    if (~crc != member.crc) file_.fail(begin, shown(member.name) + " is damaged: its checksum is wrong");
  }

  const InputFile& file_;
};

}  // namespace

std::vector<std::pair<std::string, HostArray>> read_npz(const std::string& path) {
  const InputFile file(path);
  return Archive(file).read();
}

}  // namespace einc
