// SPDX-License-Identifier: Apache-2.0
// Runs a program over a mesh: devices of this process take each step of the plan one after another, in memory of their own. A session's
// memory holds whole params and states; devices work on parts of them, which are cut out when somebody wrote the whole, and put together
// when somebody reads it.
#pragma once
#include "runtime/base/failure.h"
#include "runtime/mesh/engine.h"
#include "runtime/mesh/mesh_program.h"
#include "runtime/mesh/part_devices.h"

namespace einc {

class MeshRunner : public Runner {
 public:
  MeshRunner(const MeshProgram& program, std::shared_ptr<ThreadPool> pool);

  void bind(Source source, void* memory) override;
  void fetch(Source source) override;
  void written(Source source) override;
  void forget(Source source) override;
  void release(Source source) override;
  NonFinite run_while_finite(Part part, uint64_t seed, uint64_t step) override;
  std::string find_fault(Part part, NonFinite what, uint64_t seed, uint64_t step) override;
  TensorView output(uint32_t index) const override;
  TensorView gradient(uint32_t param) const override;
  TensorView loss(Part part) const override;
  std::string numerics(Part part) override;
  const PartDevices& devices(Part part) const { return *parts_[part]->devices; }

 private:
  struct RunningPart {
    const MeshPlan& plan;
    std::unique_ptr<PartDevices> devices;
    std::vector<bool> fresh;  // by MeshPlan::sources: what devices hold is the newest
  };
  // A source in the session's memory.
  struct Whole {
    std::byte* memory = nullptr;
    bool fresh = true;
    bool shared = false;
    bool released = false;  // its memory holds nothing while devices have the newest
  };

  Whole& whole(Source source) { return whole_[static_cast<size_t>(source.kind)][source.index]; }
  const TensorInfo& info(Source source) const { return sources_of(program_.info, source.kind)[source.index]; }
  void cut_out(RunningPart& part);
  void cut_out(RunningPart& part, size_t source);
  void empty(Source source);
  int64_t held() const { return engine_.last() - engine_.first(); }
  // Puts the parts of a value together.
  void gather(const RunningPart& part, uint32_t value, const PartLayout& layout, const TensorInfo& tensor, std::byte* whole) const;
  template <class Ask>
  auto ask_whole(Part part, Ask ask);
  [[noreturn]] void refuse_element(const RuntimeFailure& found, int64_t device, Part part, uint64_t seed, uint64_t step);
  NonFinite fault_of(const RunningPart& part) const;
  void store(RunningPart& part);
  TensorView put_together(Part part, const MeshResult& result, const TensorInfo& info) const;

  const MeshProgram& program_;
  std::shared_ptr<ThreadPool> pool_;
  LentPool lent_;
  mutable MeshEngine engine_;
  PerPart<RunningPart> parts_;
  std::vector<Whole> whole_[3];                          // by kind
  mutable std::vector<std::vector<std::byte>> results_;  // that were asked for since the last run
  mutable std::vector<std::byte> loss_;
  Part last_ = Part::forward;
};

}  // namespace einc
