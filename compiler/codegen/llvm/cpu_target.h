// The processor that code is made for, and the way from a module of LLVM IR to text, assembly or an object file.
//   CpuTarget target = CpuTarget::host();
//   llvm::Module module("kernels", context);
//   target.adopt(module);                      // triple and data layout, before anything is emitted
//   ... emit functions ...
//   target.optimize(module);
//   std::string object = target.object(module);
#pragma once
#include <string>

#include "compiler/lower/processor.h"

namespace llvm {
class Module;
}

namespace einc {

class CpuTarget {
 public:
  // The processor this runs on, with every feature it has.
  static const CpuTarget& host();

  const Processor& processor() const { return processor_; }
  const std::string& triple() const { return triple_; }
  const std::string& cpu() const { return cpu_; }

  // All that decides an object's bytes besides the module: processor, features, LLVM's version, the passes below.
  const std::string& key() const { return key_; }

  void adopt(llvm::Module& module) const;

  // Cleans up what an emitter writes naively and lowers nothing: loops are neither unrolled nor vectorised, and floating
  // operations are fused only where they carry the `contract` flag. A module that is not well formed is an InternalError.
  void optimize(llvm::Module& module) const;

  // Position-independent code: the same bytes run in this process and link into any program.
  std::string object(llvm::Module& module) const;
  std::string assembly(llvm::Module& module) const;

 private:
  CpuTarget() = default;

  std::string triple_, cpu_, features_, key_;
  Processor processor_;
};

std::string llvm_text(const llvm::Module& module);

}  // namespace einc
