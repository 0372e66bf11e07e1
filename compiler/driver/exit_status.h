// SPDX-License-Identifier: Apache-2.0
// The exit statuses of the command line, as documented for users.
#pragma once
#include "runtime/base/failure.h"

namespace einc {

enum class ExitStatus : int {
  done = 0,
  wrong_program = 1,
  wrong_usage = 2,
  wrong_data = 3,
  environment = 4,
  non_finite = 5,
  internal = 70,
  interrupted = 130,
};

inline ExitStatus status_of(FailureKind kind) {
  switch (kind) {
    case FailureKind::data:
      return ExitStatus::wrong_data;
    case FailureKind::resource:
      return ExitStatus::environment;
    case FailureKind::numeric:
      return ExitStatus::non_finite;
  }
  return ExitStatus::internal;
}

}  // namespace einc
