// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/data_properties.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/base/xxh64.h"
#include "runtime/data/array_file.h"
#include "runtime/data/name_map.h"
#include "runtime/data/npy.h"
#include "runtime/data/npy_file.h"
#include "runtime/data/token_file.h"
#include "runtime/text/tokenizer.h"
#include "runtime/train/checkpoint_record.h"

namespace einc::fuzz {
namespace {

// A file that is nowhere but in memory.
class MemoryFile {
 public:
  explicit MemoryFile(const std::string& content) : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    EINC_CHECK(descriptor_ >= 0 && ::write(descriptor_, content.data(), content.size()) == static_cast<ssize_t>(content.size()),
               "no file in memory");
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

// Whether the reader took the file; it may refuse it as data and in no other way.
template <class Read>
bool survives(Read read) {
  try {
    read();
    return true;
  } catch (const RuntimeFailure& failure) {
    EINC_CHECK(failure.kind() == FailureKind::data, "{}", failure.what());
    return false;
  }
}

bool equal(const HostArray& a, const HostArray& b) { return a.dtype == b.dtype && a.shape == b.shape && a.bytes == b.bytes; }

std::string text_of(std::span<const std::byte> bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// encoder.json or ranks of the 256 single bytes, to which content can be appended.
std::string encoder_of_bytes() {
  std::string text = "{";
  int number = 0, hidden = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool shows = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    text += fmt::format("{}\"\\u{:04x}\":{}", number == 0 ? "" : ",", shows ? byte : hidden, number);
    ++number;
    if (!shows) ++hidden;
  }
  return text;
}

std::string ranks_of_bytes() {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t byte = 0; byte < 256; ++byte) text += fmt::format("{}{}== {}\n", kDigits[byte >> 2], kDigits[(byte & 3) << 4], byte);
  return text;
}

}  // namespace

void check_npy(const std::string& content) {
  const MemoryFile file(content);
  HostArray array;
  const bool is_read = survives([&] { array = read_npy(file.path()); });
  const bool is_mapped = survives([&] {
    const NpyFile mapped(file.path());
    EINC_CHECK(mapped.dtype() == array.dtype && mapped.shape() == array.shape && mapped.bytes().size() == array.bytes.size(),
               "mapped unlike read");
    if (array.dtype != DType::boolean) EINC_CHECK(std::ranges::equal(mapped.bytes(), array.bytes), "mapped unlike read");
  });
  EINC_CHECK(is_read == is_mapped, "read and mapped differ in what they take");
  if (!is_read) return;
  const MemoryFile again(npy_header(array) + text_of(array.bytes));
  EINC_CHECK(equal(read_npy(again.path()), array), "another array came back");
}

void check_npz(const std::string& content) {
  const MemoryFile file(content);
  survives([&] {
    for (const auto& [name, array] : read_npz(file.path())) {
      const MemoryFile again(npy_header(array) + text_of(array.bytes));
      EINC_CHECK(equal(read_npy(again.path()), array), "another array came back for {}", name);
    }
  });
}

void check_safetensors(const std::string& content) {
  const MemoryFile file(content);
  survives([&] {
    const SafetensorsFile tensors(file.path());
    uint64_t bytes = 0;
    for (const SafetensorsEntry& entry : tensors.tensors()) {
      bytes += tensors.bytes(entry).size();
      EINC_CHECK(tensors.find(entry.name) == &entry, "{} is not found", entry.name);
      survives([&] { tensors.read(entry); });
    }
    EINC_CHECK(bytes <= content.size(), "{} bytes of tensors in {}", bytes, content.size());
  });
  survives([&] { ArrayFile(file.path()).pick("x"); });
}

void check_tokens(const std::string& content) {
  if (content.empty()) return;
  const MemoryFile file(content.substr(1));
  const int choice = static_cast<unsigned char>(content[0]) % 3;
  std::optional<TokenFormat> asked;
  if (choice > 0) asked = choice == 1 ? TokenFormat::u16 : TokenFormat::u32;
  survives([&] {
    const TokenFile tokens(file.path(), asked);
    EINC_CHECK(!asked || tokens.format() == *asked, "another format than asked for");
    EINC_CHECK(tokens.count() * bytes_of(tokens.format()) < content.size(), "{} tokens", tokens.count());
    tokens.sample_hash();
    std::vector<int32_t> all(tokens.count());
    tokens.read(0, all);
    EINC_CHECK(std::ranges::all_of(all, [](int32_t token) { return token >= 0; }), "a negative token");
  });
}

void check_vocabulary(const std::string& content) {
  if (content.size() < 2) return;
  constexpr TokenizerKind kKinds[] = {TokenizerKind::characters, TokenizerKind::gpt2, TokenizerKind::gpt2, TokenizerKind::sentencepiece,
                                      TokenizerKind::hugging_face};
  const int kind = static_cast<unsigned char>(content[0]) % 5;
  const bool starts_with_bytes = content[1] == 1 && (kind == 1 || kind == 2);
  const std::string start = !starts_with_bytes ? "" : kind == 1 ? ranks_of_bytes() : encoder_of_bytes();
  const std::string_view rest = std::string_view(content).substr(2);
  const size_t cut = kind == 2 ? std::min(rest.find('\1'), rest.size()) : rest.size();
  const MemoryFile vocabulary(start + std::string(rest.substr(0, cut))), merges(std::string(rest.substr(std::min(cut + 1, rest.size()))));
  survives([&] {
    const auto tokenizer = open_tokenizer({vocabulary.path(), kind == 2 ? merges.path() : ""}, kKinds[kind]);
    survives([&] {  // a vocabulary may lack some characters
      const std::vector<int32_t> tokens = tokenizer->encode(content);
      EINC_CHECK(std::ranges::all_of(tokens, [&](int32_t token) { return token >= 0 && token < tokenizer->size(); }), "a token beyond");
      const std::string text = tokenizer->decode(tokens);
      EINC_CHECK(kind > 2 || text == content, "another text came back");  // the others may normalize it
    });
  });
}

void check_checkpoint(const std::string& content) {
  survives([&] { parse_checkpoint_record(content, "train.json"); });
  const std::string whole =
      content + fmt::format(",\n  \"checksum\": \"{:016x}\"\n}}\n", xxh64(std::as_bytes(std::span(content.data(), content.size()))));
  survives([&] {
    const CheckpointRecord record = parse_checkpoint_record(whole, "train.json");
    const std::string text = to_json(record);
    EINC_CHECK(to_json(parse_checkpoint_record(text, "train.json")) == text, "another record came back");
  });
}

void check_names(const std::string& content) {
  survives([&] {
    const NameMap map = NameMap::parse(content, "names.txt");
    for (const char* ours : {"wte", "h.0.attn.w", "h.10.mlp.b", "a.a.a.a.a.a", "..", ""}) map.theirs(ours);
  });
  survives([&] {
    HostArray array{DType::u8, {2, 12}, std::vector<std::byte>(24)};
    for (size_t i = 0; i < 24; ++i) array.bytes[i] = static_cast<std::byte>(i);
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{12, 2}, {2, 3, 4}, {24}, {4, 1, 6}}) {
      survives([&] {
        HostArray result = Rearrangement(content).apply(array, shape);
        EINC_CHECK(result.shape == shape, "another shape");
        std::sort(result.bytes.begin(), result.bytes.end());
        EINC_CHECK(result.bytes == array.bytes, "an element is lost");
      });
    }
  });
}

}  // namespace einc::fuzz
