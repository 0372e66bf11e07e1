// SPDX-License-Identifier: Apache-2.0
// Which pairs of attention on tensor cores count, in the text's own variables: a block keeps places `own0` to own0 + block - 1, a warp of
// it those from own0 + warp * warp_rows, and a tile of the other axis begins at `other0`. Bounds are lines in row and key, so that the
// first and the last place of either side decide for all between them.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "compiler/gpu_plan/attention_tiles.h"
#include "compiler/lower/attention.h"

namespace einc {

class AttentionBoundsText {
 public:
  AttentionBoundsText(const Kernel& kernel, const AttentionTiles& tiles) : kernel_(kernel), t_(tiles) {}

  // What a value that bounds add to their limits is called.
  void name_base(ValueId base, std::string text) { base_[base] = std::move(text); }

  // Statements that narrow `first` and `last`, the other axis' places that count for the block, in whole tiles.
  std::vector<std::string> limits() const;
  // Whether a tile that counts for the block has no pair that counts for the warp. Empty: never.
  std::string is_beyond() const;
  // Whether a tile lies whole within the axis and the bound of every mask, for all places of the warp: then masks are constants. Empty:
  // always.
  std::string is_whole(const std::vector<KeyMask>& masks) const;
  bool other_has_rest() const { return kernel_.extent(t_.other) % t_.step != 0; }

 private:
  std::string limit(BoundSide side, const std::string& at) const;
  std::string limit_of(const KeyBound& b) const;
  std::string warp_first() const;
  std::string warp_last() const;
  std::string other_last() const;

  const Kernel& kernel_;
  const AttentionTiles& t_;
  std::map<ValueId, std::string> base_;
};

}  // namespace einc
