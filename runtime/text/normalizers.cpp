// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <memory>

#include "runtime/base/failure.h"
#include "runtime/text/base64.h"
#include "runtime/text/byte_alphabet.h"
#include "runtime/text/charsmap.h"
#include "runtime/text/json_fields.h"
#include "runtime/text/regex.h"
#include "runtime/text/split_words.h"
#include "runtime/text/text_steps.h"
#include "runtime/text/utf8.h"

namespace einc {
namespace {

using Json = nlohmann::json;
using Change = std::function<std::string(std::string_view)>;

// NFC, NFD, NFKC and NFKD are utf8proc's.
Change unicode_form(int options) {
  return [options](std::string_view text) {
    if (text.empty()) return std::string();  // utf8proc takes no null
    utf8proc_uint8_t* mapped = nullptr;
    const utf8proc_ssize_t size =
        utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()), &mapped,
                     static_cast<utf8proc_option_t>(options | UTF8PROC_STABLE));
    const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(mapped, &std::free);
    if (size < 0) throw std::bad_alloc();  // the text is UTF-8, so nothing else can be
    return std::string(reinterpret_cast<const char*>(mapped), static_cast<size_t>(size));
  };
}

// append(code point, result) appends what becomes of each.
template <class Append>
Change by_character(Append append) {
  return [append](std::string_view text) {
    std::string result;
    for (size_t at = 0; at < text.size();) {
      const CodePoint point = code_point_at(text, at);
      append(point.value, result);
      at += point.length;
    }
    return result;
  };
}

void append_lower_case(int32_t character, std::string& result) {
  if (character == 0x130) return void(result += "i\xCC\x87");  // the one whose small letter is two characters
  append_code_point(result, utf8proc_tolower(character));
}

void append_without_accents(int32_t character, std::string& result) {
  if (utf8proc_category(character) != UTF8PROC_CATEGORY_MN) append_code_point(result, character);
}

Change strip(bool left, bool right) {
  return [left, right](std::string_view text) {
    while (left && !text.empty() && is_white_space(code_point_at(text, 0).value)) text.remove_prefix(code_point_at(text, 0).length);
    while (right && !text.empty()) {
      size_t last = text.size() - 1;
      while (last > 0 && (static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;
      if (!is_white_space(code_point_at(text, last).value)) break;
      text = text.substr(0, last);
    }
    return std::string(text);
  };
}

Change replace(const Json& object) {
  const Json* pattern = find_field(object, "pattern");
  if (!pattern) refuse("a Replace without pattern");
  const std::string content = text_field(object, "content"), plain = text_field(*pattern, "String"),
                    expression = text_field(*pattern, "Regex");
  if (!plain.empty())
    return [plain, content](std::string_view text) {
      std::string result;
      for (size_t at = 0; at < text.size();) {
        const size_t found = std::min(text.find(plain, at), text.size());
        result += text.substr(at, found - at);
        if (found < text.size()) result += content;
        at = found + plain.size();
      }
      return result;
    };
  const std::optional<Regex> regex = Regex::compile(expression);
  if (expression.empty() || !regex) refuse(fmt::format("the pattern '{}' of a Replace", expression));
  return [regex = *regex, content](std::string_view text) {
    std::string result;
    size_t at = 0;
    while (const auto found = regex.find(text, at)) {
      result += text.substr(at, found->first - at);
      result += content;
      at = found->second;
    }
    return result += text.substr(at);
  };
}

// sentencepiece's replacements as the library applies them: to whole grapheme clusters of less than six bytes, else to characters; the
// shortest match counts.
Change precompiled(const Json& object) {
  const std::optional<std::string> bytes = decode_base64(text_field(object, "precompiled_charsmap"));
  const std::optional<CharsMap> map = bytes ? CharsMap::read(*bytes) : std::nullopt;
  if (!map) refuse("its table of replacements (precompiled_charsmap) is damaged");
  return [map = *map](std::string_view text) {
    constexpr size_t kWholeClusters = 6;
    std::string result;
    const auto character_or_match = [&](std::string_view character) {
      const auto match = map.shortest(character);
      result += match ? match->replacement : character;
    };
    for (size_t at = 0; at < text.size();) {
      size_t end = at;
      utf8proc_int32_t state = 0, last = 0;
      for (bool fresh = true; end < text.size(); fresh = false) {
        const CodePoint point = code_point_at(text, end);
        if (!fresh && utf8proc_grapheme_break_stateful(last, point.value, &state)) break;
        last = point.value;
        end += point.length;
      }
      const std::string_view cluster = text.substr(at, end - at);
      const auto match = cluster.size() < kWholeClusters ? map.shortest(cluster) : std::nullopt;
      if (match)
        result += match->replacement;
      else
        for (size_t i = 0; i < cluster.size(); i += code_point_at(cluster, i).length)
          character_or_match(cluster.substr(i, code_point_at(cluster, i).length));
      at = end;
    }
    // The steps behind this one rely on it, and the table may hold anything.
    if (find_no_utf8(result) != std::string_view::npos)
      throw RuntimeFailure(FailureKind::data, "the tokenizer's replacements (precompiled_charsmap) make text that is not UTF-8");
    return result;
  };
}

Change read_one(const Json& object) {
  const std::string type = type_of(object);
  if (type == "NFC") return unicode_form(UTF8PROC_COMPOSE);
  if (type == "NFD") return unicode_form(UTF8PROC_DECOMPOSE);
  if (type == "NFKC") return unicode_form(UTF8PROC_COMPOSE | UTF8PROC_COMPAT);
  if (type == "NFKD") return unicode_form(UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);
  if (type == "Lowercase") return by_character(append_lower_case);
  if (type == "StripAccents") return by_character(append_without_accents);
  if (type == "Strip") return strip(flag_field(object, "strip_left"), flag_field(object, "strip_right"));
  if (type == "Replace") return replace(object);
  if (type == "Precompiled") return precompiled(object);
  if (type == "Prepend")
    return [prefix = text_field(object, "prepend")](std::string_view text) {
      return text.empty() ? std::string() : prefix + std::string(text);
    };
  if (type == "ByteLevel")
    return [](std::string_view text) {
      std::string result;
      append_name_of_bytes(result, text);
      return result;
    };
  refuse(fmt::format("a normalizer of type '{}'", type));
}

}  // namespace

std::vector<Normalizer> read_normalizers(const Json& object) {
  std::vector<Normalizer> normalizers;
  if (object.is_null()) return normalizers;
  if (type_of(object) != "Sequence") {
    normalizers.push_back({read_one(object), type_of(object) == "Strip" && flag_field(object, "strip_left")});
    return normalizers;
  }
  for (const Json& one : list_field(object, "normalizers"))
    for (Normalizer& step : read_normalizers(one)) normalizers.push_back(std::move(step));
  return normalizers;
}

}  // namespace einc
