// SPDX-License-Identifier: Apache-2.0
#include "runtime/text/sentencepiece.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/text/byte_alphabet.h"
#include "runtime/text/utf8.h"
#include "runtime/text/word_cache.h"

namespace einc {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";    // U+2581
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD, for a byte that is not UTF-8
constexpr size_t kLongestPiece = 1 << 20;                  // bytes encoded at once: text without spaces takes no more memory than that
constexpr size_t kPieceTokens = 4096;
using Kind = SentencePieceModel::Kind;

// As the unigram model sees them.
std::vector<UnigramPiece> unigram_pieces(const SentencePieceModel& model) {
  std::vector<UnigramPiece> pieces;
  for (const SentencePieceModel::Piece& piece : model.pieces) {
    const bool is_text = piece.kind == Kind::normal || piece.kind == Kind::defined || piece.kind == Kind::unused;
    const auto kind = piece.kind == Kind::defined  ? UnigramPiece::Kind::defined
                      : piece.kind == Kind::unused ? UnigramPiece::Kind::unused
                                                   : UnigramPiece::Kind::plain;
    pieces.push_back({is_text ? piece.text : "", piece.score, kind});
  }
  return pieces;
}

// Whether a space stands behind something else in it.
bool goes_on_behind_space(std::string_view text, std::string_view space) {
  bool other = false;
  for (size_t at = 0; at < text.size();) {
    const bool is_space = text.substr(at).starts_with(space);
    if (is_space && other) return true;
    other = other || !is_space;
    at += is_space ? space.size() : 1;
  }
  return false;
}

// Symbols that stand for a character which no piece has: distinct, and joined with none.
int32_t symbol_of_unknown(int32_t character) { return -2 - character; }
int32_t character_of_unknown(int32_t symbol) { return -2 - symbol; }

}  // namespace

SentencePieceTokenizer::SentencePieceTokenizer(SentencePieceModel model)
    : model_(std::move(model)), space_(model_.marks_spaces ? kSpaceMark : " "), unigram_(unigram_pieces(model_), Unigram::Sums::f32) {
  for (size_t i = 0; i < model_.pieces.size(); ++i) {
    const SentencePieceModel::Piece& piece = model_.pieces[i];
    const bool is_text = piece.kind == Kind::normal || piece.kind == Kind::defined;
    if (piece.kind == Kind::defined) defined_.add(piece.text, static_cast<int32_t>(i));
    if (is_text && goes_on_behind_space(piece.text, space_)) words_are_apart_ = false;
    decoded_.push_back(decoded(piece));
    if (piece.kind == Kind::byte && decoded_.back().size() == 1)
      byte_tokens_[static_cast<unsigned char>(decoded_.back()[0])] = static_cast<int32_t>(i);
  }
  if (model_.algorithm == SentencePieceModel::Algorithm::byte_pairs) prepare_byte_pairs();
}

// Two neighbours join when together they are a piece; the piece of the highest score first. So each way to cut a piece in two symbols is
// a merge.
void SentencePieceTokenizer::prepare_byte_pairs() {
  std::vector<int32_t> order;
  std::unordered_map<std::string_view, int32_t> parts;
  for (size_t i = 0; i < model_.pieces.size(); ++i) {
    if (model_.pieces[i].kind != Kind::normal) continue;
    order.push_back(static_cast<int32_t>(i));
    parts.emplace(model_.pieces[i].text, static_cast<int32_t>(i));
  }
  const auto score = [&](int32_t token) { return model_.pieces[static_cast<size_t>(token)].score; };
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return score(a) > score(b); });
  for (const int32_t token : order) {
    const std::string_view text = model_.pieces[static_cast<size_t>(token)].text;
    for (size_t at = 0; at < text.size();) {
      const CodePoint point = code_point_at(text, at);
      const auto [found, fresh] = parts.emplace(text.substr(at, point.length), size() + static_cast<int32_t>(characters_.size()));
      if (fresh) characters_.push_back(point.value);
      if (point.value >= 0) symbols_[point.value] = found->second;
      at += point.length;
    }
  }
  std::vector<PairMerge> merges;
  uint32_t urgency = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i > 0 && score(order[i]) < score(order[i - 1])) ++urgency;
    const std::string_view text = model_.pieces[static_cast<size_t>(order[i])].text;
    for (size_t cut = code_point_at(text, 0).length; cut < text.size(); cut += code_point_at(text, cut).length) {
      const auto left = parts.find(text.substr(0, cut)), right = parts.find(text.substr(cut));
      if (left != parts.end() && right != parts.end()) merges.push_back({left->second, right->second, order[i], urgency});
    }
  }
  merges_ = PairMerges(merges);
}

