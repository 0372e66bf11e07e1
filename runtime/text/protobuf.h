// SPDX-License-Identifier: Apache-2.0
// The fields of a message in protobuf's wire format, one after the other. Lengths and varints are checked against the bytes there are.
#pragma once
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace einc {

struct ProtobufField {
  uint64_t number = 0;
  enum class Wire : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 } wire = Wire::varint;
  uint64_t value = 0;     // of varint and fixed ones
  std::string_view text;  // of bytes

  float as_float() const {
    float result = 0;
    const auto bits = static_cast<uint32_t>(value);
    std::memcpy(&result, &bits, sizeof result);
    return result;
  }
};

class ProtobufReader {
 public:
  explicit ProtobufReader(std::string_view message) : rest_(message) {}

  // nullopt at the end, and where the bytes are no message: is_whole() tells.
  std::optional<ProtobufField> next() {
    if (rest_.empty()) return std::nullopt;
    ProtobufField field;
    const uint64_t key = varint();
    field.number = key >> 3;
    field.wire = static_cast<ProtobufField::Wire>(key & 7);
    switch (field.wire) {
      case ProtobufField::Wire::varint:
        field.value = varint();
        break;
      case ProtobufField::Wire::fixed64:
        field.value = fixed(8);
        break;
      case ProtobufField::Wire::fixed32:
        field.value = fixed(4);
        break;
      case ProtobufField::Wire::bytes:
        field.text = take(varint());
        break;
      default:  // groups, which no message here has
        is_whole_ = false;
    }
    if (field.number == 0) is_whole_ = false;
    if (!is_whole_) return std::nullopt;
    return field;
  }
  bool is_whole() const { return is_whole_; }

 private:
  std::string_view take(uint64_t count) {
    if (count > rest_.size()) return is_whole_ = false, std::string_view();
    const std::string_view taken = rest_.substr(0, static_cast<size_t>(count));
    rest_.remove_prefix(taken.size());
    return taken;
  }
  uint64_t fixed(size_t bytes) {
    uint64_t value = 0;
    const std::string_view taken = take(bytes);
    for (size_t i = 0; i < taken.size(); ++i) value |= uint64_t{static_cast<unsigned char>(taken[i])} << 8 * i;
    return value;
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::string_view taken = take(1);
      if (taken.empty()) return 0;
      const auto byte = static_cast<unsigned char>(taken[0]);
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    is_whole_ = false;
    return 0;
  }

  std::string_view rest_;
  bool is_whole_ = true;
};

}  // namespace einc
