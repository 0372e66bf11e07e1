// Which launch of a program makes its loss.
#pragma once
#include <algorithm>

#include "runtime/program/executable.h"

namespace einc {

// -1 for none.
inline int64_t loss_launch(const Executable& program) {
  if (program.loss < 0) return -1;
  for (size_t l = 0; l < program.launches.size(); ++l) {
    const std::vector<uint32_t>& buffers = program.launches[l].buffers;
    if (std::find(buffers.begin(), buffers.end(), static_cast<uint32_t>(program.loss)) != buffers.end()) return static_cast<int64_t>(l);
  }
  return -1;
}

}  // namespace einc
