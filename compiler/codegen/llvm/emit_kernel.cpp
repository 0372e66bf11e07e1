#include "compiler/codegen/llvm/emit_kernel.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "compiler/codegen/llvm/emit_value.h"
#include "compiler/codegen/llvm/random.h"
#include "runtime/base/check.h"
#include "runtime/program/kernel_function.h"

namespace einc {
namespace {

using llvm::BasicBlock;
using llvm::Type;
namespace intrinsic = llvm::Intrinsic;
using Register = llvm::Value*;

bool small_float(DType dtype) { return is_floating(dtype) && dtype != DType::f64; }
// The dtype a result of `dtype` is computed in.
DType compute_dtype(DType dtype) {
  if (small_float(dtype)) return DType::f32;
  if (dtype == DType::u8 || dtype == DType::u16) return DType::i32;
  return dtype;
}

class KernelEmitter {
 public:
  KernelEmitter(llvm::Module& module, const std::string& name, const Kernel& kernel, const LoopPlan& plan)
      : kernel_(kernel),
        plan_(plan),
        axes_of_(axes_of_values(kernel)),
        needs_(reductions_of_values(kernel)),
        module_(module),
        context_(module.getContext()),
        b_(context_) {
    Type* pointer = b_.getPtrTy();
    auto* type = llvm::FunctionType::get(b_.getVoidTy(), {pointer, b_.getInt64Ty(), b_.getInt64Ty()}, false);
    function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module);
    function_->addFnAttr(llvm::Attribute::NoUnwind);
    entry_ = BasicBlock::Create(context_, "entry", function_);
    b_.SetInsertPoint(entry_);
    axis_.assign(kernel.axes.size(), nullptr);
    results_.assign(kernel.reductions.size(), nullptr);
    accumulators_.resize(kernel.reductions.size());
  }

  void run() {
    load_arguments();
    scopes_.emplace_back();
    for_loop(function_->getArg(1), function_->getArg(2), i64(1), [&](Register point) {
      decode(point);
      outer_loops(0);
    });
    b_.CreateRetVoid();
  }

 private:
  using Scope = std::unordered_map<ValueId, Register>;

  llvm::ConstantInt* i64(int64_t value) { return b_.getInt64(static_cast<uint64_t>(value)); }

  // --- frame ---

