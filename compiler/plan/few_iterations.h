// SPDX-License-Identifier: Apache-2.0
// A program with few iterations of its loops stands for the whole one: what a step takes grows by the same amount with each further layer,
// so that two small programs tell of any number. Loops whose count does more than that (a tensor's size, a branch, a loop within a loop)
// keep it.
#pragma once
#include <span>
#include <vector>

#include "compiler/pipeline/pipeline.h"

namespace einc {

class FewIterations {
 public:
  // `options` without a mesh; every dim has a value in `dims`.
  FewIterations(const Compilation& whole, const PipelineOptions& options, const Bindings& dims);

  // Dims of programs to measure: few iterations, then one more of each loop in turn. The whole program's alone where nothing is left out.
  const std::vector<Bindings>& samples() const { return samples_; }
  // Dims of a program whose formulas fold to any number of iterations (cost/sum.h): two of each loop are neither its first nor its last.
  const Bindings& folding() const { return folding_; }
  // Of the single loop, so many times its iterations.
  Bindings folding(int64_t times) const;
  // Dims that only count iterations left out.
  const std::vector<Name>& counts() const { return counts_; }
  // The dim left out where it is the only one and counts a single loop: what stages may share. Empty: none.
  Name single() const { return single_; }
  // What the whole program takes, from what the samples do, in their order.
  double whole(std::span<const double> of_samples) const;
  Rational whole(std::span<const Rational> of_samples) const;
  // Of one loop left short, what grows evenly only from so many iterations on, by what two programs with more of them take.
  struct Taken {
    int64_t iterations;
    double amount;
  };
  double whole(const Taken& shorter, const Taken& longer) const;

 private:
  std::vector<Name> counts_;
  Name single_;
  std::vector<Bindings> samples_;
  Bindings folding_;
  std::vector<int64_t> more_;  // by loop left short: iterations beyond the first sample's
};

}  // namespace einc
