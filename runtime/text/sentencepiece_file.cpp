// SPDX-License-Identifier: Apache-2.0
#include "runtime/text/sentencepiece_file.h"

#include <fmt/format.h>

#include <cmath>
#include <unordered_set>

#include "runtime/base/failure.h"
#include "runtime/base/printable.h"
#include "runtime/text/protobuf.h"

namespace einc {
namespace {

using Kind = SentencePieceModel::Kind;

// One message after the other; numbers of fields as in sentencepiece_model.proto.
class ModelReader {
 public:
  explicit ModelReader(const std::string& path) : path_(path) {}

  SentencePieceModel read(std::string_view bytes) {
    each_field(bytes, [&](const ProtobufField& field) {
      if (field.number == 1) read_piece(field.text);
      if (field.number == 2) read_trainer(field.text);
      if (field.number == 3) read_normalizer(field.text);
      if (field.number == 5) read_denormalizer(field.text);
    });
    check();
    return std::move(model_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw RuntimeFailure(FailureKind::data, fmt::format("{}: {}", printable(path_), what));
  }

  template <class Take>
  void each_field(std::string_view message, const Take& take) const {
    ProtobufReader reader(message);
    while (const auto field = reader.next()) take(*field);
    if (!reader.is_whole()) fail("not a model of sentencepiece");
  }

  void read_piece(std::string_view message) {
    SentencePieceModel::Piece piece;
    each_field(message, [&](const ProtobufField& field) {
      if (field.number == 1) piece.text = field.text;
      if (field.number == 2) piece.score = field.as_float();
      if (field.number != 3) return;
      if (field.value < 1 || field.value > 6)
        fail(fmt::format("piece {} is of kind {}; there are 1 to 6", model_.pieces.size(), field.value));
      piece.kind = static_cast<Kind>(field.value);
    });
    if (piece.text.empty()) fail(fmt::format("piece {} is empty", model_.pieces.size()));
    if (!std::isfinite(piece.score)) fail(fmt::format("the score of piece {} is not finite", model_.pieces.size()));
    model_.pieces.push_back(std::move(piece));
  }

  void read_trainer(std::string_view message) {
    each_field(message, [&](const ProtobufField& field) {
      if (field.number == 3) {
        if (field.value != 1 && field.value != 2)
          fail("einc reads unigram and byte-pair models of sentencepiece, not those of words or characters");
        model_.algorithm = static_cast<SentencePieceModel::Algorithm>(field.value);
      }
      if (field.number == 24) model_.space_at_end = field.value != 0;
      if (field.number == 35) model_.falls_to_bytes = field.value != 0;
      if (field.number == 44) model_.unknown_text = field.text;
    });
  }

  void read_normalizer(std::string_view message) {
    each_field(message, [&](const ProtobufField& field) {
      if (field.number == 2 && !field.text.empty() && !(model_.replacements = CharsMap::read(field.text)))
        fail("its table of replacements is damaged");
      if (field.number == 3) model_.adds_space = field.value != 0;
      if (field.number == 4) model_.removes_spaces = field.value != 0;
      if (field.number == 5) model_.marks_spaces = field.value != 0;
    });
  }

  void read_denormalizer(std::string_view message) {
    each_field(message, [&](const ProtobufField& field) {
      if (field.number == 2 && !field.text.empty()) fail("it replaces strings of decoded text (a denormalizer), which einc does not");
    });
  }

  void check() {
    std::unordered_set<std::string_view> seen;
    size_t bytes = 0;
    for (size_t i = 0; i < model_.pieces.size(); ++i) {
      const SentencePieceModel::Piece& piece = model_.pieces[i];
      if (!seen.insert(piece.text).second) fail(fmt::format("the piece '{}' is there twice", printable(piece.text)));
      if (piece.kind == Kind::unknown) {
        if (model_.unknown >= 0) fail(fmt::format("pieces {} and {} are both the unknown one", model_.unknown, i));
        model_.unknown = static_cast<int32_t>(i);
      }
      if (piece.kind == Kind::byte) ++bytes;
      if (piece.kind == Kind::unused && model_.algorithm == SentencePieceModel::Algorithm::byte_pairs)
        fail(fmt::format("piece {} is unused; in a model of byte pairs einc does not read such", i));
    }
    if (model_.unknown < 0) fail("no piece is the unknown one");
    for (int byte = 0; model_.falls_to_bytes && byte < 256; ++byte)
      if (!seen.contains(fmt::format("<0x{:02X}>", byte))) fail(fmt::format("no piece is the byte <0x{:02X}>", byte));
    if (model_.falls_to_bytes && bytes != 256) fail(fmt::format("{} pieces are bytes, not 256", bytes));
  }

  const std::string& path_;
  SentencePieceModel model_;
};

}  // namespace

SentencePieceModel parse_sentencepiece(std::string_view bytes, const std::string& path) { return ModelReader(path).read(bytes); }

bool is_sentencepiece(std::string_view start) {
  if (start.size() < 4 || start[0] != '\x0A') return false;
  // The first piece's own first byte stands behind its length, which is one byte or two.
  return start[2] == '\x0A' || (static_cast<unsigned char>(start[1]) >= 0x80 && start[3] == '\x0A');
}

}  // namespace einc
