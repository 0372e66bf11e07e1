// SPDX-License-Identifier: Apache-2.0
#include "runtime/text/word_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "runtime/base/failure.h"
#include "runtime/base/printable.h"
#include "runtime/text/json_fields.h"
#include "runtime/text/pair_merges.h"
#include "runtime/text/unigram.h"
#include "runtime/text/utf8.h"

namespace einc {
namespace {

using Json = nlohmann::json;
using NumberOf = std::unordered_map<std::string, int32_t>;

// Tokens of single bytes, which what is in no vocabulary falls to: <0x00> to <0xFF>; -1 where there is none.
class ByteTokens {
 public:
  ByteTokens() { tokens_.fill(-1); }
  explicit ByteTokens(const NumberOf& numbers) {
    for (size_t byte = 0; byte < tokens_.size(); ++byte) {
      const auto found = numbers.find(fmt::format("<0x{:02X}>", byte));
      tokens_[byte] = found == numbers.end() ? -1 : found->second;
    }
  }
  // Whether all bytes are tokens, which it appends then.
  bool append(std::string_view bytes, std::vector<int32_t>& tokens) const {
    const auto token_of = [&](char byte) { return tokens_[static_cast<unsigned char>(byte)]; };
    if (!std::all_of(bytes.begin(), bytes.end(), [&](char byte) { return token_of(byte) >= 0; })) return false;
    for (const char byte : bytes) tokens.push_back(token_of(byte));
    return true;
  }

 private:
  std::array<int32_t, 256> tokens_;
};

// Byte-pair encoding over characters, with the tokenizers library's rules for what is unknown.
class WordPairs : public WordModel {
 public:
  explicit WordPairs(const Json& object)
      : prefix_(text_field(object, "continuing_subword_prefix")),
        suffix_(text_field(object, "end_of_word_suffix")),
        fuses_unknown_(flag_field(object, "fuse_unk")),
        takes_whole_words_(flag_field(object, "ignore_merges")) {
    read_vocabulary(object);
    read_merges(object);
    if (flag_field(object, "byte_fallback")) bytes_ = ByteTokens(numbers_);
    if (const std::string unknown = text_field(object, "unk_token"); !unknown.empty()) unknown_ = number_of(unknown, "the unk_token");
  }

  const std::vector<std::string>& tokens() const override { return tokens_; }

  void encode(std::string_view word, std::vector<int32_t>& tokens) const override {
    if (takes_whole_words_)
      if (const auto found = numbers_.find(std::string(word)); found != numbers_.end()) return tokens.push_back(found->second);
    const size_t from = tokens.size();
    bool pending = false;  // an unknown token that is not there yet, as the next character may be part of it
    const auto settle = [&] {
      if (pending) tokens.push_back(*unknown_);
      pending = false;
    };
    std::string symbol;
    for (size_t at = 0; at < word.size();) {
      const size_t length = code_point_at(word, at).length;
      symbol = at > 0 ? prefix_ : "";
      symbol += word.substr(at, length);
      at += length;
      if (at == word.size()) symbol += suffix_;
      if (const auto found = numbers_.find(symbol); found != numbers_.end()) {
        settle();
        tokens.push_back(found->second);
      } else if (!bytes_.append(symbol, tokens) && unknown_) {
        if (!fuses_unknown_) settle();
        pending = true;
      }
    }
    settle();
    merges_.apply(tokens, from);
  }

 private:
  int32_t number_of(const std::string& token, const char* what) const {
    const auto found = numbers_.find(token);
    if (found == numbers_.end()) refuse(fmt::format("{} '{}' is no token", what, printable(token)));
    return found->second;
  }

  void read_vocabulary(const Json& object) {
    const Json* vocabulary = find_field(object, "vocab");
    if (!vocabulary || !vocabulary->is_object()) refuse("a model of byte pairs without its 'vocab'");
    for (const auto& [token, number] : vocabulary->items()) {
      // Numbers may leave some out, but not so many that a small file takes much memory.
      const uint64_t limit = 2 * vocabulary->size() + 1024;
      if (!number.is_number_unsigned() || number.get<uint64_t>() >= limit)
        refuse(fmt::format("'{}' is not the number of a token", printable(token)));
      const auto index = number.get<size_t>();
      if (index >= tokens_.size()) tokens_.resize(index + 1);
      if (!tokens_[index].empty()) refuse(fmt::format("token {} is there twice", index));
      tokens_[index] = token;
      numbers_.emplace(token, static_cast<int32_t>(index));
    }
  }

