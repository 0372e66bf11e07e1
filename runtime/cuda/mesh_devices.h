// SPDX-License-Identifier: Apache-2.0
// A part of a program over a mesh on one GPU: from the second run on what is between two agreements of its devices is one captured graph.
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
  // What lies between agreements: where it ends in the plan's steps, and so many launches have run by then.
  struct Segment {
    size_t end = 0;
    uint32_t launches = 0;
    CapturedWork work{};
    size_t marked = 0;  // before it
  };

  void add_checks();
  void enqueue(size_t first, Segment& segment);

  const CudaMeshCode code_;
  std::shared_ptr<CudaMachine> machine_;
  std::optional<DoneMarks> marks_;
  CudaRun run_;
  CudaChecks checks_;
  std::map<uint32_t, size_t> check_of_;  // by value
  std::vector<std::byte> placed_;
  std::vector<Segment> segments_;
  int64_t failing_ = 0;
};

}  // namespace einc
