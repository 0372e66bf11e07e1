// SPDX-License-Identifier: Apache-2.0
// Which of cuBLASLt's algorithms multiplies matrices of which shape, and whether with what is made of the product: measured once for each
// shape and kept in a file, because another algorithm sums in another order. A text file of one line for each shape; lines are added, never
// changed.
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "runtime/cuda/cublaslt_api.h"

namespace einc::cuda {

class AlgorithmTable {
 public:
  // $EINC_GEMM_TABLE, else gemm_algorithms.txt in the cache's folder: the one of this process.
  static AlgorithmTable& get();
  // Empty: nothing is kept. A file that is not a table, or that others may have written, is not read, and not written either.
  explicit AlgorithmTable(std::filesystem::path file);

  struct Entry {
    LtAlgorithm algorithm;
    size_t workspace_bytes = 0;
    bool operator==(const Entry&) const = default;
  };
  // `key`: all that the choice depends on, in one line. `choose` is asked when the table has none.
  Entry of(const std::string& key, const std::function<Entry()>& choose);
  // Whether a product and what is made of it are one call or launches of their own; whether attention is a plug-in's or our own kernels'.
  enum class Way : uint8_t { together, apart, library, own };
  Way way_of(const std::string& key, const std::function<Way()>& choose);
  // Of the entries that this process has used: what a run's bits depend on.
  uint64_t used_hash() const;

 private:
  void read();
  void append(const std::string& key, const std::string& value);

  std::filesystem::path file_;
  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, Way> ways_;
  std::set<std::string> used_;
};

}  // namespace einc::cuda
