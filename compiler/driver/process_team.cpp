// SPDX-License-Identifier: Apache-2.0
// A process that fails alone ends the others by the engine: they may wait for it in an exchange for ever.
#include "compiler/driver/process_team.h"

#include <einc/error.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <thread>

#include "compiler/driver/standard_streams.h"
#include "runtime/base/failure.h"
#include "runtime/cuda/nccl_team.h"
#include "runtime/mesh/processes.h"

namespace einc {
namespace {

// What fails in all processes alike, the first one says; the others leave it this time.
constexpr std::chrono::milliseconds kFirstSpeaks{500};

}  // namespace

Silence::Silence() : before_(dup(STDERR_FILENO)) {
  if (const int none = open("/dev/null", O_WRONLY); none >= 0) dup2(none, STDERR_FILENO), close(none);
}

Silence::~Silence() {
  std::fflush(stderr);
  if (before_ >= 0) dup2(before_, STDERR_FILENO), close(before_);
}

ProcessTeam::ProcessTeam(const Launcher& launcher, const std::string& target) {
  const bool gpus = target == "cuda";
  if (gpus) cuda::Gpu::take_by_local_rank(local_rank());
  const auto rank = static_cast<int>(launcher.rank), size = static_cast<int>(launcher.processes);
  if (gpus && !is_connected(launcher)) {
    const std::string place = meeting_place();
    if (place.empty())
      throw RuntimeFailure(FailureKind::resource,
                           "nobody tells where the processes meet: set NCCL_COMM_ID=HOST:PORT, of the first one's machine");
    setenv("NCCL_COMM_ID", place.c_str(), 1);
    transport_ = cuda::NcclTeam::open(rank, size, nullptr).transport();
    return;
  }
  const EincTransport* opened = open_transport();
  if (opened->size != launcher.processes)
    throw RuntimeFailure(
        FailureKind::resource,
        fmt::format("{} started {} processes, but this one is reached by {}: start einc by the launcher of the MPI that the "
                    "plug-in was built with",
                    launcher.name, launcher.processes, opened->size - 1));
  transport_ = opened;
  if (gpus) cuda::NcclTeam::open(opened->rank, opened->size, opened);
}

int ProcessTeam::threads() const { return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / local_processes(size())); }

double ProcessTeam::rate_of_all(double own) const {
  if (transport_ == nullptr) return own;
  const std::vector<double> rates = numbers_of_all(*transport_, own);
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

void ProcessTeam::limit_waits(double seconds) const {
  if (transport_ != nullptr) transport_->limit(transport_->context, seconds);
  if (cuda::NcclTeam* gpus = cuda::NcclTeam::get()) gpus->limit(seconds);
}

bool ProcessTeam::any(bool here) const {
  return transport_ == nullptr ? here : std::ranges::max(numbers_of_all<uint8_t>(*transport_, here ? 1 : 0)) != 0;
}

void ProcessTeam::demand_equal(uint64_t number, const std::string& what) const {
  if (transport_ != nullptr) einc::demand_equal(*transport_, number, what);
}

void ProcessTeam::fail(const std::string& message, ExitStatus status) const {
  if (!is_first()) std::this_thread::sleep_for(kFirstSpeaks);
  if (!message.empty()) fmt::print(stderr, "einc: process {} of {}: {}\n", transport_->rank, transport_->size, message);
  finish_output();
  std::fflush(stderr);
  transport_->end_all(transport_->context, static_cast<int>(status));
  std::abort();  // end_all does not return
}

ExitStatus ProcessTeam::run(const std::function<ExitStatus()>& work) const {
  if (transport_ == nullptr) return work();
  ExitStatus status{};
  try {
    status = work();
    // What a run ends with otherwise, one process has found alone: the others may wait for it.
    if (status != ExitStatus::done && status != ExitStatus::interrupted) fail("", status);
  } catch (const RuntimeFailure& failure) {
    // Of numbers all know, since they agree on them.
    if (failure.kind() != FailureKind::numeric) fail(failure.what(), status_of(failure.kind()));
    if (is_first()) fmt::print(stderr, "einc: {}\n", failure.what());
    status = ExitStatus::non_finite;
  } catch (const Error& error) {
    fail(error.what(), static_cast<ExitStatus>(error.kind()));
  } catch (const std::exception& error) {
    fail(std::string("internal error: ") + error.what(), ExitStatus::internal);
  }
  transport_->finish(transport_->context);
  return status;
}

}  // namespace einc
