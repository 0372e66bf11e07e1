// SPDX-License-Identifier: Apache-2.0
// A part of a program over a mesh on one GPU: from the second run on all of a step is one captured graph.
#pragma once
#include <map>
#include <optional>

#include "runtime/cuda/cuda_run.h"
#include "runtime/mesh/part_devices.h"

namespace einc {

class CudaDevices : public PartDevices {
 public:
  CudaDevices(const CudaMeshCode& code, std::shared_ptr<CudaMachine> machine);
  ~CudaDevices() override;

  std::byte* place(int64_t d, uint32_t value) override;
  void written(int64_t d, uint32_t value) override;
  const std::byte* read(int64_t d, uint32_t value, std::vector<std::byte>& room) const override;
  void copy(uint32_t value, uint32_t target) override;
  NonFinite run(uint64_t seed, uint64_t step) override;
  int64_t failing_device() const override { return failing_; }
  bool holds_numbers(uint32_t value) const override;
  bool may_store(uint32_t value, uint32_t) const override;
  std::string numerics() override;

 private:
  void add_checks();
  void enqueue();

  const CudaMeshCode code_;
  std::shared_ptr<CudaMachine> machine_;
  std::optional<DoneMarks> marks_;
  CudaRun run_;
  CudaChecks checks_;
  std::map<uint32_t, size_t> check_of_;  // by value
  std::vector<std::byte> placed_;
  CapturedWork step_;
  int64_t failing_ = 0;
};

}  // namespace einc