  Register field(size_t offset, Type* type) {
    return b_.CreateLoad(type, b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), function_->getArg(0), offset));
  }

  void load_arguments() {
    Register buffers = field(offsetof(KernelArguments, buffers), b_.getPtrTy());
    for (size_t i = 0; i < kernel_.buffers.size(); ++i)
      buffers_.push_back(b_.CreateLoad(b_.getPtrTy(), b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), buffers, i)));
    if (kernel_.streams == 0) return;
    Register keys = field(offsetof(KernelArguments, stream_keys), b_.getPtrTy());
    for (int s = 0; s < kernel_.streams; ++s)
      streams_.push_back(b_.CreateLoad(b_.getInt64Ty(), b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), keys, static_cast<unsigned>(s))));
    step_ = field(offsetof(KernelArguments, step), b_.getInt64Ty());
  }

  BasicBlock* block(const char* name) { return BasicBlock::Create(context_, name, function_); }

  // for (i = begin; i < end; i += step) body(i), values made in the body forgotten after it.
  void for_loop(Register begin, Register end, Register step, const std::function<void(Register)>& body) {
    BasicBlock *before = b_.GetInsertBlock(), *head = block("head"), *inside = block("body"), *after = block("after");
    b_.CreateBr(head);
    b_.SetInsertPoint(head);
    llvm::PHINode* i = b_.CreatePHI(b_.getInt64Ty(), 2);
    i->addIncoming(begin, before);
    b_.CreateCondBr(b_.CreateICmpSLT(i, end), inside, after);
    b_.SetInsertPoint(inside);
    scopes_.emplace_back();
    body(i);
    scopes_.pop_back();
    i->addIncoming(b_.CreateAdd(i, step, "", true, true), b_.GetInsertBlock());
    b_.CreateBr(head);
    b_.SetInsertPoint(after);
  }

  void if_then(Register condition, const std::function<void()>& body) {
    BasicBlock *inside = block("then"), *after = block("after");
    b_.CreateCondBr(condition, inside, after);
    b_.SetInsertPoint(inside);
    scopes_.emplace_back();
    body();
    scopes_.pop_back();
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
  }

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
        body();
        mask_ = nullptr;
      });
    lane_axis_.reset();
    lanes_ = 1;
  }

  llvm::Constant* lane_numbers(Type* scalar, int64_t step = 1) {
    std::vector<llvm::Constant*> numbers;
    for (int k = 0; k < lanes_; ++k) numbers.push_back(integer(scalar, k * step));
    return llvm::ConstantVector::get(numbers);
  }

  // --- loops ---

  void decode(Register point) {
    Register rest = point;
    if (plan_.outer_vector) {
      const int64_t chunks = (kernel_.extent(*plan_.outer_vector) + plan_.chunk - 1) / plan_.chunk;
      chunk_ = chunks == 1 ? i64(0) : b_.CreateURem(rest, i64(chunks));
      if (chunks > 1) rest = b_.CreateUDiv(rest, i64(chunks));
    }
    for (size_t k = plan_.divided.size(); k-- > 0;) {
      const AxisId axis = plan_.divided[k];
      axis_[axis] = k == 0 ? rest : b_.CreateURem(rest, i64(kernel_.extent(axis)));
      if (k > 0) rest = b_.CreateUDiv(rest, i64(kernel_.extent(axis)));
    }
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
    const int64_t extent = kernel_.extent(*plan_.outer_vector);
    Register begin = b_.CreateMul(chunk_, i64(plan_.chunk));
    Register end = plan_.chunk == extent ? static_cast<Register>(i64(extent))
                                         : b_.CreateBinaryIntrinsic(intrinsic::smin, b_.CreateAdd(begin, i64(plan_.chunk)), i64(extent));
    const bool may_have_rest = extent % plan_.lanes != 0 || plan_.chunk % plan_.lanes != 0;
    vector_loop(*plan_.outer_vector, begin, end, may_have_rest, [&] { point(); });
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
    const std::optional<AxisId> vector = plan_.outer_vector ? std::nullopt : plan_.stage_vector[s];
    std::vector<AxisId> loops = stage.axes;
    if (vector) {
      loops.erase(std::find(loops.begin(), loops.end(), *vector));
      loops.push_back(*vector);
    }
    find_needed(stage);
    for (uint16_t r : stage.reductions) start(r, vector.has_value());
    stage_loops(stage, loops, vector, 0);
    for (uint16_t r : stage.reductions) finish(r);
  }

  void find_needed(const Stage& stage) {
    needed_.assign(kernel_.values.size(), false);
    auto need = [&](ValueId id) {
      if (id != kNoValue) needed_[id] = true;
    };
    auto need_index = [&](const Subscript& index) {
      for (const Subscript::Dynamic& d : index.dynamic) need(d.value);
    };
    for (const Store& store : stage.stores) need(store.value), need_index(store.index);
    for (uint16_t r : stage.reductions) need(kernel_.reductions[r].value), need(kernel_.reductions[r].position);
    for (size_t i = kernel_.values.size(); i-- > 0;) {
      if (!needed_[i]) continue;
      const Scalar& v = kernel_.values[i];
      for (ValueId x : v.operands) need(x);
      need_index(v.index);
      for (const Range& g : v.guards) need_index(g.index);
    }
  }

  void stage_loops(const Stage& stage, const std::vector<AxisId>& loops, std::optional<AxisId> vector, size_t level) {
    hoist(loops, level);
    if (level == loops.size()) {
      for (uint16_t r : stage.reductions) accumulate(r);
      for (const Store& store : stage.stores) emit_store(store);
      return;
    }
    const AxisId axis = loops[level];
    const int64_t extent = kernel_.extent(axis);
    if (vector == axis) {
      vector_loop(axis, i64(0), i64(extent), extent % plan_.lanes != 0, [&] { stage_loops(stage, loops, vector, level + 1); });
      return;
    }
    for_loop(i64(0), i64(extent), i64(1), [&](Register i) {
      axis_[axis] = i;
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

  static bool keeps_position(const Accumulation& r) { return r.fold == Fold::arg_max || r.fold == Fold::arg_min; }
  DType folded_dtype(const Accumulation& r) const { return compute_dtype(keeps_position(r) ? kernel_.values[r.value].dtype : r.dtype); }

  llvm::Constant* identity(Fold fold, Type* type) {
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

  llvm::AllocaInst* slot(Type* type) {
    IrBuilder entry(entry_, entry_->begin());
    return entry.CreateAlloca(type);
  }

  void start(uint16_t index, bool along_lanes) {
    const Accumulation& r = kernel_.reductions[index];
    Accumulator& a = accumulators_[index];
    Type* type = register_type(context_, folded_dtype(r));
    Type* position = b_.getInt64Ty();
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

  Register lanes_like(Register x, Type* type) { return splat(b_, x, lanes_of(type)); }

  void accumulate(uint16_t index) {
    const Accumulation& r = kernel_.reductions[index];
    Accumulator& a = accumulators_[index];
    Type* type = a.value->getAllocatedType();
    Register old = b_.CreateLoad(type, a.value);
    if (keeps_position(r)) {
      Register x = lanes_like(as(kernel_.reductions[index].value, folded_dtype(r)), type);
      Type* positions = a.position->getAllocatedType();
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
  Register fused_product(const Accumulation& r, Register sum, Type* type) {
    const Scalar& v = kernel_.values[r.value];
    if (r.fold != Fold::sum || !type->isFPOrFPVectorTy() || v.kind != ScalarKind::map || v.fn != MapFn::mul || v.dtype != r.dtype)
      return nullptr;
    Register x = lanes_like(as(v.operands[0], r.dtype), type), y = lanes_like(as(v.operands[1], r.dtype), type);
    return b_.CreateIntrinsic(intrinsic::fma, {type}, {x, y, sum});
  }

  Register combine(Fold fold, Register a, Register x) {
    const bool real = a->getType()->isFPOrFPVectorTy(), boolean = a->getType()->getScalarSizeInBits() == 1;
    switch (fold) {
      case Fold::sum:
        return real ? b_.CreateFAdd(a, x) : b_.CreateAdd(a, x);
      case Fold::prod:
        return real ? b_.CreateFMul(a, x) : b_.CreateMul(a, x);
      case Fold::max:
        return real      ? b_.CreateBinaryIntrinsic(intrinsic::maximum, a, x)
               : boolean ? b_.CreateOr(a, x)
                         : b_.CreateBinaryIntrinsic(intrinsic::smax, a, x);
      case Fold::min:
        return real      ? b_.CreateBinaryIntrinsic(intrinsic::minimum, a, x)
               : boolean ? b_.CreateAnd(a, x)
                         : b_.CreateBinaryIntrinsic(intrinsic::smin, a, x);
      case Fold::any:
        return b_.CreateOr(a, x);
      case Fold::all:
        return b_.CreateAnd(a, x);
      case Fold::arg_max:
      case Fold::arg_min:
        break;
    }
    EINC_CHECK(false, "positions are kept by prefer");
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

  // --- values ---

  Register value(ValueId id) {
    for (size_t k = scopes_.size(); k-- > 0;)
      if (const auto found = scopes_[k].find(id); found != scopes_[k].end()) return found->second;
    Register x = compute(kernel_.values[id]);
    scopes_.back()[id] = x;
    return x;
  }

  Register as(ValueId id, DType dtype) { return convert(b_, value(id), compute_dtype(kernel_.values[id].dtype), dtype); }

  Register compute(const Scalar& v) {
    Type* type = register_type(context_, v.dtype);
    switch (v.kind) {
      case ScalarKind::constant: {
        if (is_floating(v.dtype)) return round_to(b_, number(type, v.real), v.dtype);
        return integer(type, v.dtype == DType::boolean ? v.integer != 0 : v.integer);
      }
      case ScalarKind::index:
        return as_number(place_of(v.index), v.dtype);
      case ScalarKind::quotient:
        return divided(v, true);
      case ScalarKind::remainder:
        return divided(v, false);
      case ScalarKind::load:
        return load(v);
      case ScalarKind::checked:
        return checked(v);
      case ScalarKind::map:
        return map(v);
      case ScalarKind::cast:
        return convert(b_, value(v.operands[0]), compute_dtype(kernel_.values[v.operands[0]].dtype), v.dtype);
      case ScalarKind::random:
        return random(v);
      case ScalarKind::in_range:
        return guard(v);
      case ScalarKind::reduction: {
        EINC_CHECK(results_[v.slot], "reduction r{} is used before it is made", v.slot);
        const Accumulation& r = kernel_.reductions[v.slot];
        return round_to(b_, convert(b_, results_[v.slot], keeps_position(r) ? DType::i64 : folded_dtype(r), compute_dtype(v.dtype)),
                        v.dtype);
      }
      case ScalarKind::running: {
        const Accumulator& a = accumulators_[v.slot];
        Register x = b_.CreateLoad(a.value->getAllocatedType(), a.value);
        return round_to(b_, convert(b_, x, folded_dtype(kernel_.reductions[v.slot]), compute_dtype(v.dtype)), v.dtype);
      }
    }
    return nullptr;
  }

  Register divided(const Scalar& v, bool quotient) {
    Register x = as(v.operands[0], DType::i64);
    llvm::Constant* by = integer(x->getType(), v.integer);
    return quotient ? b_.CreateSDiv(x, by) : b_.CreateSRem(x, by);
  }

  Register map(const Scalar& v) {
    boost::container::small_vector<Register, 3> x;
    DType operand = compute_dtype(v.dtype);
    if (is_comparison(v.fn)) operand = common_dtype(kernel_.values[v.operands[0]].dtype, kernel_.values[v.operands[1]].dtype);
    if (is_logical(v.fn)) operand = DType::boolean;
    for (size_t k = 0; k < v.operands.size(); ++k)
      x.push_back(as(v.operands[k], v.fn == MapFn::where && k == 0 ? DType::boolean : operand));
    int lanes = 1;
    for (Register r : x) lanes = std::max(lanes, lanes_of(r->getType()));
    for (Register& r : x) r = splat(b_, r, lanes);
    return emit_map(b_, v.fn, {x.data(), x.size()}, operand, v.dtype);
  }

  // What two operands of a comparison are compared as: an integer beside a float is exact in f64.
  static DType common_dtype(DType a, DType b) {
    a = compute_dtype(a), b = compute_dtype(b);
    if (a == b) return a;
    if (is_floating(a) && is_floating(b)) return DType::f64;
    if (is_floating(a) || is_floating(b)) return a == DType::boolean || b == DType::boolean ? (is_floating(a) ? a : b) : DType::f64;
    return a == DType::i64 || b == DType::i64 ? DType::i64 : DType::i32;
  }

  Register random(const Scalar& v) {
    const Place place = place_of(v.index);
    Register index = is_wide(place) ? wide_index(place) : place.scalar;
    Register x = emit_random(b_, v.random, streams_[v.slot], step_, index, v.real);
    const DType drawn = v.random == RandomKind::keep_mask ? DType::boolean : DType::f64;
    return round_to(b_, convert(b_, x, drawn, compute_dtype(v.dtype)), v.dtype);
  }

  // --- places in memory ---

  // scalar + step * lane + extra: where lane 0 lies, how far lanes are apart, and what is different in each lane.
  struct Place {
    Register scalar = nullptr;
    int64_t step = 0;
    Register extra = nullptr;
  };
  static bool is_wide(const Place& p) { return p.step != 0 || p.extra; }

  Place place_of(const Subscript& index) {
    Place place{i64(index.affine.constant), 0, nullptr};
    for (const Affine::Term& t : index.affine.terms) {
      EINC_CHECK(axis_[t.axis], "axis a{} has no loop", t.axis);
      place.scalar =
          b_.CreateAdd(place.scalar, t.coefficient == 1 ? axis_[t.axis] : b_.CreateMul(axis_[t.axis], i64(t.coefficient), "", false, true),
                       "", false, true);
      if (lane_axis_ == t.axis) place.step = t.coefficient;
    }
    for (const Subscript::Dynamic& d : index.dynamic) {
      Register x = as(d.value, DType::i64);
      if (d.coefficient != 1) x = b_.CreateMul(x, integer(x->getType(), d.coefficient));
      if (!x->getType()->isVectorTy())
        place.scalar = b_.CreateAdd(place.scalar, x);
      else
        place.extra = place.extra ? b_.CreateAdd(place.extra, x) : x;
    }
    return place;
  }

  Register wide_index(const Place& p) {
    Register x = b_.CreateAdd(splat(b_, p.scalar, lanes_), lane_numbers(b_.getInt64Ty(), p.step));
    return p.extra ? b_.CreateAdd(x, p.extra) : x;
  }

  Register as_number(const Place& p, DType dtype) {
    Type* type = register_type(context_, dtype);
    if (!is_wide(p)) return b_.CreateTrunc(p.scalar, type);
    if (p.extra || dtype == DType::i64) return b_.CreateTrunc(wide_index(p), with_lanes_of(type, lane_numbers(type)->getType()));
    return b_.CreateAdd(splat(b_, b_.CreateTrunc(p.scalar, type), lanes_), lane_numbers(type, p.step));
  }

  // Whether all guards hold, per lane when they differ; null without guards.
  Register guard(const Scalar& v) {
    Register all = nullptr;
    for (const Range& g : v.guards) {
      const Place p = place_of(g.index);
      Register x = is_wide(p) ? wide_index(p) : p.scalar;
      Register inside = b_.CreateICmpULT(b_.CreateSub(x, integer(x->getType(), g.lower)), integer(x->getType(), g.upper - g.lower));
      if (!all)
        all = inside;
      else {
        const int lanes = std::max(lanes_of(all->getType()), lanes_of(inside->getType()));
        all = b_.CreateAnd(splat(b_, all, lanes), splat(b_, inside, lanes));
      }
    }
    return all;
  }

  // The lanes that take part: the vector's own mask and a guard; null when all do.
  Register active(Register guard) {
    if (!guard) return mask_;
    Register wide = splat(b_, guard, lanes_);
    return mask_ ? b_.CreateAnd(wide, mask_) : wide;
  }

  Register element(uint16_t buffer, Register index) {
    return b_.CreateInBoundsGEP(storage_type(context_, kernel_.buffers[buffer].dtype), buffers_[buffer], index);
  }

  llvm::Align align(uint16_t buffer) const { return llvm::Align(static_cast<uint64_t>(bytes_of(kernel_.buffers[buffer].dtype))); }

  Register all_lanes() { return llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(static_cast<unsigned>(lanes_)), b_.getTrue()); }

  Register read(uint16_t buffer, const Place& p, Register guard) {
    const DType dtype = kernel_.buffers[buffer].dtype;
    Type* stored = storage_type(context_, dtype);
    if (!is_wide(p)) {
      Register index = p.scalar;
      if (guard) index = b_.CreateSelect(b_.CreateICmpULT(index, i64(kernel_.buffers[buffer].count)), index, i64(0));
      Register x = from_storage(b_, b_.CreateAlignedLoad(stored, element(buffer, index), align(buffer)), dtype);
      if (!guard) return x;
      x = splat(b_, x, lanes_of(guard->getType()));
      return b_.CreateSelect(guard, x, llvm::Constant::getNullValue(x->getType()));
    }
    Type* type = llvm::FixedVectorType::get(stored, static_cast<unsigned>(lanes_));
    Register mask = active(guard);
    Register zero = llvm::Constant::getNullValue(type);
    if (p.step == 1 && !p.extra) {
      Register address = element(buffer, p.scalar);
      return from_storage(b_,
                          mask ? static_cast<Register>(b_.CreateMaskedLoad(type, address, align(buffer), mask, zero))
                               : b_.CreateAlignedLoad(type, address, align(buffer)),
                          dtype);
    }
    return from_storage(b_, b_.CreateMaskedGather(type, element(buffer, wide_index(p)), align(buffer), mask ? mask : all_lanes(), zero),
                        dtype);
  }

  Register load(const Scalar& v) { return read(v.slot, place_of(v.index), guard(v)); }

  void emit_store(const Store& store) {
    const DType dtype = kernel_.buffers[store.buffer].dtype;
    const Place p = place_of(store.index);
    Register x = as(store.value, compute_dtype(dtype));
    if (store.mode == StoreMode::add) {
      Register old = convert(b_, read(store.buffer, p, nullptr), dtype, compute_dtype(dtype));
      const int lanes = std::max(lanes_of(old->getType()), lanes_of(x->getType()));
      x = combine(Fold::sum, splat(b_, old, lanes), splat(b_, x, lanes));
    }
    if (!is_wide(p)) {
      b_.CreateAlignedStore(to_storage(b_, x, dtype), element(store.buffer, p.scalar), align(store.buffer));
      return;
    }
    Register stored = to_storage(b_, splat(b_, x, lanes_), dtype);
    if (p.step != 1 || p.extra) {
      b_.CreateMaskedScatter(stored, element(store.buffer, wide_index(p)), align(store.buffer), mask_ ? mask_ : all_lanes());
      return;
    }
    Register address = element(store.buffer, p.scalar);
    if (mask_)
      b_.CreateMaskedStore(stored, address, align(store.buffer), mask_);
    else
      b_.CreateAlignedStore(stored, address, align(store.buffer));
  }

  // The position, or 0 and a report where it is outside.
  Register checked(const Scalar& v) {
    Register x = as(v.operands[0], DType::i64);
    Register bad = b_.CreateICmpUGE(x, integer(x->getType(), v.integer));
    if (Register holds = guard(v)) {
      const int lanes = std::max(lanes_of(holds->getType()), lanes_of(bad->getType()));
      bad = b_.CreateAnd(splat(b_, bad, lanes), splat(b_, holds, lanes));
    }
    const int lanes = lanes_of(bad->getType());
    if (mask_ && lanes > 1) bad = b_.CreateAnd(bad, mask_);
    Place p = place_of(v.index);
    Register any = lanes > 1 ? b_.CreateOrReduce(bad) : bad;
    if_then(any, [&] {
      Register place = p.scalar, held = x;
      if (lanes > 1) {
        Type* word = b_.getIntNTy(static_cast<unsigned>(lanes));
        Register first = b_.CreateIntrinsic(intrinsic::cttz, {word}, {b_.CreateBitCast(bad, word), b_.getTrue()});
        first = b_.CreateZExtOrTrunc(first, b_.getInt64Ty());
        if (is_wide(p)) place = b_.CreateExtractElement(wide_index(p), first);
        if (x->getType()->isVectorTy()) held = b_.CreateExtractElement(x, first);
      }
      auto* type = llvm::FunctionType::get(b_.getVoidTy(), {b_.getPtrTy(), b_.getInt32Ty(), b_.getInt64Ty(), b_.getInt64Ty()}, false);
      b_.CreateCall(module_.getOrInsertFunction(kIndexFaultSymbol, type), {function_->getArg(0), b_.getInt32(v.slot), place, held});
    });
    return b_.CreateSelect(bad, llvm::Constant::getNullValue(with_lanes_of(b_.getInt64Ty(), bad->getType())), splat(b_, x, lanes));
  }

  const Kernel& kernel_;
  const LoopPlan& plan_;
  const std::vector<uint64_t> axes_of_, needs_;
  llvm::Module& module_;
  llvm::LLVMContext& context_;
  IrBuilder b_;
  llvm::Function* function_ = nullptr;
  BasicBlock* entry_ = nullptr;
  std::vector<Register> buffers_, streams_, axis_, results_;
  Register step_ = nullptr, chunk_ = nullptr, mask_ = nullptr;
  std::vector<Accumulator> accumulators_;
  std::vector<Scope> scopes_;
  std::vector<bool> needed_;
  std::optional<AxisId> lane_axis_;
  int lanes_ = 1;
};

}  // namespace

void emit_kernel(llvm::Module& module, const std::string& name, const Kernel& kernel, const LoopPlan& plan) {
  KernelEmitter(module, name, kernel, plan).run();
}

}  // namespace einc
