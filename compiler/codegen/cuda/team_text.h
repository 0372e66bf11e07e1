// SPDX-License-Identifier: Apache-2.0
// What the threads that do an outer point together share: who is who, loops divided among them, reductions across them.
#pragma once
#include "compiler/codegen/cuda/value_text.h"
#include "compiler/gpu_plan/thread_plan.h"

namespace einc {

class TeamText : protected ValueText {
 protected:
  TeamText(const Kernel& kernel, const ThreadPlan& plan) : ValueText(kernel), plan_(plan) {}
  ~TeamText() = default;

  bool is_team() const { return plan_.kind != CudaTeam::thread; }
  bool packed(AxisId axis) const { return plan_.pack_axis == axis; }
  DType dtype_of(const Store& s) const { return kernel_.buffers[s.buffer].dtype; }
  std::string rank() const;
  void barrier();

  // axes from a flat number of elements, neighbours last; the last in units of `pack`.
  void decode(const std::vector<AxisId>& axes, const std::string& number);
  int64_t packs_of(const std::vector<AxisId>& axes) const { return plan_.packs_of(kernel_, axes); }
  bool keeps_row(const std::vector<AxisId>& axes) const { return plan_.row_steps > 0 && !axes.empty(); }
  // Opens the loop over a thread's steps `t` through a row, each with its registers.
  void row_loop(const std::vector<AxisId>& axes);

  void declare_shared();
  // Reductions of what each thread has, in all of them.
  void finish(const std::vector<uint16_t>& reductions);

  const ThreadPlan& plan_;
  bool synchronised_ = false;  // the last stage ended with a barrier

 private:
  void join(uint16_t reduction, const std::string& x, const std::string& place);
};

}  // namespace einc
