// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/llvm/emit_kernel.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>

#include <algorithm>

#include "compiler/codegen/llvm/emit_values.h"
#include "compiler/codegen/llvm/transpose.h"
#include "runtime/base/check.h"

namespace einc {
namespace {

using llvm::BasicBlock;
namespace intrinsic = llvm::Intrinsic;
using Register = llvm::Value*;

// Of rows that are folded into: how many iterations before, and how much of a row; the processor goes on along it by itself. A table that
// is smaller than that stays in a second cache.
constexpr int64_t kRowsAhead = 16, kFetchedOfRow = 512, kFetchedTable = 1 << 19;

class KernelEmitter : ValueEmitter {
 public:
  KernelEmitter(llvm::Module& module, const std::string& name, const Kernel& kernel, const LoopPlan& plan)
      : ValueEmitter(module, name, kernel), plan_(plan), needs_(reductions_of_values(kernel)) {
    accumulators_.resize(kernel.reductions.size());
    streamed_ = plan.streamed;
  }

  void run() {
    if (plan_.owns_rows)
      owned_rows();
    else
      for_loop(function_->getArg(1), function_->getArg(2), i64(1), [&](Register point) {
        decode(point);
        outer_loops(0);
      });
    // Other threads may read what was stored past the caches once the launch is over.
    if (std::find(streamed_.begin(), streamed_.end(), true) != streamed_.end()) b_.CreateIntrinsic(intrinsic::x86_sse_sfence, {}, {});
    b_.CreateRetVoid();
  }

 private:
  // Lanes along `axis` from `begin` to `end`: whole vectors, then one with the lanes that are left.
  void vector_loop(AxisId axis, Register begin, Register end, bool may_have_rest, const std::function<void()>& body) {
    lane_axis_ = axis;
    lanes_ = plan_.lanes;
    Register whole = b_.CreateSub(end, b_.CreateURem(b_.CreateSub(end, begin), i64(lanes_)));
    for_loop(begin, whole, i64(lanes_), [&](Register i) {
      axis_[axis] = i;
      body();
    });
    if (may_have_rest)
      if_then(b_.CreateICmpSLT(whole, end), [&] {
        axis_[axis] = whole;
        Register left = b_.CreateTrunc(b_.CreateSub(end, whole), b_.getInt32Ty());
        mask_ = b_.CreateICmpULT(lane_numbers(b_.getInt32Ty()), splat(b_, left, lanes_));
        taking_part_ = left;
        body();
        mask_ = taking_part_ = nullptr;
      });
    lane_axis_.reset();
    lanes_ = 1;
  }

  // --- loops ---

  void decode(Register point) {
    Register rest = point;
    if (plan_.outer_vector) {
      const int64_t chunks = chunks_of(kernel_.extent(*plan_.outer_vector), plan_.chunk);
      chunk_ = chunks == 1 ? i64(0) : b_.CreateURem(rest, i64(chunks));
      if (chunks > 1) rest = b_.CreateUDiv(rest, i64(chunks));
    }
    if (plan_.turned) {
      const int64_t chunks = chunks_of(kernel_.extent(*plan_.turned), plan_.turned_chunk);
      turned_chunk_ = b_.CreateURem(rest, i64(chunks));
      rest = b_.CreateUDiv(rest, i64(chunks));
    }
    for (size_t k = plan_.divided.size(); k-- > 0;) {
      const AxisId axis = plan_.divided[k];
      axis_[axis] = k == 0 ? rest : b_.CreateURem(rest, i64(kernel_.extent(axis)));
      if (k > 0) rest = b_.CreateUDiv(rest, i64(kernel_.extent(axis)));
    }
  }

  // All points at once, of the rows that are this thread's.
  void owned_rows() {
    if_then(b_.CreateICmpSLT(function_->getArg(1), function_->getArg(2)), [&] {
      decode(i64(0));
      plan_.whole_rows ? stages() : outer_loops(0);
    });
  }

  // Whether what the stage folds into now is this thread's.
  Register is_own(const Store& store) {
    Register row = as(store.index.dynamic.front().value, DType::i64);
    return b_.CreateAnd(b_.CreateICmpSGE(row, function_->getArg(1)), b_.CreateICmpSLT(row, function_->getArg(2)));
  }

