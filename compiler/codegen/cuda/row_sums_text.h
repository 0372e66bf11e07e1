// SPDX-License-Identifier: Apache-2.0
// Sums over the rows of a part, a block's (StoreMode::sum): a thread keeps those of its elements in registers from row to row; the block's
// teams add theirs up in order, and the last stores them.
#pragma once
#include <functional>

#include "compiler/codegen/cuda/team_text.h"

namespace einc {

class RowSumsText : protected TeamText {
 protected:
  using TeamText::TeamText;
  ~RowSumsText() = default;

  // `row` writes what is done at a point.
  void rows_of_a_part(const std::function<void()>& row);
  void add_to_sum(const Store& store);

 private:
  using VisitSum = std::function<void(const Stage& stage, const Store& store)>;
  void for_each_sum(const VisitSum& visit) const;
  int pack_of_rows() const { return plan_.pack_axis ? plan_.pack : 1; }
  int64_t kept() const { return plan_.row_steps * pack_of_rows(); }
  void declare_sums();
  void gather();
  using Gathered = std::function<void(const std::string& own, const std::string& gathered, const std::string& both)>;
  void gather_each(const Gathered& statement);
  void store_sums();
  void store_sum(const Store& store);
};

}  // namespace einc
