// SPDX-License-Identifier: Apache-2.0
// Groups while kernels are formed, and which of them are not tried as one kernel at all.
#pragma once
#include <string>
#include <vector>

#include "compiler/fuse/value_places.h"

namespace einc {

// A value of fewer elements than this part of the largest that a kernel reads or makes is one number for each row, as a norm's deviation.
inline constexpr int64_t kRowsNumber = 8;

struct GroupWork {
  Group group;
  bool alive = true;
  GraphKernel* attention = nullptr;  // already a kernel, joined to no other
  bool simple = false;               // elementwise nodes of one shape that read each other element by element
  // Of the members:
  bool checked = false, guarded = false, ordered = false, for_library = false;
  bool transposes = false, reduces_rows = false, tables = false;
  bool collective = false;         // devices of a mesh make it together
  bool late = false;               // of the forward, made again in the backward under a memory limit
  bool pulled = false;             // follows from gradients of outputs, in a pullback
  bool goes_with_product = false;  // a sum that a library makes beside its product
  bool given_numbers = false;      // of a mesh's device: the forward's numbers that follow from what is given
  // Where what reduces a whole value joins the kernel that goes over it: such a number of a large value, and numbers made of several such.
  bool reduces_whole = false, gathers = false;
  uint32_t dry = 0;  // of an update's check: the number of what is looked at together
  int contractions = 0, reductions = 0;
  AxisList reduced{};  // axes that the first reduction sums over
  int64_t contracted = 0, largest = 0;

  // What is known of the members of both; the groups themselves are the caller's.
  void take(const GroupWork& other);
};

class JoinRules {
 public:
  // Once it is known where values are made.
  JoinRules(const BoundGraph& graph, const ValuePlaces& values, const KernelTarget& target);

  GroupWork work_of(NodeId id) const;
  // Why two groups, the first of which the second reads, are not tried; empty when they are.
  std::string unsuitable(const GroupWork& a, const GroupWork& b) const;

 private:
  // Values whose neighbours in memory lie along another axis than those of what they are made of, and what is made for those alone.
  void find_transposes();
  // Such as scales of fp8 values, which follow from states.
  void find_given_numbers();
  // Numbers made of those that whole large values are reduced to.
  void find_gathering();
  bool only_reduced(NodeId id) const;
  bool is_reduced_otherwise(NodeId id, const AxisList& axes) const;

  const BoundGraph& graph_;
  const ValuePlaces& values_;
  const KernelTarget& target_;
  std::vector<bool> transposes_;
  std::vector<bool> given_numbers_;
  std::vector<NodeId> whole_;  // per number: the reduction of a large value that it is made of; invalid: none
  std::vector<bool> gathers_;  // per number: of several
};

}  // namespace einc