  // Rows that indices find come from anywhere: those of later iterations of `axis` are on their way meanwhile.
  void fetch_rows(const Store& store, AxisId axis) {
    const BufferUse& buffer = kernel_.buffers[store.buffer];
    const AxisId along = *plan_.outer_vector;
    const Scalar& position = kernel_.values[store.index.dynamic.front().value];
    const int64_t row = kernel_.extent(along) * bytes_of(buffer.dtype);
    const Scalar* index = &kernel_.values[position.operands[0]];
    while (index->kind == ScalarKind::cast) index = &kernel_.values[index->operands[0]];
    if (index->kind != ScalarKind::load || !index->index.dynamic.empty()) return;  // what is computed would be so twice
    if (buffer.count * bytes_of(buffer.dtype) < kFetchedTable || kernel_.extent(axis) <= kRowsAhead) return;
    Register now = axis_[axis], column = axis_[along];
    scopes_.emplace_back();
    axis_[axis] = b_.CreateBinaryIntrinsic(intrinsic::smin, b_.CreateAdd(now, i64(kRowsAhead)), i64(kernel_.extent(axis) - 1));
    if (plan_.whole_rows) axis_[along] = i64(0);
    Register found = b_.CreateBinaryIntrinsic(intrinsic::umin, as(position.operands[0], DType::i64), i64(position.integer - 1));
    scopes_.back()[store.index.dynamic.front().value] = found;
    Register address = element(store.buffer, place_of(store.index).scalar);
    if_then(b_.CreateAnd(b_.CreateICmpSGE(found, function_->getArg(1)), b_.CreateICmpSLT(found, function_->getArg(2))), [&] {
      for (int64_t line = 0; line < std::min(row, kFetchedOfRow); line += kCacheLine)
        prefetch(b_, b_.CreateConstGEP1_64(b_.getInt8Ty(), address, static_cast<uint64_t>(line)), Prefetch::to_write);
    });
    scopes_.pop_back();
    axis_[axis] = now;
    axis_[along] = column;
  }

  void outer_loops(size_t level) {
    if (level < plan_.inner.size()) {
      const AxisId axis = plan_.inner[level];
      for_loop(i64(0), i64(kernel_.extent(axis)), i64(1), [&](Register i) {
        axis_[axis] = i;
        outer_loops(level + 1);
      });
      return;
    }
    if (!plan_.outer_vector) return point();
    if (plan_.turned) return tile();
    const int64_t extent = kernel_.extent(*plan_.outer_vector);
    Register begin = b_.CreateMul(chunk_, i64(plan_.chunk));
    Register end = plan_.chunk == extent ? i64(extent) : end_of(begin, plan_.chunk, extent);
    const bool may_have_rest = extent % plan_.lanes != 0 || plan_.chunk % plan_.lanes != 0;
    vector_loop(*plan_.outer_vector, begin, end, may_have_rest, [&] { point(); });
  }

  // --- a tile with loads whose neighbours lie along another axis than the lanes ---

  Register end_of(Register begin, int64_t chunk, int64_t extent) {
    return b_.CreateBinaryIntrinsic(intrinsic::smin, b_.CreateAdd(begin, i64(chunk)), i64(extent));
  }

  Register whole_vectors(Register begin, Register end) {
    return b_.CreateSub(end, b_.CreateURem(b_.CreateSub(end, begin), i64(plan_.lanes)));
  }

  void tile() {
    const AxisId along = *plan_.outer_vector, turned = *plan_.turned;
    find_needed(kernel_.stages[0]);
    find_turned();
    Register begin = b_.CreateMul(turned_chunk_, i64(plan_.turned_chunk));
    Register end = end_of(begin, plan_.turned_chunk, kernel_.extent(turned)), whole = whole_vectors(begin, end);
    Register first = b_.CreateMul(chunk_, i64(plan_.chunk));
    Register last = end_of(first, plan_.chunk, kernel_.extent(along));
    auto rows = [&](Register from) {
      for_loop(from, end, i64(1), [&](Register k) {
        axis_[turned] = k;
        point();
      });
    };
    vector_loop(along, first, last, kernel_.extent(along) % plan_.lanes != 0, [&] {
      if (mask_) return rows(begin);
      for_loop(begin, whole, i64(plan_.lanes), [&](Register k) { square(axis_[along], k); });
      rows(whole);
    });
  }

