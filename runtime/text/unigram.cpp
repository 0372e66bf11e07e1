// SPDX-License-Identifier: Apache-2.0
#include "runtime/text/unigram.h"

#include <algorithm>
#include <limits>

#include "runtime/text/utf8.h"

namespace einc {
namespace {

constexpr double kUnknownPenalty = 10;  // below the least likely piece, in both libraries
constexpr size_t kNowhere = ~size_t{0};

}  // namespace

template <class Real>
struct Unigram::PathEnd {  // of the best path to a byte
  Real score = 0;
  int32_t token = -1;
  size_t begin = kNowhere;  // of its last segment
};

Unigram::Unigram(const std::vector<UnigramPiece>& pieces, Sums sums) : sums_(sums) {
  double least = std::numeric_limits<double>::infinity(), largest = -least;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const UnigramPiece& piece = pieces[i];
    scores_.push_back({piece.score, piece.kind == UnigramPiece::Kind::defined});
    if (piece.text.empty()) continue;
    if (piece.kind == UnigramPiece::Kind::plain) least = std::min(least, piece.score), largest = std::max(largest, piece.score);
    if (piece.kind != UnigramPiece::Kind::unused) trie_.add(piece.text, static_cast<int32_t>(i));
  }
  if (least > largest) least = largest = 0;
  largest_score_ = largest;
  unknown_score_ = sums == Sums::f32 ? static_cast<float>(least) - static_cast<float>(kUnknownPenalty) : least - kUnknownPenalty;
}

template <class Real>
double Unigram::best_path(std::string_view text, Real start, std::vector<Segment>& segments) const {
  std::vector<PathEnd<Real>> ends(text.size() + 1);
  ends[0].score = start;
  for (size_t at = 0; at < text.size();) {
    const Real before = ends[at].score;
    const auto propose = [&](size_t length, Real score, int32_t token) {
      PathEnd<Real>& end = ends[at + length];
      if (end.begin == kNowhere || score > end.score) end = {score, token, at};
    };
    const size_t character = code_point_at(text, at).length;
    bool found_character = false;
    trie_.prefixes(text.substr(at), [&](size_t length, int32_t token) {
      const Score& own = scores_[static_cast<size_t>(token)];
      // What is chosen wherever it can be counts as much as its characters could at best, but a little.
      const Real score =
          own.defined ? static_cast<Real>(length) * static_cast<Real>(largest_score_) - Real(0.1) : static_cast<Real>(own.value);
      propose(length, score + before, token);
      found_character = found_character || length == character;
    });
    if (!found_character) propose(character, static_cast<Real>(unknown_score_) + before, -1);
    at += character;
  }
  const size_t first = segments.size();
  for (size_t at = text.size(); at > 0; at = ends[at].begin) segments.push_back({ends[at].begin, at - ends[at].begin, ends[at].token});
  std::reverse(segments.begin() + static_cast<std::ptrdiff_t>(first), segments.end());
  return static_cast<double>(ends[text.size()].score);
}

template double Unigram::best_path(std::string_view, float, std::vector<Segment>&) const;
template double Unigram::best_path(std::string_view, double, std::vector<Segment>&) const;

}  // namespace einc
