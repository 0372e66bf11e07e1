// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/token_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "runtime/base/check.h"
#include "runtime/data/npz.h"

namespace einc {
namespace {

static_assert(std::endian::native == std::endian::little);

// llm.c's two kinds of files; the count is the third number of the header.
struct HeaderKind {
  uint32_t magic, version;
  TokenFormat format;
};
constexpr std::array<HeaderKind, 2> kHeaderKinds{{{20240520, 1, TokenFormat::u16}, {20240801, 7, TokenFormat::u32}}};

uint32_t number_at(std::span<const std::byte> bytes, size_t offset) {
  uint32_t number = 0;
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

// Any bytes can be tokens: name and content together tell.
bool is_torch_file(std::string_view path, std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), std::min<size_t>(bytes.size(), 4));
  return is_torch_name(path) && (text == "PK\3\4" || text.starts_with("\x80\x02"));
}

// A start of printable ASCII alone: of 16-bit tokens of a vocabulary of 50,257, less than one in five has two such bytes.
bool is_text(std::span<const std::byte> bytes) {
  constexpr size_t kLeast = 64, kMost = 4096;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), kMost));
  return text.size() >= kLeast &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= ' ' && c <= '~') || (c >= '\t' && c <= '\r'); });
}

// The upper halves of 32-bit tokens below 65,536.
bool looks_like_u32(std::span<const std::byte> bytes) {
  constexpr size_t kLeast = 256, kMost = 4096;
  const auto start = bytes.first(std::min(bytes.size(), kMost) / 4 * 4);
  if (start.size() < kLeast) return false;
  bool lower = false;
  for (size_t i = 0; i < start.size(); ++i) {
    if (i % 4 >= 2 && start[i] != std::byte{}) return false;
    lower = lower || start[i] != std::byte{};
  }
  return lower;
}

}  // namespace

TokenFormat token_format_of(std::string_view path) {
  return path.ends_with(".u32") || path.ends_with(".u32.bin") ? TokenFormat::u32 : TokenFormat::u16;
}

TokenFile::TokenFile(std::string path, std::optional<TokenFormat> asked) : file_(std::move(path)) {
  if (is_torch_file(file_.path(), file_.bytes()))
    file_.fail(
        0, "a PyTorch file, which holds Python objects: numpy.asarray(tokens, dtype=\"uint16\").tofile(\"train.bin\") writes its tokens");
  if (is_text(file_.bytes())) file_.fail(0, "it is text: `einc tokenize FILE -o train.bin` writes its tokens");
  format_ = asked.value_or(token_format_of(file_.path()));
  read_header(asked);
  if (!asked && begin_ == 0 && format_ == TokenFormat::u16 && looks_like_u32(file_.bytes()))
    file_.fail(2, "every second number of 16 bits is 0, as where tokens have 32: --dtype u32 reads them so, --dtype u16 as they are");
  const uint64_t bytes = file_.size() - begin_;
  if (bytes % bytes_of(format_) != 0)
    file_.fail(file_.size(), fmt::format("{} bytes of tokens are no whole number of {}", bytes, to_string(format_)));
  const uint64_t present = bytes / bytes_of(format_);
  if (begin_ > 0 && count_ != present) file_.fail(8, fmt::format("the header promises {} tokens, but {} follow", count_, present));
  count_ = present;
  file_.expect_random_reads();
}

void TokenFile::read_header(std::optional<TokenFormat> asked) {
  if (file_.size() < 12) return;
  const std::span<const std::byte> bytes = file_.bytes();
  const uint32_t magic = number_at(bytes, 0), version = number_at(bytes, 4);
  const auto* kind = std::find_if(kHeaderKinds.begin(), kHeaderKinds.end(), [&](const HeaderKind& k) { return k.magic == magic; });
  if (kind == kHeaderKinds.end()) return;
  if (file_.size() < kTokenHeader) file_.fail(file_.size(), fmt::format("the file ends within its header of {} bytes", kTokenHeader));
  if (version != kind->version) file_.fail(4, fmt::format("header version {} is not supported ({} is)", version, kind->version));
  if (asked && *asked != kind->format)
    file_.fail(0, fmt::format("the header says that the tokens are {}, not {}", to_string(kind->format), to_string(*asked)));
  format_ = kind->format;
  begin_ = kTokenHeader;
  count_ = number_at(bytes, 8);
}

void TokenFile::fetch(uint64_t begin, uint64_t count) const {
  file_.fetch(file_.bytes().subspan(begin_ + begin * bytes_of(format_), count * bytes_of(format_)));
}

void TokenFile::read(uint64_t begin, std::span<int32_t> out) const {
  EINC_CHECK(begin <= count_ && out.size() <= count_ - begin, "tokens {} to {} of {}", begin, begin + out.size(), count_);
  const uint64_t offset = begin_ + begin * bytes_of(format_);
  const std::byte* from = file_.bytes().data() + offset;
  if (format_ == TokenFormat::u16) {
    for (size_t i = 0; i < out.size(); ++i) {
      uint16_t token = 0;
      std::memcpy(&token, from + i * sizeof token, sizeof token);
      out[i] = token;
    }
  } else {
    for (size_t i = 0; i < out.size(); ++i) {
      std::memcpy(&out[i], from + i * sizeof(int32_t), sizeof(int32_t));
      if (out[i] < 0) file_.fail(offset + i * sizeof(int32_t), fmt::format("token {} is above 2147483647", static_cast<uint32_t>(out[i])));
    }
  }
  file_.check_whole();
}

}  // namespace einc