  void find_turned() {
    for (ValueId id = 0; id < kernel_.values.size(); ++id) {
      const Scalar& v = kernel_.values[id];
      if (!needed_[id] || !is_turned(v, *plan_.outer_vector, *plan_.turned)) continue;
      const auto lanes = static_cast<unsigned>(plan_.lanes);
      auto* row = llvm::FixedVectorType::get(storage_type(context_, kernel_.buffers[v.slot].dtype), lanes);
      turned_.push_back({id, slot(llvm::ArrayType::get(row, lanes))});
    }
  }

  // As many elements along the lanes as along the turned axis: loaded along the one, transposed, used along the other.
  void square(Register first, Register row) {
    const AxisId along = *plan_.outer_vector, turned = *plan_.turned;
    for (const auto& [id, columns] : turned_) {
      const Scalar& v = kernel_.values[id];
      llvm::Type* type = columns->getAllocatedType();
      std::vector<Register> lines;
      axis_[turned] = row;
      for (int k = 0; k < plan_.lanes; ++k) {
        axis_[along] = b_.CreateAdd(first, i64(k));
        lines.push_back(b_.CreateAlignedLoad(type->getArrayElementType(), element(v.slot, place_of(v.index).scalar), align(v.slot)));
      }
      lines = transpose(b_, std::move(lines));
      for (size_t k = 0; k < lines.size(); ++k) b_.CreateStore(lines[k], b_.CreateConstInBoundsGEP2_64(type, columns, 0, k));
    }
    axis_[along] = first;
    for_loop(i64(0), i64(plan_.lanes), i64(1), [&](Register k) {
      axis_[turned] = b_.CreateAdd(row, k);
      for (const auto& [id, columns] : turned_) {
        llvm::Type* type = columns->getAllocatedType();
        Register column = b_.CreateLoad(type->getArrayElementType(), b_.CreateInBoundsGEP(type, columns, {i64(0), k}));
        scopes_.back()[id] = from_storage(b_, column, kernel_.buffers[kernel_.values[id].slot].dtype);
      }
      point();
    });
  }

  void point() {
    if (!kernel_.sequence) return stages();
    for_loop(i64(0), i64(kernel_.extent(*kernel_.sequence)), i64(1), [&](Register i) {
      axis_[*kernel_.sequence] = i;
      stages();
    });
  }

  void stages() {
    for (size_t s = 0; s < kernel_.stages.size(); ++s) emit_stage(s);
  }

  // --- a stage ---

  void emit_stage(size_t s) {
    const Stage& stage = kernel_.stages[s];
    const std::optional<AxisId> vector = plan_.whole_rows ? plan_.outer_vector : plan_.outer_vector ? std::nullopt : plan_.stage_vector[s];
    std::vector<AxisId> loops = stage.axes;
    if (vector) {
      std::erase(loops, *vector);
      loops.push_back(*vector);
    }
    find_needed(stage);
    find_fetched(stage, vector);
    for (uint16_t r : stage.reductions) start(r, vector.has_value());
    if (plan_.kept[s]) start_kept(stage.stores.front());
    stage_loops(stage, loops, vector, 0);
    if (kept_) store_kept(stage.stores.front());
    kept_.reset();
    for (uint16_t r : stage.reductions) finish(r);
  }

  // --- an element that is folded into, in registers until the next one is ---

  // Sums are made in the order of the stage, as through memory, so the bits are the same; only the stores come later, and fewer.

  void start_kept(const Store& store) {
    const DType dtype = compute_dtype(kernel_.buffers[store.buffer].dtype);
    llvm::Type* type = register_type(context_, dtype);
    if (lane_axis_) type = llvm::FixedVectorType::get(type, static_cast<unsigned>(lanes_));
    kept_ = Kept{slot(type), slot(b_.getInt64Ty())};
    b_.CreateStore(i64(-1), kept_->place);
  }