CharsMap::Match SentencePieceTokenizer::normalized_prefix(std::string_view text) const {
  if (const PieceTrie::Match whole = defined_.longest(text); whole.length > 0) return {whole.length, text.substr(0, whole.length)};
  if (model_.replacements)
    if (const auto match = model_.replacements->longest(text)) return *match;
  const CodePoint point = code_point_at(text, 0);
  return {point.length, point.value < 0 ? kReplacement : text.substr(0, point.length)};
}

// One text on its way: characters come in normalized, words go out as tokens.
class SentencePieceTokenizer::Encoding {
 public:
  Encoding(const SentencePieceTokenizer& owner, size_t text_bytes, const Sink& sink)
      : owner_(owner), sink_(sink), cache_(text_bytes), behind_space_(owner.model_.removes_spaces) {}

  void take(std::string_view text) {
    const SentencePieceModel& model = owner_.model_;
    while (!text.empty()) {
      auto [length, normal] = owner_.normalized_prefix(text);
      text.remove_prefix(length);
      if (!started_ && !(model.removes_spaces && normal == " ")) start();
      while (behind_space_ && normal.starts_with(' ')) normal.remove_prefix(1);
      if (!normal.empty()) {
        add(normal);
        behind_space_ = normal.ends_with(' ');
      }
      if (!model.removes_spaces) behind_space_ = false;
    }
  }

  void finish() {
    const SentencePieceModel& model = owner_.model_;
    if (!started_) return;
    while (model.removes_spaces && word_.ends_with(owner_.space_)) word_.erase(word_.size() - owner_.space_.size());
    if (model.space_at_end && model.adds_space) add(" ");
    encode_word();
    send();
  }

 private:
  void start() {
    started_ = true;
    if (owner_.model_.adds_space && !owner_.model_.space_at_end) add(" ");
  }

  // Where no piece crosses the start of a word, words are encoded alone, which a cache makes fast; else the text is one word.
  void add(std::string_view normal) {
    for (const char c : normal) {
      const bool is_space = c == ' ' && owner_.model_.marks_spaces;
      // A word ends before a space that something else stands before.
      if (owner_.words_are_apart_ && c == ' ' && !word_.empty() && !word_.ends_with(owner_.space_)) encode_word();
      if (word_.size() >= kLongestPiece && (static_cast<unsigned char>(c) & 0xC0) != 0x80) encode_word();
      if (is_space)
        word_ += kSpaceMark;
      else
        word_ += c;
    }
  }

  // The unigram model's score goes on from word to word: in f32 the rounding of a sum decides between cuts of nearly equal score, and the
  // library adds up a whole text.
  void encode_word() {
    if (word_.empty()) return;
    if (owner_.model_.algorithm == SentencePieceModel::Algorithm::byte_pairs) {
      cache_.append(word_, tokens_,
                    [&](std::string_view word, std::vector<int32_t>& tokens) { owner_.encode_word_by_pairs(word, tokens); });
    } else {
      segments_.clear();
      owner_.unigram_.segment(word_, score_, segments_);
      for (const Unigram::Segment& segment : segments_) {
        if (segment.token >= 0)
          tokens_.push_back(segment.token);
        else
          owner_.append_unknown(std::string_view(word_).substr(segment.begin, segment.length), tokens_);
      }
    }
    word_.clear();
    if (tokens_.size() >= kPieceTokens) send();
  }

