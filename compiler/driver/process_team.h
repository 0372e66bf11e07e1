// SPDX-License-Identifier: Apache-2.0
// The processes that a launcher started for one run. The first one speaks and writes; what any of them decides alone, all learn.
#pragma once
#include <functional>
#include <string>

#include "compiler/driver/exit_status.h"
#include "compiler/driver/launcher.h"
#include "runtime/mesh/transport.h"

namespace einc {

// Standard error is not written to while this lives.
class Silence {
 public:
  Silence();
  ~Silence();
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  int before_;
};

class ProcessTeam {
 public:
  ProcessTeam() = default;  // this process alone
  // Opens the plug-in that the others are reached by, or, for GPUs, NCCL, and where MPI connects the processes both. Throws RuntimeFailure
  // (resource): there is none, or it knows of other processes than the launcher.
  ProcessTeam(const Launcher& launcher, const std::string& target);

  bool is_first() const { return transport_ == nullptr || transport_->rank == 0; }
  int size() const { return transport_ == nullptr ? 1 : transport_->size; }
  const EincTransport* transport() const { return transport_; }
  // Threads that are this process' share of a machine's processors.
  int threads() const;
  // Of all processes together, by what each has measured of itself while the others did. All of them ask at the same place.
  double rate_of_all(double own) const;
  // How long a process waits for others from now on.
  void limit_waits(double seconds) const;
  // Whether it is so in any process. All of them ask at the same place.
  bool any(bool here) const;
  // Throws RuntimeFailure (data) where a process has another number than the first.
  void demand_equal(uint64_t number, const std::string& what) const;

  // Runs what all processes do. A failure of one ends all of them with its status, and says which one it was.
  ExitStatus run(const std::function<ExitStatus()>& work) const;

 private:
  [[noreturn]] void fail(const std::string& message, ExitStatus status) const;

  const EincTransport* transport_ = nullptr;
};

}  // namespace einc