  Place place_of_kept() { return {b_.CreateLoad(b_.getInt64Ty(), kept_->place), lane_axis_ ? 1 : 0, nullptr}; }

  void store_kept(const Store& store) {
    const Place place = place_of_kept();
    if_then(b_.CreateICmpSGE(place.scalar, i64(0)),
            [&] { emit_store(store, place, b_.CreateLoad(kept_->element->getAllocatedType(), kept_->element)); });
  }

  void fold_into_kept(const Store& store) {
    if (!plan_.owns_rows) return fold_own(store);
    if_then(is_own(store), [&] { fold_own(store); });
  }

  void fold_own(const Store& store) {
    llvm::Type* type = kept_->element->getAllocatedType();
    const Place place = place_of(store.index);
    if_then(b_.CreateICmpNE(place.scalar, place_of_kept().scalar), [&] {
      store_kept(store);
      b_.CreateStore(splat(b_, element_at(store, place), lanes_of(type)), kept_->element);
      b_.CreateStore(place.scalar, kept_->place);
    });
    // Rounded each time, as a store would round it.
    Register x = folded(store, b_.CreateLoad(type, kept_->element));
    b_.CreateStore(round_to(b_, x, kernel_.buffers[store.buffer].dtype), kept_->element);
  }

  // Buffers that this stage is the first to read, when its innermost loop goes along the lanes.
  void find_fetched(const Stage& stage, std::optional<AxisId> vector) {
    const bool along_lanes = vector || (plan_.outer_vector && stage.axes.empty());
    fetched_.assign(kernel_.buffers.size(), false);
    for (ValueId id = 0; id < kernel_.values.size(); ++id) {
      const Scalar& v = kernel_.values[id];
      if (!needed_[id] || v.kind != ScalarKind::load || read_before_[v.slot]) continue;
      fetched_[v.slot] = along_lanes && plan_.fetched[v.slot];
    }
    for (ValueId id = 0; id < kernel_.values.size(); ++id)
      if (needed_[id] && kernel_.values[id].kind == ScalarKind::load) read_before_[kernel_.values[id].slot] = true;
  }

  void stage_loops(const Stage& stage, const std::vector<AxisId>& loops, std::optional<AxisId> vector, size_t level) {
    hoist(loops, level);
    if (level == loops.size()) {
      for (uint16_t r : stage.reductions) accumulate(r);
      for (const Store& store : stage.stores) kept_ ? fold_into_kept(store) : emit_store(store);
      return;
    }
    const AxisId axis = loops[level];
    const int64_t extent = kernel_.extent(axis);
    if (vector == axis) {
      const auto along = [&] {
        vector_loop(axis, i64(0), i64(extent), extent % plan_.lanes != 0, [&] { stage_loops(stage, loops, vector, level + 1); });
      };
      plan_.whole_rows&& stage.ordered ? if_then(is_own(stage.stores.front()), along) : along();
      return;
    }
    const bool rows = plan_.owns_rows && !stage.ordered;
    Register begin = i64(0), end = i64(extent);
    if (rows) begin = function_->getArg(1), end = function_->getArg(2);
    for_loop(begin, end, i64(1), [&](Register i) {
      axis_[axis] = i;
      if (plan_.owns_rows && stage.ordered && axis == stage.axes.back()) fetch_rows(stage.stores.front(), axis);
      stage_loops(stage, loops, vector, level + 1);
    });
  }

  // Values that the loops entered so far determine.
  void hoist(const std::vector<AxisId>& loops, size_t level) {
    uint64_t later = 0;
    for (size_t k = level; k < loops.size(); ++k) later |= bit(loops[k]);
    for (ValueId id = 0; id < kernel_.values.size(); ++id)
      if (needed_[id] && (axes_of_[id] & later) == 0 && kernel_.values[id].kind != ScalarKind::running) value(id);
  }

  // --- reductions ---

  struct Accumulator {
    llvm::AllocaInst* value = nullptr;
    llvm::AllocaInst* position = nullptr;
  };

