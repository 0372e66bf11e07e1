// SPDX-License-Identifier: Apache-2.0
// A `.model` file of sentencepiece: its pieces and settings in protobuf's encoding (sentencepiece_model.proto), read as hostile.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/charsmap.h"

namespace einc {

struct SentencePieceModel {
  enum class Kind : uint8_t { normal = 1, unknown, control, defined, unused, byte };
  struct Piece {
    std::string text;
    float score = 0;
    Kind kind = Kind::normal;
  };
  enum class Algorithm : uint8_t { unigram = 1, byte_pairs };

  std::vector<Piece> pieces;  // by token; no two are equal
  Algorithm algorithm = Algorithm::unigram;
  int32_t unknown = -1;                         // the token of what no piece is
  bool falls_to_bytes = false;                  // what no piece is becomes the tokens of its bytes, of which there are 256 then
  bool space_at_end = false;                    // a word's space stands behind it
  bool adds_space = true;                       // one before the text
  bool removes_spaces = true;                   // at both ends, and all but one of a run
  bool marks_spaces = true;                     // as U+2581
  std::string unknown_text = " \xE2\x81\x87 ";  // what the unknown token decodes to
  std::optional<CharsMap> replacements;
};

// `path` is for messages. Throws RuntimeFailure (data).
SentencePieceModel parse_sentencepiece(std::string_view bytes, const std::string& path);

// Whether a file begins as such a model does: with a piece, which begins with its text.
bool is_sentencepiece(std::string_view start);

}  // namespace einc
