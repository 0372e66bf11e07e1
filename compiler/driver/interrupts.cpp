// SPDX-License-Identifier: Apache-2.0
// The handler only sets a flag: nothing else is safe to do there.
#include "compiler/driver/interrupts.h"

#include <atomic>
#include <csignal>
#include <initializer_list>

namespace einc {
namespace {

std::atomic<bool> asked{false};
static_assert(std::atomic<bool>::is_always_lock_free);

}  // namespace

void catch_interrupts(bool of_team) {
  struct sigaction action {};
  action.sa_handler = [](int) { asked = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) continue;
    sigaction(signal, &action, nullptr);
  }
  if (of_team) sigaction(SIGUSR1, &action, nullptr);
}

bool interrupt_asked() { return asked; }

}  // namespace einc