  llvm::Constant* identity(Fold fold, llvm::Type* type) {
    const bool real = type->isFPOrFPVectorTy();
    const unsigned bits = type->getScalarSizeInBits();
    auto least = [&] { return llvm::ConstantInt::get(type, bits == 1 ? llvm::APInt(1, 0) : llvm::APInt::getSignedMinValue(bits)); };
    auto greatest = [&] { return llvm::ConstantInt::get(type, bits == 1 ? llvm::APInt(1, 1) : llvm::APInt::getSignedMaxValue(bits)); };
    switch (fold) {
      case Fold::sum:
        return llvm::Constant::getNullValue(type);
      case Fold::prod:
        return real ? number(type, 1) : integer(type, 1);
      case Fold::max:
      case Fold::logsumexp:
      case Fold::arg_max:
        return real ? llvm::ConstantFP::getInfinity(type, true) : least();
      case Fold::min:
      case Fold::arg_min:
        return real ? llvm::ConstantFP::getInfinity(type, false) : greatest();
      case Fold::any:
        return integer(type, 0);
      case Fold::all:
        return integer(type, -1);
    }
    return nullptr;
  }

  llvm::AllocaInst* slot(llvm::Type* type) {
    IrBuilder entry(entry_, entry_->begin());
    return entry.CreateAlloca(type);
  }

  void start(uint16_t index, bool along_lanes) {
    const Accumulation& r = kernel_.reductions[index];
    Accumulator& a = accumulators_[index];
    llvm::Type* type = register_type(context_, folded_dtype(r));
    llvm::Type* position = b_.getInt64Ty();
    const bool wide = along_lanes || (lane_axis_ && axes_of_[r.value] >> *lane_axis_ & 1);
    if (wide)
      type = llvm::FixedVectorType::get(type, static_cast<unsigned>(plan_.lanes)),
      position = llvm::FixedVectorType::get(position, static_cast<unsigned>(plan_.lanes));
    a.value = slot(type);
    b_.CreateStore(identity(r.fold, type), a.value);
    if (!keeps_position(r)) return;
    a.position = slot(position);
    b_.CreateStore(integer(position, INT64_MAX), a.position);
  }

  Register lanes_like(Register x, llvm::Type* type) { return splat(b_, x, lanes_of(type)); }

  void accumulate(uint16_t index) {
    const Accumulation& r = kernel_.reductions[index];
    Accumulator& a = accumulators_[index];
    llvm::Type* type = a.value->getAllocatedType();
    Register old = b_.CreateLoad(type, a.value);
    if (keeps_position(r)) {
      Register x = lanes_like(as(kernel_.reductions[index].value, folded_dtype(r)), type);
      llvm::Type* positions = a.position->getAllocatedType();
      Register old_place = b_.CreateLoad(positions, a.position);
      Register place = lanes_like(as(r.position, DType::i64), positions);
      Register better = prefer(r.fold, x, place, old, old_place);
      if (mask_ && type->isVectorTy()) better = b_.CreateAnd(better, mask_);
      b_.CreateStore(b_.CreateSelect(better, x, old), a.value);
      b_.CreateStore(b_.CreateSelect(better, place, old_place), a.position);
      return;
    }
    Register next = fused_product(r, old, type);
    if (!next) next = combine(r.fold, old, lanes_like(as(r.value, folded_dtype(r)), type));
    if (mask_ && type->isVectorTy() && lane_axis_) next = b_.CreateSelect(mask_, next, old);
    b_.CreateStore(next, a.value);
  }

  // sum + x*y in one rounding.
  Register fused_product(const Accumulation& r, Register sum, llvm::Type* type) {
    const Scalar& v = kernel_.values[r.value];
    if (r.fold != Fold::sum || !type->isFPOrFPVectorTy() || v.kind != ScalarKind::map || v.fn != MapFn::mul || v.dtype != r.dtype)
      return nullptr;
    Register x = lanes_like(as(v.operands[0], r.dtype), type), y = lanes_like(as(v.operands[1], r.dtype), type);
    return b_.CreateIntrinsic(intrinsic::fma, {type}, {x, y, sum});
  }

