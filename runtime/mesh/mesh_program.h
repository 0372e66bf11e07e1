// SPDX-License-Identifier: Apache-2.0
// A program carried out by the devices of a mesh: those of this process one after another, step by step, each with memory of its own.
// From outside it is as any other program: sources and results are whole.
#pragma once
#include <functional>
#include <memory>

#include "runtime/executor/session.h"
#include "runtime/mesh/mesh_plan.h"
#include "runtime/mesh/transport.h"

namespace einc {

// What the devices sent in one run, all together.
struct SentBytes {
  CollectiveKind kind = CollectiveKind::all_reduce;
  int mesh_axis = 0;
  int64_t bytes = 0;
};

// Of one run: how long each step of the plan computed, and each collective took, by their numbers.
struct MeshTimes {
  std::vector<double> compute_s, collective_s;
  double all_s = 0;
};

class LentPool;
class MeshEngine;
class PartDevices;

class MeshProgram : public ProgramRep {
 public:
  // Compiles the program without its mesh: to tell where in it a fault is.
  using Whole = std::function<std::shared_ptr<const ProgramRep>()>;

  // `transport`: null where this process holds all devices.
  MeshProgram(ProgramInfo program, MeshShape mesh, PerPart<MeshPlan> parts, const EincTransport* transport, Whole whole = {});
  std::unique_ptr<Runner> start(std::shared_ptr<ThreadPool> pool, int device) const override;
  int64_t planned_bytes(int threads) const override;
  // Of the process that takes the most, the first: by what all can tell alike.
  int64_t most_planned_bytes(int threads) const { return bytes_of(threads, 0); }
  int64_t bytes_of(int threads, int64_t rank) const;
  bool has(Part part) const override { return parts_[part].has_value(); }

  // Of each part; what they are given outlives them.
  virtual PerPart<std::unique_ptr<PartDevices>> devices(MeshEngine& engine, LentPool& lent, std::shared_ptr<ThreadPool> pool) const;

  const MeshShape& mesh() const { return mesh_; }
  const PerPart<MeshPlan>& parts() const { return parts_; }
  const EincTransport* transport() const { return transport_; }
  int64_t held() const { return mesh_.devices() / (transport_ == nullptr ? 1 : transport_->size); }  // devices, by this process
  std::shared_ptr<const ProgramRep> whole() const { return whole_ ? whole_() : nullptr; }

 private:
  int64_t whole_bytes(bool first) const;
  int64_t packed_bytes(int64_t rank) const;
  int64_t working_of(int64_t device, int threads) const;

  MeshShape mesh_;
  PerPart<MeshPlan> parts_;
  const EincTransport* transport_;
  Whole whole_;
};

// Of the part's last run, in the order of its collectives. The runner is one of a MeshProgram.
std::vector<SentBytes> bytes_sent(const Runner& runner, Part part);
const MeshTimes& mesh_times(const Runner& runner, Part part);

}  // namespace einc
