// SPDX-License-Identifier: Apache-2.0
// A second thread that prepares the next batch while the present one is computed. What a batch holds does not depend on it.
#pragma once
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/train/batches.h"

namespace einc {

class Prefetch {
 public:
  // Batches first, first + 1, ... for these inputs. Takes memory for two batches.
  Prefetch(std::shared_ptr<const Batches> batches, std::vector<TensorInfo> inputs, uint64_t first);
  ~Prefetch();
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  // The inputs of the next batch, in the order of the constructor's, aligned to 64 bytes. They stay as they are until the next call.
  // Throws what filling that batch threw, then and ever after.
  std::span<const InputSlot> next();

 private:
  void fill_ahead();

  std::shared_ptr<const Batches> batches_;
  std::vector<TensorInfo> inputs_;
  std::unique_ptr<std::byte[]> memory_;
  std::vector<InputSlot> slots_[2];  // batch first_ + i lies in slots_[i % 2]

  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t first_, filled_ = 0, taken_ = 0;  // batches: filled, and asked for
  bool stops_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace einc
