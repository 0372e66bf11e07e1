// A program as generated functions: its forward and, when it trains, its training step.
#pragma once
#include <optional>

#include "runtime/executor/session.h"
#include "runtime/program/executable.h"
#include "runtime/program/kernel_function.h"

namespace einc {

struct NativePart {
  Executable program;
  std::vector<KernelFunction*> functions;  // in the order of the program's
};

class NativeProgram : public ProgramRep {
 public:
  NativeProgram(ProgramInfo program, NativePart forward, std::optional<NativePart> training);
  std::unique_ptr<Runner> start(std::shared_ptr<ThreadPool> pool) const override;

 private:
  NativePart forward_;
  std::optional<NativePart> training_;
};

}  // namespace einc
