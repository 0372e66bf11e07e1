// SPDX-License-Identifier: Apache-2.0
// What can be told of an attention kernel before any processor is known: whether it is one, which keys its rows need, in which
// order its values are made.
#pragma once
#include <map>
#include <span>
#include <string>

#include "compiler/lower/kernel.h"
#include "compiler/lower/kernel_work.h"
#include "compiler/lower/point_values.h"

namespace einc {

// What is wrong with kernel.attention, or nothing.
std::string verify_attention(const Kernel& kernel);

// Divisions by a value per row become products with its reciprocal, which is made once per row.
void divide_by_multiplying(Kernel& kernel);

// A comparison of row and key without which a pair adds nothing anywhere (the mask makes its score -inf), for all other values being
// finite. It is `within` for the pairs that the bound holds of, and not for others.
struct KeyMask {
  ValueId comparison = kNoValue;
  bool within = true;
  KeyBound bound;
};
std::vector<KeyMask> find_key_masks(const Kernel& kernel);

// Fills attention->bounds: those of its masks. No bounds when they would leave some row of some device without keys, whose weights are NaN.
// They are none where the row's maximum is raised to another number before it is subtracted, and in a backward whose forward is elsewhere
// (`lone_backward`), which is given what it subtracts: there such a row has what all of its keys would give it, nothing.
void find_key_bounds(Kernel& kernel, bool lone_backward);

// What each bound adds to its limit at each point of each device (0 where it has no base). nullopt: that cannot be told.
std::optional<PointValues> bases_of(const Kernel& kernel, std::span<const KeyBound> bounds);

// Keys first .. last-1 that some row of first_row .. last_row needs, in whole blocks. `bases`: of each bound, what it adds to the limit.
struct KeyRange {
  int64_t first = 0, last = 0;
  int64_t count() const { return last - first; }
};
KeyRange keys_of(const Kernel& kernel, int64_t first_row, int64_t last_row, std::span<const int64_t> bases);

// Pairs that are made at all points of batch and turns, those of keys that are skipped not among them. Where devices of a mesh have bounds
// of their own, those of the device that makes most.
int64_t pairs_made(const Kernel& kernel);

// A block of rows runs its scores, then loops over its keys one after the other, then its mixes and gathers. A loop makes
// folds that depend on none but earlier loops' and keeps values per pair in tiles, for the products and for later loops.
struct AttentionLoop {
  std::vector<uint16_t> folds;
  std::vector<ValueId> kept;
  std::vector<ValueId> read;  // what earlier loops have kept
  std::vector<bool> made;     // values made here
};
struct AttentionSchedule {
  std::vector<AttentionLoop> loops;
  std::map<uint16_t, int> scores_tile;  // per product
  std::map<ValueId, int> kept_tile;
  int tiles = 0;
};
AttentionSchedule schedule_attention(const Kernel& kernel);

// Of the keys that are not skipped, with what is made again.
KernelCount count_attention(const Kernel& kernel);

}  // namespace einc
