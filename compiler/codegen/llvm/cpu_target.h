// SPDX-License-Identifier: Apache-2.0
// The processor that code is made for, and the way from a module of LLVM IR to text, assembly or an object file.
//   CpuTarget target = CpuTarget::host();
//   llvm::Module module("kernels", context);
//   target.adopt(module);                      // triple and data layout, before anything is emitted
//   ... emit functions ...
//   target.optimize(module);
//   std::string object = target.object(module);
#pragma once
#include <optional>
#include <string>

#include "compiler/lower/processor.h"

namespace llvm {
class Module;
}

namespace einc {

class CpuTarget {
 public:
  // The processor this runs on, with every feature it has; or, where EINC_CPU names one whose code runs here, that one. RuntimeFailure
  // where it names another.
  static const CpuTarget& host();
  // Any processor of the host's architecture with AVX2 and FMA, by LLVM's name for it ("znver4", "x86-64-v3"), or "host". Caches of
  // a processor that is not the host are taken to be small.
  static std::optional<CpuTarget> named(const std::string& cpu);

  const Processor& processor() const { return processor_; }
  const std::string& triple() const { return triple_; }
  const std::string& cpu() const { return cpu_; }
  // Of cpu_feature_names(), those that its code may make use of, in the form of missing_cpu_features.
  std::string required_features() const;

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
  static const CpuTarget& found();
  void describe();  // what follows from triple, cpu and features

  std::string triple_, cpu_, features_, key_;
  Processor processor_;
};

std::string llvm_text(const llvm::Module& module);

}  // namespace einc
