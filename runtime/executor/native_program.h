// SPDX-License-Identifier: Apache-2.0
// A program as generated functions, by part.
#pragma once
#include "runtime/executor/session.h"
#include "runtime/program/executable.h"
#include "runtime/program/kernel_function.h"

namespace einc {

struct NativePart {
  Executable program;
  std::vector<KernelFunction*> functions;  // in the order of the program's
  std::optional<size_t> first_half{};      // launches that make the outputs of a pullback (fuse/pullback_halves.h)
};

class NativeProgram : public ProgramRep {
 public:
  NativeProgram(ProgramInfo program, PerPart<NativePart> parts);
  std::unique_ptr<Runner> start(std::shared_ptr<ThreadPool> pool, int device) const override;
  int64_t planned_bytes(int threads) const override;
  bool has(Part part) const override { return parts_[part].has_value(); }

 private:
  PerPart<NativePart> parts_;
};

}  // namespace einc
