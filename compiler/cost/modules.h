// SPDX-License-Identifier: Apache-2.0
// Costs by module: every prefix of an instance path ("h", "h.0", "h.0.attn") sums what lies below it. Iterations of a loop
// that cost the same fold in the formulas of the path above them.
#pragma once
#include <string>
#include <vector>

#include "compiler/ir/graph.h"

namespace einc {

enum class ModuleColumn : uint8_t { parameters, flops_forward, flops_step, saved_activations };
inline constexpr int kModuleColumns = 4;

struct ModuleRow {
  std::string path;
  std::array<Poly, kModuleColumns> amounts;
  const Poly& operator[](ModuleColumn column) const { return amounts[static_cast<size_t>(column)]; }
};

class ModuleSums {
 public:
  explicit ModuleSums(const Graph& graph);
  void add(ModuleColumn column, const Origin& origin, const Poly& amount);
  // "" first, then depth first in order of appearance.
  std::vector<ModuleRow> rows() const;

 private:
  struct Entry {
    std::string step;                                                           // last component of the path
    std::vector<uint32_t> children;                                             // in order of appearance
    uint32_t loop = UINT32_MAX;                                                 // when the children are its iterations
    std::array<std::vector<std::pair<uint32_t, int64_t>>, kModuleColumns> own;  // distinct formula, how often
  };
  uint32_t entry_of(const Origin& origin);
  uint32_t child(uint32_t parent, const std::string& step);
  void collect(uint32_t entry, const std::string& path, std::vector<ModuleRow>& rows) const;

  const Graph& graph_;
  std::vector<Entry> entries_{Entry{}};
  std::unordered_map<Name, uint32_t> by_path_;
  std::unordered_map<Poly, uint32_t> index_;
  std::vector<Poly> distinct_;
};

// A path with its loop indices as "*": "h.3.attn" -> "h.*.attn".
std::string starred(const std::string& path);

}  // namespace einc
