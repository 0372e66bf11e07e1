// SPDX-License-Identifier: Apache-2.0
// The handler may interrupt anything, so that it takes no lock and allocates nothing: it walks a list whose nodes are never freed, only
// used again, and asks the system for zero pages in the place of the rest of the mapping.
#include "runtime/data/guarded_mapping.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>

namespace einc {

struct GuardedRange {
  std::atomic<bool> taken{true}, cut{false};
  std::atomic<uintptr_t> begin{0}, end{0};  // empty while it is not used
  GuardedRange* next = nullptr;
};

namespace {

std::atomic<GuardedRange*> ranges{nullptr};
uintptr_t page_bytes = 0;
struct sigaction earlier_action {};

GuardedRange* range_at(uintptr_t address) {
  for (GuardedRange* range = ranges.load(std::memory_order_acquire); range != nullptr; range = range->next)
    if (address >= range->begin && address < range->end) return range;
  return nullptr;
}

bool put_zeros(GuardedRange& range, uintptr_t address) {
  const uintptr_t page = address / page_bytes * page_bytes;
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  if (::mmap(reinterpret_cast<void*>(page), range.end - page, PROT_READ, kFlags, -1, 0) == MAP_FAILED) return false;
  range.cut = true;
  return true;
}

void handle(int signal, siginfo_t* info, void*) {
  const int error = errno;
  const bool touched = info->si_code > 0;  // else somebody sent it
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  GuardedRange* range = touched ? range_at(address) : nullptr;
  if (range == nullptr || !put_zeros(*range, address)) {
    ::sigaction(SIGBUS, &earlier_action, nullptr);  // the access is repeated when this returns
    if (!touched) ::raise(signal);
  }
  errno = error;
}

void install() {
  page_bytes = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  struct sigaction action {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigaction(SIGBUS, &action, &earlier_action);
}

GuardedRange* take_range() {
  for (GuardedRange* range = ranges.load(std::memory_order_acquire); range != nullptr; range = range->next) {
    bool taken = false;
    if (range->taken.compare_exchange_strong(taken, true)) return range;
  }
  auto* made = new GuardedRange;  // for the life of the process
  made->next = ranges.load(std::memory_order_relaxed);
  while (!ranges.compare_exchange_weak(made->next, made, std::memory_order_release)) {
  }
  return made;
}

}  // namespace

GuardedMapping::GuardedMapping(std::span<const std::byte> bytes) {
  [[maybe_unused]] static const bool installed = (install(), true);
  range_ = take_range();
  range_->cut = false;
  range_->begin = reinterpret_cast<uintptr_t>(bytes.data());
  range_->end = (reinterpret_cast<uintptr_t>(bytes.data() + bytes.size()) + page_bytes - 1) / page_bytes * page_bytes;
}

GuardedMapping::~GuardedMapping() {
  range_->end = 0;
  range_->begin = 0;
  range_->taken = false;
}

bool GuardedMapping::is_cut() const { return range_->cut; }

}  // namespace einc