  // Whether (x, place) comes before (old, old_place): NaN first, then the extreme, then the lower place.
  Register prefer(Fold fold, Register x, Register place, Register old, Register old_place) {
    const bool most = fold == Fold::arg_max;
    Register lower = b_.CreateICmpSLT(place, old_place);
    if (x->getType()->isIntOrIntVectorTy()) {
      const bool boolean = x->getType()->getScalarSizeInBits() == 1;
      Register beyond = boolean ? (most ? b_.CreateICmpUGT(x, old) : b_.CreateICmpULT(x, old))
                        : most  ? b_.CreateICmpSGT(x, old)
                                : b_.CreateICmpSLT(x, old);
      return b_.CreateOr(beyond, b_.CreateAnd(b_.CreateICmpEQ(x, old), lower));
    }
    Register nan = b_.CreateFCmpUNO(x, x), old_nan = b_.CreateFCmpUNO(old, old);
    Register beyond = b_.CreateOr(most ? b_.CreateFCmpOGT(x, old) : b_.CreateFCmpOLT(x, old), b_.CreateAnd(nan, b_.CreateNot(old_nan)));
    Register same = b_.CreateOr(b_.CreateFCmpOEQ(x, old), b_.CreateAnd(nan, old_nan));
    return b_.CreateOr(beyond, b_.CreateAnd(same, lower));
  }

  // The upper half of the lanes joins the lower half until one is left, an order fixed by the number of lanes.
  void finish(uint16_t index) {
    const Accumulation& r = kernel_.reductions[index];
    Accumulator& a = accumulators_[index];
    Register x = b_.CreateLoad(a.value->getAllocatedType(), a.value);
    Register place = keeps_position(r) ? b_.CreateLoad(a.position->getAllocatedType(), a.position) : nullptr;
    if (!lane_axis_)
      for (int lanes = lanes_of(x->getType()); lanes > 1; lanes /= 2) {
        auto half = [&](Register v, int from) {
          std::vector<int> order;
          for (int k = 0; k < lanes / 2; ++k) order.push_back(from + k);
          return lanes == 2 ? b_.CreateExtractElement(v, static_cast<uint64_t>(from)) : b_.CreateShuffleVector(v, order);
        };
        Register low = half(x, 0), high = half(x, lanes / 2);
        if (!place) {
          x = combine(r.fold, low, high);
          continue;
        }
        Register low_place = half(place, 0), high_place = half(place, lanes / 2);
        Register better = prefer(r.fold, high, high_place, low, low_place);
        x = b_.CreateSelect(better, high, low);
        place = b_.CreateSelect(better, high_place, low_place);
      }
    results_[index] = place ? place : x;
    // A result found again in the next round of a sequence is another one.
    for (Scope& scope : scopes_)
      for (auto it = scope.begin(); it != scope.end();) it = needs_[it->first] >> index & 1 ? scope.erase(it) : std::next(it);
  }

  Register running_value(const Scalar& v) override {
    const Accumulator& a = accumulators_[v.slot];
    Register x = b_.CreateLoad(a.value->getAllocatedType(), a.value);
    return round_to(b_, convert(b_, x, folded_dtype(kernel_.reductions[v.slot]), compute_dtype(v.dtype)), v.dtype);
  }

  const LoopPlan& plan_;
  const std::vector<uint64_t> needs_;
  Register chunk_ = nullptr, turned_chunk_ = nullptr;
  struct Turned {
    ValueId load;
    llvm::AllocaInst* columns;  // one vector along the lanes for each element of the turned axis
  };
  std::vector<Turned> turned_;
  struct Kept {
    llvm::AllocaInst *element, *place;  // none yet: -1
  };
  std::optional<Kept> kept_;
  std::vector<Accumulator> accumulators_;
  std::vector<bool> read_before_ = std::vector<bool>(kernel_.buffers.size(), false);  // by the stages emitted so far
};

}  // namespace

void emit_kernel(llvm::Module& module, const std::string& name, const Kernel& kernel, const LoopPlan& plan) {
  KernelEmitter(module, name, kernel, plan).run();
}

}  // namespace einc
