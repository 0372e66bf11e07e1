// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/cuda/attention_bounds_text.h"

#include <fmt/format.h>

#include "compiler/codegen/cuda/value_text.h"

namespace einc {

std::string AttentionBoundsText::limit_of(const KeyBound& b) const {
  return b.base == kNoValue ? literal(b.limit) : fmt::format("({} + {})", literal(b.limit), base_.at(b.base));
}

std::vector<std::string> AttentionBoundsText::limits() const {
  const std::string end = fmt::format("(own0 + {})", t_.block() - 1);
  std::vector<std::string> lines;
  for (const KeyBound& b : kernel_.attention->bounds) {
    if (t_.results_over_keys) {
      const bool at_first = (b.side == BoundSide::least) == (b.factor >= 0);
      lines.push_back(limit(b.side, fmt::format("({} * {} + {})", literal(b.factor), at_first ? "own0" : end, limit_of(b))));
    } else if (b.factor == 1) {
      // key <= row + limit: rows from key - limit; key >= row + limit: rows up to it.
      const BoundSide side = b.side == BoundSide::most ? BoundSide::least : BoundSide::most;
      lines.push_back(limit(side, fmt::format("({} - {})", side == BoundSide::least ? "own0" : end, limit_of(b))));
    } else if (b.factor == 0) {
      // The same for all rows: these keys, or none of them.
      const bool most = b.side == BoundSide::most;
      lines.push_back(fmt::format("if ({} {} {}) last = first;", most ? "own0" : end, most ? ">" : "<", limit_of(b)));
    }
  }
  return lines;
}

std::string AttentionBoundsText::limit(BoundSide side, const std::string& at) const {
  if (side == BoundSide::least) return fmt::format("if ({0} > first) first = {0} / {1} * {1};", at, t_.step);
  return fmt::format("if ({0} + 1 < last) last = {0} + 1;", at);
}

// Warps that multiply together go the same way.
std::string AttentionBoundsText::warp_first() const { return t_.wgmma ? "own0" : fmt::format("own0 + warp * {}", t_.warp_rows()); }
std::string AttentionBoundsText::warp_last() const {
  return fmt::format("{} + {}", warp_first(), (t_.wgmma ? t_.block() : t_.warp_rows()) - 1);
}
std::string AttentionBoundsText::other_last() const { return fmt::format("other0 + {}", t_.step - 1); }

std::string AttentionBoundsText::is_beyond() const {
  std::string any;
  const auto add = [&](const std::string& holds) { any += (any.empty() ? "" : " || ") + holds; };
  for (const KeyBound& b : kernel_.attention->bounds) {
    const bool least = b.side == BoundSide::least;
    if (t_.results_over_keys) {
      const std::string row = least == (b.factor >= 0) ? warp_first() : warp_last();
      add(fmt::format("{} {} {} * ({}) + {}", least ? other_last() : "other0", least ? "<" : ">", literal(b.factor), row, limit_of(b)));
    } else if (b.factor == 1) {
      add(fmt::format("{} {} {} - {}", least ? "other0" : other_last(), least ? ">" : "<", least ? warp_last() : warp_first(),
                      limit_of(b)));
    } else if (b.factor == 0) {  // the same for all rows: a warp whose keys lie beyond it has nothing to multiply
      add(fmt::format("{} {} {}", least ? warp_last() : warp_first(), least ? "<" : ">", limit_of(b)));
    }
  }
  return any;
}

std::string AttentionBoundsText::is_whole(const std::vector<KeyMask>& masks) const {
  std::string all;
  const auto require = [&](const std::string& holds) { all += (all.empty() ? "" : " && ") + holds; };
  if (other_has_rest()) require(fmt::format("other0 + {} <= {}", t_.step, kernel_.extent(t_.other)));
  for (const KeyMask& mask : masks) {
    const KeyBound& b = mask.bound;
    const bool least = b.side == BoundSide::least, at_last = least == (b.factor >= 0);
    const std::string row = t_.results_over_keys ? (at_last ? warp_last() : warp_first()) : (at_last ? other_last() : "other0");
    const std::string key = t_.results_over_keys ? (least ? "other0" : other_last()) : (least ? warp_first() : warp_last());
    require(fmt::format("{} {} {} * ({}) + {}", key, least ? ">=" : "<=", literal(b.factor), row, limit_of(b)));
  }
  return all;
}

}  // namespace einc
