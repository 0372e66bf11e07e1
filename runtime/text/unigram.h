// SPDX-License-Identifier: Apache-2.0
// Segmentation by a unigram language model (Kudo, "Subword regularization", 2018): of all ways to cut a text into pieces the one whose
// scores (logarithms of probabilities) add up to most, found from the left (Viterbi). Rounding and the choice among equal sums are those
// of the library that a vocabulary comes from: sentencepiece adds in f32, tokenizers in f64.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/piece_trie.h"

namespace einc {

struct UnigramPiece {
  std::string text;
  double score;
  enum class Kind : uint8_t { plain, defined, unused } kind = Kind::plain;  // defined: chosen wherever it can be
};

class Unigram {
 public:
  struct Segment {
    size_t begin, length;  // bytes
    int32_t token;         // -1: a character that no piece is
  };
  enum class Sums : uint8_t { f32, f64 };

  // Scores are finite. Pieces without text, as for control tokens, are never found.
  Unigram(const std::vector<UnigramPiece>& pieces, Sums sums);

  // Appends the segments of a text. `score` is that of the text before, and becomes that of the text up to here.
  void segment(std::string_view text, double& score, std::vector<Segment>& segments) const {
    score = sums_ == Sums::f32 ? best_path(text, static_cast<float>(score), segments) : best_path(text, score, segments);
  }

 private:
  template <class Real>
  struct PathEnd;
  template <class Real>
  double best_path(std::string_view text, Real start, std::vector<Segment>& segments) const;

  struct Score {
    double value;
    bool defined;
  };
  PieceTrie trie_;
  std::vector<Score> scores_;  // by token
  Sums sums_;
  double unknown_score_ = 0, largest_score_ = 0;
};

}  // namespace einc
