// SPDX-License-Identifier: Apache-2.0
// Scalar values of a kernel as instructions: what every emitter of loops shares. The loops set axis_ (and the lanes); values
// are computed on demand, once per scope.
#pragma once
#include <llvm/IR/Function.h>
#include <llvm/IR/Module.h>

#include <functional>
#include <unordered_map>

#include "compiler/codegen/llvm/registers.h"
#include "compiler/lower/kernel.h"
#include "compiler/lower/kernel_target.h"

namespace einc {

// The dtype a result of `dtype` is computed in.
DType compute_dtype(DType dtype);

class ValueEmitter {
 protected:
  using Register = llvm::Value*;
  using Scope = std::unordered_map<ValueId, Register>;

  // Makes the function of a kernel (runtime/program/kernel_function.h) and loads its arguments.
  ValueEmitter(llvm::Module& module, const std::string& name, const Kernel& kernel);

  // scalar + step * lane + extra: where lane 0 lies, how far lanes are apart, and what is different in each lane.
  struct Place {
    Register scalar = nullptr;
    int64_t step = 0;
    Register extra = nullptr;
  };
  static bool is_wide(const Place& p) { return p.step != 0 || p.extra; }

  static bool keeps_position(const Accumulation& r) { return r.fold == Fold::arg_max || r.fold == Fold::arg_min; }
  DType folded_dtype(const Accumulation& r) const { return compute_dtype(keeps_position(r) ? kernel_.values[r.value].dtype : r.dtype); }

  llvm::ConstantInt* i64(int64_t value) { return b_.getInt64(static_cast<uint64_t>(value)); }
  Register field(size_t offset, llvm::Type* type);
  llvm::BasicBlock* block(const char* name);
  // for (i = begin; i < end; i += step) body(i), values made in the body forgotten after it.
  void for_loop(Register begin, Register end, Register step, const std::function<void(Register)>& body);
  void if_then(Register condition, const std::function<void()>& body);
  llvm::Constant* lane_numbers(llvm::Type* scalar, int64_t step = 1);

  void find_needed(const Stage& stage) { needed_ = needed_by(kernel_, stage); }

  Register value(ValueId id);
  Register as(ValueId id, DType dtype);
  // The f32 that a bf16 value is rounded from; null where it is read or rounded in another way.
  Register before_rounding(ValueId id);
  Register combine(Fold fold, Register a, Register x);
  Register extreme(llvm::CmpInst::Predicate beats, Register a, Register x);
  virtual Register running_value(const Scalar& v);

  Place place_of(const Subscript& index);
  Register element(uint16_t buffer, Register index);
  llvm::Align align(uint16_t buffer) const { return llvm::Align(static_cast<uint64_t>(bytes_of(kernel_.buffers[buffer].dtype))); }
  void emit_store(const Store& store);
  void emit_store(const Store& store, const Place& place, Register value);
  // What a store that folds in place makes of an element.
  Register element_at(const Store& store, const Place& place);
  Register folded(const Store& store, Register element);

  ~ValueEmitter() = default;

  const Kernel& kernel_;
  const std::vector<uint64_t> axes_of_;
  llvm::Module& module_;
  llvm::LLVMContext& context_;
  IrBuilder b_;
  llvm::Function* function_ = nullptr;
  llvm::BasicBlock* entry_ = nullptr;
  std::vector<Register> axis_;     // per axis of the kernel, in lane 0; null outside its loop
  std::vector<Register> results_;  // of reductions
  std::vector<Scope> scopes_;
  std::vector<bool> needed_;
  std::optional<AxisId> lane_axis_;
  int lanes_ = 1;
  // Lane 0 of the lane axis is a multiple of lanes_.
  enum class LaneStart { anywhere, aligned } lane_start_ = LaneStart::anywhere;
  Register mask_ = nullptr;         // lanes that take part; null: all
  Register taking_part_ = nullptr;  // so many, the first, where that is what the mask says
  bool sums_are_normal_ = false;    // 0 or not subnormal, for the unit that made them has no subnormal numbers
  // By buffer (or empty): vectors are fetched a page ahead of where they are read; whole vectors are stored past the caches.
  std::vector<bool> fetched_, streamed_;

 private:
  void load_arguments();
  Register compute(const Scalar& v);
  Register divided(const Scalar& v);
  bool fits_32_bits(const Scalar& v) const;
  std::optional<Place> linear(ValueId id);
  Register map(const Scalar& v);
  Register random(const Scalar& v);
  Register drawn(const Scalar& v, const Place& place);
  Register wide_index(const Place& p);
  Register as_number(const Place& p, DType dtype);
  Register guard(const Scalar& v);
  Register active(Register guard);
  Register by_lane(Register condition, Register lanes);
  Register all_lanes();
  void fetch_ahead(Register address, int64_t bytes);
  Register read(uint16_t buffer, const Place& p, Register guard);
  Register checked(const Scalar& v);

  std::vector<Register> buffers_, streams_;
  Register step_ = nullptr;
};

}  // namespace einc
