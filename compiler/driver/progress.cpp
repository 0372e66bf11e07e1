// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "compiler/driver/command_line.h"
#include "compiler/driver/train.h"
#include "runtime/base/failure.h"
#include "runtime/base/start_thread.h"

namespace einc {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kSilence = std::chrono::seconds(2);
constexpr auto kPeriod = std::chrono::milliseconds(200);

double seconds_since(Clock::time_point time) { return std::chrono::duration<double>(Clock::now() - time).count(); }

}  // namespace

Progress::Progress(std::string command) : command_(std::move(command)), begin_(Clock::now()), counted_from_(begin_) {
  if (color_for(STDERR_FILENO) != Color::on) return;
  try {
    thread_ = start_thread([this] { draw_again_and_again(); });
  } catch (const RuntimeFailure&) {  // no thread to spare: what matters goes on without
  }
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  end_.notify_one();
  thread_.join();
}

void Progress::show(std::string doing, int64_t done, int64_t all) {
  const std::lock_guard lock(mutex_);
  if (done == 0 || all != all_) counted_from_ = Clock::now();
  doing_ = std::move(doing);
  done_ = done;
  all_ = all;
}

std::string Progress::line() const {
  std::string text = command_ + ": " + doing_;
  if (all_ > 0) text += fmt::format(" {} of {}", done_, all_);
  if (done_ > 0)
    text +=
        fmt::format(", {} left", duration(seconds_since(counted_from_) / static_cast<double>(done_) * static_cast<double>(all_ - done_)));
  else
    text += fmt::format(", {} so far", duration(seconds_since(begin_)));
  return text;
}

void Progress::draw_again_and_again() {
  std::unique_lock lock(mutex_);
  if (end_.wait_for(lock, kSilence, [this] { return ended_; })) return;
  do {
    const auto room = static_cast<size_t>(std::max(terminal_width(STDERR_FILENO) - 1, 0));
    fmt::print(stderr, "\r\x1b[K{}", line().substr(0, room));
    std::fflush(stderr);
  } while (!end_.wait_for(lock, kPeriod, [this] { return ended_; }));
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
}

}  // namespace einc