  // A run of unknown characters is one token.
  void send() {
    const int32_t unknown = owner_.model_.unknown;
    size_t kept = 0;
    for (const int32_t token : tokens_) {
      if (token != unknown || last_ != unknown) tokens_[kept++] = token;
      last_ = token;
    }
    tokens_.resize(kept);
    if (!tokens_.empty()) sink_(tokens_);
    tokens_.clear();
  }

  const SentencePieceTokenizer& owner_;
  const Sink& sink_;
  WordCache cache_;
  std::string word_;
  std::vector<int32_t> tokens_;
  std::vector<Unigram::Segment> segments_;
  double score_ = 0;
  bool started_ = false, behind_space_;
  int32_t last_ = -1;
};

void SentencePieceTokenizer::encode(std::string_view text, const Sink& sink) const {
  Encoding encoding(*this, text.size(), sink);
  encoding.take(text);
  encoding.finish();
}

void SentencePieceTokenizer::append_unknown(std::string_view characters, std::vector<int32_t>& tokens) const {
  if (!model_.falls_to_bytes) return tokens.push_back(model_.unknown);
  for (const char byte : characters) tokens.push_back(byte_tokens_[static_cast<unsigned char>(byte)]);
}

void SentencePieceTokenizer::encode_word_by_pairs(std::string_view word, std::vector<int32_t>& tokens) const {
  std::vector<int32_t> symbols;
  size_t from = 0;  // pieces that stay whole divide the word
  for (size_t at = 0; at < word.size();) {
    if (const PieceTrie::Match whole = defined_.longest(word.substr(at)); whole.length > 0) {
      merges_.apply(symbols, from);
      symbols.push_back(whole.id);
      from = symbols.size();
      at += whole.length;
      continue;
    }
    const CodePoint point = code_point_at(word, at);
    const auto found = symbols_.find(point.value);
    symbols.push_back(found == symbols_.end() ? symbol_of_unknown(point.value) : found->second);
    at += point.length;
  }
  merges_.apply(symbols, from);
  for (const int32_t symbol : symbols) {
    if (symbol >= 0 && symbol < size()) {
      tokens.push_back(symbol);
      continue;
    }
    std::string character;
    append_code_point(character, symbol < 0 ? character_of_unknown(symbol) : characters_[static_cast<size_t>(symbol - size())]);
    append_unknown(character, tokens);
  }
}

std::string SentencePieceTokenizer::decoded(const SentencePieceModel::Piece& piece) const {
  switch (piece.kind) {
    case Kind::control:
      return "";
    case Kind::unknown:
      return model_.unknown_text;
    case Kind::byte: {
      const auto byte = byte_of_piece(piece.text);
      return byte ? std::string(1, *byte) : piece.text;
    }
    case Kind::normal:
    case Kind::defined:
    case Kind::unused:
      break;
  }
  std::string text;
  for (size_t at = 0; at < piece.text.size();) {
    const bool is_space = std::string_view(piece.text).substr(at).starts_with(kSpaceMark);
    text += is_space ? ' ' : piece.text[at];
    at += is_space ? kSpaceMark.size() : 1;
  }
  return text;
}

void SentencePieceTokenizer::decode(std::span<const int32_t> tokens, std::string& text, TextPart part) const {
  // The space that encoding puts before a text goes, and with it all that stand there where encoding removes them.
  bool at_start = part == TextPart::start && (model_.adds_space || model_.removes_spaces);
  for (const int32_t token : tokens) {
    const auto& piece = model_.pieces[static_cast<size_t>(token)];
    std::string_view bytes = decoded_[static_cast<size_t>(token)];
    if (at_start && piece.kind != Kind::control) {
      const bool had_space = (piece.kind == Kind::normal || piece.kind == Kind::defined || piece.kind == Kind::unused) &&
                             std::string_view(piece.text).starts_with(kSpaceMark);
      if (had_space) bytes.remove_prefix(1);
      at_start = had_space && bytes.empty() && model_.removes_spaces;
    }
    text += bytes;
  }
}

}  // namespace einc
