// SPDX-License-Identifier: Apache-2.0
#include "runtime/text/hugging_face.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/failure.h"
#include "runtime/base/printable.h"
#include "runtime/data/strict_json.h"
#include "runtime/text/added_tokens.h"
#include "runtime/text/byte_alphabet.h"
#include "runtime/text/json_fields.h"
#include "runtime/text/split_words.h"
#include "runtime/text/text_steps.h"
#include "runtime/text/utf8.h"
#include "runtime/text/vocabulary.h"
#include "runtime/text/word_cache.h"
#include "runtime/text/word_model.h"

namespace einc {
namespace {

using Json = nlohmann::json;

// What each token gives back. Decoders work on one token at a time, but for what they do at a text's start and between tokens.
struct Decoding {
  std::vector<std::string> bytes;  // by token
  std::string between;             // tokens, where the file names no decoder
  size_t spaces_at_start = 0;      // so many at most are dropped where a text begins
};

void replace_all(std::string& text, const std::string& what, const std::string& by) {
  for (size_t at = what.empty() ? std::string::npos : text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
}

void apply_decoder(const Json& object, Decoding& decoding) {
  const std::string type = type_of(object);
  const auto each = [&](auto change) { std::for_each(decoding.bytes.begin(), decoding.bytes.end(), change); };
  if (type == "Sequence") {
    for (const Json& one : list_field(object, "decoders")) apply_decoder(one, decoding);
  } else if (type == "ByteLevel") {
    each([](std::string& token) { token = bytes_of_name(token).value_or(token); });
  } else if (type == "ByteFallback") {
    each([](std::string& token) {
      if (const auto byte = byte_of_piece(token)) token.assign(1, *byte);
    });
  } else if (type == "Metaspace") {
    each([mark = text_field(object, "replacement", "\xE2\x96\x81")](std::string& token) { replace_all(token, mark, " "); });
    if (text_field(object, "prepend_scheme", "always") != "never") decoding.spaces_at_start = ~size_t{0};
  } else if (type == "Replace") {
    const Json* pattern = find_field(object, "pattern");
    const std::string plain = pattern ? text_field(*pattern, "String") : "";
    if (plain.empty()) refuse("a decoder that replaces a pattern");
    each([&](std::string& token) { replace_all(token, plain, text_field(object, "content")); });
  } else if (type == "Strip") {
    const Json *start = find_field(object, "start"), *stop = find_field(object, "stop");
    if (text_field(object, "content") != " " || !start || !start->is_number_unsigned() || (stop && *stop != 0)) refuse("its decoder Strip");
    decoding.spaces_at_start = start->get<size_t>();
  } else if (type != "Fuse") {
    refuse(fmt::format("a decoder of type '{}'", type));
  }
}

class HuggingFaceTokenizer : public Tokenizer {
 public:
  explicit HuggingFaceTokenizer(const Json& object) {
    static const Json kNone;
    const auto part = [&](const char* name) -> const Json& {
      const Json* field = find_field(object, name);
      return field ? *field : kNone;
    };
    model_ = read_word_model(part("model"));
    normalizers_ = read_normalizers(part("normalizer"));
    pre_tokenizers_ = read_pre_tokenizers(part("pre_tokenizer"));
    decoding_.bytes = model_->tokens();
    add_tokens(read_added_tokens(object));
    if (find_field(object, "decoder"))
      apply_decoder(part("decoder"), decoding_);
    else
      decoding_.between = " ";
    if (decoding_.bytes.empty()) refuse("a vocabulary without tokens");
  }

  int32_t size() const override { return static_cast<int32_t>(decoding_.bytes.size()); }

  void encode(std::string_view text, const Sink& sink) const override {
    if (const size_t byte = find_no_utf8(text); byte != std::string_view::npos)
      throw RuntimeFailure(FailureKind::data, fmt::format("byte {} of the text: not UTF-8", byte));
    WordCache cache(text.size());
    std::vector<int32_t> tokens;
    const auto token = [&](int32_t added) { tokens.push_back(added); };
    const auto send = [&] {
      if (!tokens.empty()) sink(tokens);
      tokens.clear();
    };
    const PieceSink encode_word = [&](TextPiece word) {
      cache.append(word.text, tokens, [&](std::string_view one, std::vector<int32_t>& into) { model_->encode(one, into); });
      if (tokens.size() >= kPieceTokens) send();
    };
    raw_.divide(
        text,
        [&](size_t begin, size_t end) {
          std::string normal;
          std::string_view part = text.substr(begin, end - begin);
          bool first = begin == 0;  // of the text: where a Metaspace of scheme `first` puts its mark
          for (const Normalizer& step : normalizers_) {
            first = first && !(step.strips_start && !part.empty() && is_white_space(code_point_at(part, 0).value));
            part = normal = step.apply(part);
          }
          normalized_.divide(
              part,
              [&](size_t from, size_t to) {
                divide({part.substr(from, to - from), first && from == 0}, 0, encode_word);
              },
              token);
        },
        token);
    send();
  }
  using Tokenizer::encode;

  void decode(std::span<const int32_t> tokens, std::string& text, TextPart part) const override {
    size_t dropped = part == TextPart::start ? decoding_.spaces_at_start : 0;
    bool behind = part == TextPart::middle;
    for (const int32_t token : tokens) {
      if (behind) text += decoding_.between;
      std::string_view bytes = decoding_.bytes[static_cast<size_t>(token)];
      for (; dropped > 0 && bytes.starts_with(' '); --dropped) bytes.remove_prefix(1);
      dropped = 0;
      text += bytes;
      behind = true;
    }
  }
  using Tokenizer::decode;

 private:
  static constexpr size_t kPieceTokens = 4096;

  void add_tokens(std::vector<AddedToken> added) {
    std::vector<std::string>& names = decoding_.bytes;
    const size_t limit = 2 * (names.size() + added.size()) + 1024;  // numbers may leave some out
    for (AddedToken& token : added) {
      const auto index = static_cast<size_t>(token.token);
      if (index >= limit)
        refuse(fmt::format("the added token '{}' is number {} of a vocabulary of {}", printable(token.content), index, names.size()));
      if (index >= names.size()) names.resize(index + 1);
      if (!names[index].empty() && names[index] != token.content)
        refuse(fmt::format("token {} is '{}' and '{}'", index, printable(names[index]), printable(token.content)));
      if (token.normalized)
        for (const Normalizer& step : normalizers_) token.content = step.apply(token.content);
      names[index] = token.content;
      (token.normalized ? normalized_ : raw_).add(std::move(token));
    }
  }

  // What the pre-tokenizers from `step` on make of a piece.
  void divide(TextPiece piece, size_t step, const PieceSink& sink) const {
    if (piece.text.empty()) return;
    if (step == pre_tokenizers_.size()) return sink(piece);
    pre_tokenizers_[step](piece, [&](TextPiece smaller) { divide(smaller, step + 1, sink); });
  }

  std::unique_ptr<WordModel> model_;
  std::vector<Normalizer> normalizers_;
  std::vector<PreTokenizer> pre_tokenizers_;
  AddedTokenFinder raw_, normalized_;
  Decoding decoding_;
};

}  // namespace

std::unique_ptr<Tokenizer> read_hugging_face(const std::string& path) {
  const std::string text = read_vocabulary(path);
  const Json object = parse_strict_json(text, path, {text.size()});
  try {
    if (!object.is_object()) refuse("no object of JSON");
    return std::make_unique<HuggingFaceTokenizer>(object);
  } catch (const std::invalid_argument& problem) {
    throw RuntimeFailure(FailureKind::data, fmt::format("{}: einc cannot use this tokenizer: {}", printable(path), problem.what()));
  }
}

}  // namespace einc
