// SPDX-License-Identifier: Apache-2.0
// The exit statuses of the command line, as documented for users.
#pragma once

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

}  // namespace einc
