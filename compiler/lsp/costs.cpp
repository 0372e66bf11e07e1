// SPDX-License-Identifier: Apache-2.0
// The child writes a line for each op: line, FLOPs, bytes, storage, label.
#include "compiler/lsp/costs.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>

namespace einc {
namespace {

[[noreturn]] void run_child(int out, const CostMaker& maker, const std::string& path, const std::string& text) {
  std::string lines;
  try {
    for (const LineCost& cost : maker(path, text))
      lines += fmt::format("{} {} {} {} {}\n", cost.line, cost.flops, cost.bytes, cost.storage, cost.label);
  } catch (...) {
    _exit(1);  // without costs
  }
  for (size_t at = 0; at < lines.size();) {
    const ssize_t count = ::write(out, lines.data() + at, lines.size() - at);
    if (count <= 0) break;
    at += static_cast<size_t>(count);
  }
  _exit(0);
}

}  // namespace

void CostChild::start(const std::string& path, const std::string& text) {
  stop();
  costs_.clear();
  int ends[2];
  if (::pipe(ends) != 0) return;
  child_ = ::fork();
  if (child_ == 0) {
    ::close(ends[0]);
    run_child(ends[1], maker_, path, text);
  }
  ::close(ends[1]);
  descriptor_ = ends[0];
  if (child_ < 0) stop();
}

void CostChild::stop() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
  if (child_ > 0) {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  child_ = -1;
  buffer_.clear();
}

bool CostChild::read() {
  char piece[65536];
  const ssize_t count = ::read(descriptor_, piece, sizeof piece);
  if (count > 0) {
    buffer_.append(piece, static_cast<size_t>(count));
    return false;
  }
  if (count < 0 && errno == EINTR) return false;
  std::istringstream lines(buffer_);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    LineCost cost;
    if (words >> cost.line >> cost.flops >> cost.bytes >> cost.storage) costs_.push_back(cost), words >> costs_.back().label;
  }
  stop();
  return true;
}

}  // namespace einc