  void read_merges(const Json& object) {
    std::vector<PairMerge> merges;
    for (const Json& row : list_field(object, "merges")) {  // "a b", or ["a", "b"] where tokens hold spaces
      std::string left, right;
      if (row.is_array() && row.size() == 2 && row[0].is_string() && row[1].is_string()) {
        left = row[0], right = row[1];
      } else {
        const std::string both = row.is_string() ? row.get<std::string>() : "";
        const size_t space = both.find(' ');
        if (space == std::string::npos) refuse(fmt::format("merge {} is not two tokens", merges.size()));
        left = both.substr(0, space), right = both.substr(space + 1);
      }
      if (right.size() < prefix_.size()) refuse(fmt::format("merge {} is not two tokens", merges.size()));
      merges.push_back({number_of(left, "of a merge"), number_of(right, "of a merge"),
                        number_of(left + right.substr(prefix_.size()), "what a merge makes,"), static_cast<uint32_t>(merges.size())});
    }
    merges_ = PairMerges(merges);
  }

  std::vector<std::string> tokens_;
  NumberOf numbers_;
  std::string prefix_, suffix_;
  bool fuses_unknown_, takes_whole_words_;
  ByteTokens bytes_;
  std::optional<int32_t> unknown_;
  PairMerges merges_;
};

class WordUnigram : public WordModel {
 public:
  explicit WordUnigram(const Json& object) {
    for (const Json& row : list_field(object, "vocab")) {
      if (!row.is_array() || row.size() != 2 || !row[0].is_string() || !row[1].is_number() || !std::isfinite(row[1].get<double>()))
        refuse(fmt::format("token {} is not a piece and its score", tokens_.size()));
      numbers_.emplace(row[0].get<std::string>(), static_cast<int32_t>(tokens_.size()));
      pieces_.push_back({row[0], row[1].get<double>()});
      tokens_.push_back(row[0]);
    }
    model_.emplace(pieces_, Unigram::Sums::f64);
    if (flag_field(object, "byte_fallback")) bytes_ = ByteTokens(numbers_);
    if (const Json* unknown = find_field(object, "unk_id")) {
      if (!unknown->is_number_unsigned() || unknown->get<uint64_t>() >= tokens_.size()) refuse("its 'unk_id' is no token");
      unknown_ = unknown->get<int32_t>();
    }
  }

  const std::vector<std::string>& tokens() const override { return tokens_; }

  void encode(std::string_view word, std::vector<int32_t>& tokens) const override {
    std::vector<Unigram::Segment> segments;
    double score = 0;
    model_->segment(word, score, segments);
    for (size_t i = 0; i < segments.size(); ++i) {
      if (!is_unknown(segments[i])) {
        tokens.push_back(segments[i].token);
        continue;
      }
      const size_t begin = segments[i].begin;
      while (i + 1 < segments.size() && is_unknown(segments[i + 1])) ++i;
      const std::string_view unknown = word.substr(begin, segments[i].begin + segments[i].length - begin);
      if (bytes_.append(unknown, tokens)) continue;
      if (!unknown_)
        throw RuntimeFailure(FailureKind::data,
                             fmt::format("the vocabulary has no '{}', and no token for what is unknown", printable(unknown)));
      tokens.push_back(*unknown_);
    }
  }

 private:
  bool is_unknown(const Unigram::Segment& segment) const { return segment.token < 0 || segment.token == unknown_; }

  std::vector<std::string> tokens_;
  std::vector<UnigramPiece> pieces_;
  NumberOf numbers_;
  std::optional<Unigram> model_;
  ByteTokens bytes_;
  std::optional<int32_t> unknown_;
};

}  // namespace

std::unique_ptr<WordModel> read_word_model(const Json& object) {
  std::string type = type_of(object);
  if (type.empty()) type = find_field(object, "merges") ? "BPE" : "Unigram";  // as old files leave it out
  if (type == "BPE") return std::make_unique<WordPairs>(object);
  if (type == "Unigram") return std::make_unique<WordUnigram>(object);
  refuse(fmt::format("a model of type '{}'; einc reads BPE and Unigram", type));
}

}  // namespace einc
