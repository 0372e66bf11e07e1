// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/llvm/emit_values.h"

#include <llvm/IR/Intrinsics.h>

#include <algorithm>

#include "compiler/codegen/llvm/emit_value.h"
#include "compiler/codegen/llvm/math.h"
#include "compiler/codegen/llvm/random.h"
#include "compiler/lower/gelu_slope.h"
#include "compiler/lower/keep_rows.h"
#include "runtime/base/check.h"
#include "runtime/program/kernel_function.h"

namespace einc {
namespace {

using llvm::BasicBlock;
namespace intrinsic = llvm::Intrinsic;
using Register = llvm::Value*;

bool small_float(DType dtype) { return is_floating(dtype) && dtype != DType::f64; }

// What two operands of a comparison are compared as: an integer beside a float is exact in f64.
DType common_dtype(DType a, DType b) {
  a = compute_dtype(a), b = compute_dtype(b);
  if (a == b) return a;
  if (is_floating(a) && is_floating(b)) return DType::f64;
  if (is_floating(a) || is_floating(b)) return a == DType::boolean || b == DType::boolean ? (is_floating(a) ? a : b) : DType::f64;
  return a == DType::i64 || b == DType::i64 ? DType::i64 : DType::i32;
}

}  // namespace

DType compute_dtype(DType dtype) {
  if (small_float(dtype)) return DType::f32;
  if (dtype == DType::u8 || dtype == DType::u16) return DType::i32;
  return dtype;
}

ValueEmitter::ValueEmitter(llvm::Module& module, const std::string& name, const Kernel& kernel)
    : kernel_(kernel), axes_of_(axes_of_values(kernel)), module_(module), context_(module.getContext()), b_(context_) {
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), {b_.getPtrTy(), b_.getInt64Ty(), b_.getInt64Ty()}, false);
  function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module);
  function_->addFnAttr(llvm::Attribute::NoUnwind);
  entry_ = BasicBlock::Create(context_, "entry", function_);
  b_.SetInsertPoint(entry_);
  axis_.assign(kernel.axes.size(), nullptr);
  results_.assign(kernel.reductions.size(), nullptr);
  load_arguments();
  scopes_.emplace_back();
}

Register ValueEmitter::field(size_t offset, llvm::Type* type) {
  return b_.CreateLoad(type, b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), function_->getArg(0), offset));
}

void ValueEmitter::load_arguments() {
  Register buffers = field(offsetof(KernelArguments, buffers), b_.getPtrTy());
  uint64_t row = 0;
  for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
    if (kernel_.buffers[i].access == BufferAccess::scratch) {
      Register scratch = field(offsetof(KernelArguments, scratch), b_.getPtrTy());
      buffers_.push_back(b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), scratch, row));
      row += static_cast<uint64_t>(row_bytes(kernel_.buffers[i]));
      continue;
    }
    buffers_.push_back(b_.CreateLoad(b_.getPtrTy(), b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), buffers, i)));
  }
  if (kernel_.streams == 0) return;
  Register keys = field(offsetof(KernelArguments, stream_keys), b_.getPtrTy());
  for (int s = 0; s < kernel_.streams; ++s)
    streams_.push_back(b_.CreateLoad(b_.getInt64Ty(), b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), keys, static_cast<unsigned>(s))));
  step_ = field(offsetof(KernelArguments, step), b_.getInt64Ty());
}

BasicBlock* ValueEmitter::block(const char* name) { return BasicBlock::Create(context_, name, function_); }

void ValueEmitter::for_loop(Register begin, Register end, Register step, const std::function<void(Register)>& body) {
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

void ValueEmitter::if_then(Register condition, const std::function<void()>& body) {
  BasicBlock *inside = block("then"), *after = block("after");
  b_.CreateCondBr(condition, inside, after);
  b_.SetInsertPoint(inside);
  scopes_.emplace_back();
  body();
  scopes_.pop_back();
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

llvm::Constant* ValueEmitter::lane_numbers(llvm::Type* scalar, int64_t step) {
  std::vector<llvm::Constant*> numbers;
  for (int k = 0; k < lanes_; ++k) numbers.push_back(integer(scalar, k * step));
  return llvm::ConstantVector::get(numbers);
}

// The larger or smaller of two numbers, a NaN if either is one. What waits for `a` is short: one instruction and a blend.
Register ValueEmitter::extreme(llvm::CmpInst::Predicate beats, Register a, Register x) {
  Register known = b_.CreateSelect(b_.CreateFCmp(beats, x, a), x, a);
  return b_.CreateSelect(b_.CreateFCmpUNO(x, x), x, known);
}

Register ValueEmitter::combine(Fold fold, Register a, Register x) {
  const bool real = a->getType()->isFPOrFPVectorTy(), boolean = a->getType()->getScalarSizeInBits() == 1;
  switch (fold) {
    case Fold::sum:
      return real ? b_.CreateFAdd(a, x) : b_.CreateAdd(a, x);
    case Fold::prod:
      return real ? b_.CreateFMul(a, x) : b_.CreateMul(a, x);
    case Fold::max:
      return real ? extreme(llvm::CmpInst::FCMP_OGT, a, x) : boolean ? b_.CreateOr(a, x) : b_.CreateBinaryIntrinsic(intrinsic::smax, a, x);
    case Fold::min:
      return real ? extreme(llvm::CmpInst::FCMP_OLT, a, x) : boolean ? b_.CreateAnd(a, x) : b_.CreateBinaryIntrinsic(intrinsic::smin, a, x);
    case Fold::any:
      return b_.CreateOr(a, x);
    case Fold::all:
      return b_.CreateAnd(a, x);
    case Fold::logsumexp: {  // the larger + log(1 + e^-difference), which is 0 between equal infinities
      Register away = b_.CreateFNeg(b_.CreateUnaryIntrinsic(intrinsic::fabs, b_.CreateFSub(a, x)));
      Register difference = b_.CreateSelect(b_.CreateFCmpOEQ(a, x), number(a->getType(), 0), away);
      Register more = emit_math(b_, MathFn::log1p, emit_math(b_, MathFn::exp, difference));
      return b_.CreateFAdd(extreme(llvm::CmpInst::FCMP_OGT, a, x), more);
    }
    case Fold::arg_max:
    case Fold::arg_min:
      break;
  }
  EINC_CHECK(false, "positions are kept by prefer");
}

Register ValueEmitter::value(ValueId id) {
  for (size_t k = scopes_.size(); k-- > 0;)
    if (const auto found = scopes_[k].find(id); found != scopes_[k].end()) return found->second;
  Register x = compute(kernel_.values[id]);
  scopes_.back()[id] = x;
  return x;
}

Register ValueEmitter::as(ValueId id, DType dtype) { return convert(b_, value(id), compute_dtype(kernel_.values[id].dtype), dtype); }

Register ValueEmitter::before_rounding(ValueId id) {
  Scalar v = kernel_.values[id];
  const bool from_float = v.kind == ScalarKind::map || (v.kind == ScalarKind::cast && small_float(kernel_.values[v.operands[0]].dtype));
  if (v.dtype != DType::bf16 || !from_float) return nullptr;
  v.dtype = DType::f32;
  return compute(v);
}

Register ValueEmitter::compute(const Scalar& v) {
  llvm::Type* type = register_type(context_, v.dtype);
  switch (v.kind) {
    case ScalarKind::constant: {
      if (is_floating(v.dtype)) return round_to(b_, number(type, v.real), v.dtype);
      return integer(type, v.dtype == DType::boolean ? v.integer != 0 : v.integer);
    }
    case ScalarKind::index:
      return as_number(place_of(v.index), v.dtype);
    case ScalarKind::quotient:
      return divided(v);
    case ScalarKind::remainder:
      return divided(v);
    case ScalarKind::load:
      return read(v.slot, place_of(v.index), guard(v));
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
      if (sums_are_normal_ && v.dtype == DType::bf16) return from_storage(b_, bf16_bits_of_normal(b_, results_[v.slot]), DType::bf16);
      return round_to(b_, convert(b_, results_[v.slot], keeps_position(r) ? DType::i64 : folded_dtype(r), compute_dtype(v.dtype)), v.dtype);
    }
    case ScalarKind::running:
      return running_value(v);
  }
  return nullptr;
}

Register ValueEmitter::running_value(const Scalar& v) { EINC_CHECK(false, "reduction r{} is read while it runs", v.slot); }

// Vectors have no division of 64-bit numbers; by constants, 32-bit ones are a few multiplications.
Register ValueEmitter::divided(const Scalar& v) {
  Register x = as(v.operands[0], DType::i64);
  const auto divide = [&](Register whole) {
    llvm::Constant* by = integer(whole->getType(), v.integer);
    return v.kind == ScalarKind::quotient ? b_.CreateUDiv(whole, by) : b_.CreateURem(whole, by);
  };
  if (!x->getType()->isVectorTy() || !fits_32_bits(v)) return divide(x);
  return b_.CreateZExt(divide(b_.CreateTrunc(x, with_lanes_of(b_.getInt32Ty(), x->getType()))), x->getType());
}

// An index without computed parts, or a part of one, even in lanes beyond the last position.
bool ValueEmitter::fits_32_bits(const Scalar& v) const {
  if (v.kind == ScalarKind::quotient || v.kind == ScalarKind::remainder)
    return v.integer < INT32_MAX && fits_32_bits(kernel_.values[v.operands[0]]);
  if (v.kind != ScalarKind::index || !v.index.dynamic.empty() || v.index.affine.constant < 0) return false;
  int64_t most = v.index.affine.constant;
  for (const Affine::Term& t : v.index.affine.terms) {
    if (t.coefficient < 0) return false;
    most += t.coefficient * (kernel_.extent(t.axis) + lanes_);
  }
  return most < INT32_MAX;
}

// An index, or a part of one, whose lanes are evenly apart.
std::optional<ValueEmitter::Place> ValueEmitter::linear(ValueId id) {
  const Scalar& v = kernel_.values[id];
  if (v.kind == ScalarKind::index) {
    const Affine& index = v.index.affine;
    const bool axis_alone = index.constant == 0 && index.terms.size() == 1 && index.terms[0].coefficient == 1 && v.index.dynamic.empty();
    return axis_alone ? std::optional(place_of(v.index)) : std::nullopt;
  }
  if (v.kind != ScalarKind::quotient && v.kind != ScalarKind::remainder) return std::nullopt;
  std::optional<Place> p = linear(v.operands[0]);
  if (!p || (p->step != 0 && (lane_start_ != LaneStart::aligned || v.integer % lanes_ != 0))) return std::nullopt;
  p->scalar = v.kind == ScalarKind::quotient ? b_.CreateUDiv(p->scalar, i64(v.integer)) : b_.CreateURem(p->scalar, i64(v.integer));
  if (v.kind == ScalarKind::quotient) p->step = 0;
  return p;
}

Register ValueEmitter::map(const Scalar& v) {
  if (const auto argument = argument_of_gelu_slope(kernel_, v)) return emit_gelu_slope(b_, as(*argument, DType::f32));
  boost::container::small_vector<Register, 3> x;
  DType operand = compute_dtype(v.dtype);
  if (is_comparison(v.fn)) operand = common_dtype(kernel_.values[v.operands[0]].dtype, kernel_.values[v.operands[1]].dtype);
  if (is_logical(v.fn)) operand = DType::boolean;
  for (size_t k = 0; k < v.operands.size(); ++k) x.push_back(as(v.operands[k], v.fn == MapFn::where && k == 0 ? DType::boolean : operand));
  int lanes = 1;
  for (Register r : x) lanes = std::max(lanes, lanes_of(r->getType()));
  for (Register& r : x) r = splat(b_, r, lanes);
  const Register made = emit_map(b_, v.fn, {x.data(), x.size()}, operand, v.dtype);
  return chooses_wider(kernel_, v) ? round_to(b_, made, v.dtype) : made;
}

Register ValueEmitter::random(const Scalar& v) {
  const Place place = place_of(v.index);
  Register x = drawn(v, place);
  const DType dtype = v.random == RandomKind::keep_mask ? DType::boolean : v.random == RandomKind::bits ? DType::i64 : DType::f64;
  return round_to(b_, convert(b_, x, dtype, compute_dtype(v.dtype)), v.dtype);
}

// Lanes that begin a block of the generator's draw whole blocks.
Register ValueEmitter::drawn(const Scalar& v, const Place& place) {
  const auto one_by_one = [&] {
    return emit_random(b_, v.random, streams_[v.slot], step_, is_wide(place) ? wide_index(place) : place.scalar, v.real);
  };
  if (place.step != 1 || place.extra || lanes_ % kRandomBlock != 0 || lanes_ == kRandomBlock) return one_by_one();
  BasicBlock *blocks = block("blocks"), *single = block("single"), *after = block("after");
  b_.CreateCondBr(b_.CreateICmpEQ(b_.CreateAnd(place.scalar, i64(kRandomBlock - 1)), i64(0)), blocks, single);
  b_.SetInsertPoint(blocks);
  Register in_blocks = emit_random_blocks(b_, v.random, streams_[v.slot], step_, place.scalar, lanes_, v.real);
  b_.CreateBr(after);
  b_.SetInsertPoint(single);
  Register in_single = one_by_one();
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
  llvm::PHINode* x = b_.CreatePHI(in_blocks->getType(), 2);
  x->addIncoming(in_blocks, blocks);
  x->addIncoming(in_single, single);
  return x;
}

ValueEmitter::Place ValueEmitter::place_of(const Subscript& index) {
  Place place{i64(index.affine.constant), 0, nullptr};
  for (const Affine::Term& t : index.affine.terms) {
    EINC_CHECK(axis_[t.axis], "axis a{} has no loop", t.axis);
    place.scalar =
        b_.CreateAdd(place.scalar, t.coefficient == 1 ? axis_[t.axis] : b_.CreateMul(axis_[t.axis], i64(t.coefficient), "", false, true),
                     "", false, true);
    if (lane_axis_ == t.axis) place.step = t.coefficient;
  }
  for (const Subscript::Dynamic& d : index.dynamic) {
    if (const std::optional<Place> p = linear(d.value)) {
      place.scalar = b_.CreateAdd(place.scalar, b_.CreateMul(p->scalar, i64(d.coefficient)));
      place.step += p->step * d.coefficient;
      continue;
    }
    Register x = as(d.value, DType::i64);
    if (d.coefficient != 1) x = b_.CreateMul(x, integer(x->getType(), d.coefficient));
    if (!x->getType()->isVectorTy())
      place.scalar = b_.CreateAdd(place.scalar, x);
    else
      place.extra = place.extra ? b_.CreateAdd(place.extra, x) : x;
  }
  return place;
}

Register ValueEmitter::wide_index(const Place& p) {
  Register x = b_.CreateAdd(splat(b_, p.scalar, lanes_), lane_numbers(b_.getInt64Ty(), p.step));
  return p.extra ? b_.CreateAdd(x, p.extra) : x;
}

Register ValueEmitter::as_number(const Place& p, DType dtype) {
  llvm::Type* type = register_type(context_, dtype);
  if (!is_wide(p)) return b_.CreateTrunc(p.scalar, type);
  if (p.extra || dtype == DType::i64) return b_.CreateTrunc(wide_index(p), with_lanes_of(type, lane_numbers(type)->getType()));
  return b_.CreateAdd(splat(b_, b_.CreateTrunc(p.scalar, type), lanes_), lane_numbers(type, p.step));
}

// Whether all guards hold, per lane when they differ; null without guards.
Register ValueEmitter::guard(const Scalar& v) {
  Register all = nullptr, wide = nullptr;  // of those that are one condition, and of the others
  for (const Range& g : v.guards) {
    const Place p = place_of(g.index);
    Register x = is_wide(p) ? wide_index(p) : p.scalar;
    Register inside = b_.CreateICmpULT(b_.CreateSub(x, integer(x->getType(), g.lower)), integer(x->getType(), g.upper - g.lower));
    Register& known = is_wide(p) ? wide : all;
    known = known ? b_.CreateAnd(known, inside) : inside;
  }
  if (!all || !wide) return all ? all : wide;
  return b_.CreateAnd(by_lane(all, b_.getInt32(static_cast<uint32_t>(lanes_))), wide);
}

// LLVM 19 loads a vector's last part whole where its mask is one condition in all lanes and a constant 0 (AVX2: the part's mask is taken
// for undefined): what it has then are no zeros, and it may be past the end of the buffer. Comparisons by lane keep it apart: of so many
// lanes, the first, under the condition.
Register ValueEmitter::by_lane(Register condition, Register lanes) {
  Register count = b_.CreateSelect(condition, lanes, b_.getInt32(0));
  return b_.CreateICmpULT(lane_numbers(b_.getInt32Ty()), splat(b_, count, lanes_));
}

// The lanes that take part: the vector's own mask and a guard; null when all do.
Register ValueEmitter::active(Register guard) {
  if (!guard) return mask_;
  if (!mask_) return splat(b_, guard, lanes_);
  if (lanes_of(guard->getType()) > 1) return b_.CreateAnd(guard, mask_);
  if (taking_part_) return by_lane(guard, taking_part_);
  return b_.CreateAnd(by_lane(guard, b_.getInt32(static_cast<uint32_t>(lanes_))), mask_);
}

Register ValueEmitter::element(uint16_t buffer, Register index) {
  return b_.CreateInBoundsGEP(storage_type(context_, kernel_.buffers[buffer].dtype), buffers_[buffer], index);
}

Register ValueEmitter::all_lanes() {
  return llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(static_cast<unsigned>(lanes_)), b_.getTrue());
}

// The processor's own prefetching ends with each page of 4 KB.
void ValueEmitter::fetch_ahead(Register address, int64_t bytes) {
  constexpr int64_t kDistance = 4096;
  for (int64_t line = 0; line < bytes; line += kCacheLine)
    prefetch(b_, b_.CreateConstGEP1_64(b_.getInt8Ty(), address, static_cast<uint64_t>(kDistance + line)), Prefetch::into_first);
}

Register ValueEmitter::read(uint16_t buffer, const Place& p, Register guard) {
  const DType dtype = kernel_.buffers[buffer].dtype;
  llvm::Type* stored = storage_type(context_, dtype);
  if (!is_wide(p)) {
    Register index = p.scalar;
    if (guard) index = b_.CreateSelect(b_.CreateICmpULT(index, i64(kernel_.buffers[buffer].count)), index, i64(0));
    Register x = from_storage(b_, b_.CreateAlignedLoad(stored, element(buffer, index), align(buffer)), dtype);
    if (!guard) return x;
    x = splat(b_, x, lanes_of(guard->getType()));
    return b_.CreateSelect(guard, x, llvm::Constant::getNullValue(x->getType()));
  }
  llvm::Type* type = llvm::FixedVectorType::get(stored, static_cast<unsigned>(lanes_));
  Register mask = active(guard);
  Register zero = llvm::Constant::getNullValue(type);
  if (p.step == 1 && !p.extra) {
    Register address = element(buffer, p.scalar);
    if (!fetched_.empty() && fetched_[buffer]) fetch_ahead(address, lanes_ * bytes_of(dtype));
    return from_storage(b_,
                        mask ? static_cast<Register>(b_.CreateMaskedLoad(type, address, align(buffer), mask, zero))
                             : b_.CreateAlignedLoad(type, address, align(buffer)),
                        dtype);
  }
  return from_storage(b_, b_.CreateMaskedGather(type, element(buffer, wide_index(p)), align(buffer), mask ? mask : all_lanes(), zero),
                      dtype);
}

Register ValueEmitter::element_at(const Store& store, const Place& place) {
  const DType dtype = kernel_.buffers[store.buffer].dtype;
  return convert(b_, read(store.buffer, place, nullptr), dtype, compute_dtype(dtype));
}

Register ValueEmitter::folded(const Store& store, Register element) {
  Register x = as(store.value, compute_dtype(kernel_.buffers[store.buffer].dtype));
  const int lanes = std::max(lanes_of(element->getType()), lanes_of(x->getType()));
  return combine(fold_of(store.mode), splat(b_, element, lanes), splat(b_, x, lanes));
}

void ValueEmitter::emit_store(const Store& store) {
  const Place p = place_of(store.index);
  Register x = folds_in_place(store.mode) ? folded(store, element_at(store, p))
                                          : as(store.value, compute_dtype(kernel_.buffers[store.buffer].dtype));
  emit_store(store, p, x);
}

void ValueEmitter::emit_store(const Store& store, const Place& p, Register x) {
  const DType dtype = kernel_.buffers[store.buffer].dtype;
  const bool rounded = dtype == DType::bf16 && store.mode == StoreMode::set && kernel_.values[store.value].dtype == dtype;
  const auto to_stored = [&](Register y) { return rounded ? bf16_bits_of_rounded(b_, y) : to_storage(b_, y, dtype); };
  if (!is_wide(p)) {
    b_.CreateAlignedStore(to_stored(x), element(store.buffer, p.scalar), align(store.buffer));
    return;
  }
  Register stored = to_stored(splat(b_, x, lanes_));
  if (p.step != 1 || p.extra) {
    b_.CreateMaskedScatter(stored, element(store.buffer, wide_index(p)), align(store.buffer), mask_ ? mask_ : all_lanes());
    return;
  }
  Register address = element(store.buffer, p.scalar);
  if (mask_) {
    b_.CreateMaskedStore(stored, address, align(store.buffer), mask_);
  } else if (!streamed_.empty() && streamed_[store.buffer]) {
    llvm::Metadata* yes[] = {llvm::ConstantAsMetadata::get(b_.getInt32(1))};
    b_.CreateAlignedStore(stored, address, llvm::Align(kCacheLine))
        ->setMetadata(llvm::LLVMContext::MD_nontemporal, llvm::MDNode::get(context_, yes));
  } else {
    b_.CreateAlignedStore(stored, address, align(store.buffer));
  }
}

// The position, or 0 and a report where it is outside; the divisor, or 1 and a report where it is 0.
Register ValueEmitter::checked(const Scalar& v) {
  Register x = as(v.operands[0], DType::i64);
  const bool divides = v.integer == 0;
  Register bad = divides ? b_.CreateICmpEQ(x, integer(x->getType(), 0)) : b_.CreateICmpUGE(x, integer(x->getType(), v.integer));
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
      llvm::Type* word = b_.getIntNTy(static_cast<unsigned>(lanes));
      Register first = b_.CreateIntrinsic(intrinsic::cttz, {word}, {b_.CreateBitCast(bad, word), b_.getTrue()});
      first = b_.CreateZExtOrTrunc(first, b_.getInt64Ty());
      if (is_wide(p)) place = b_.CreateExtractElement(wide_index(p), first);
      if (x->getType()->isVectorTy()) held = b_.CreateExtractElement(x, first);
    }
    auto* type = llvm::FunctionType::get(b_.getVoidTy(), {b_.getPtrTy(), b_.getInt32Ty(), b_.getInt64Ty(), b_.getInt64Ty()}, false);
    // Cold: what lies in registers around it is stored where it is called, not in each iteration before.
    b_.CreateCall(module_.getOrInsertFunction(kIndexFaultSymbol, type), {function_->getArg(0), b_.getInt32(v.slot), place, held})
        ->addFnAttr(llvm::Attribute::Cold);
  });
  return b_.CreateSelect(bad, integer(with_lanes_of(b_.getInt64Ty(), bad->getType()), divides ? 1 : 0), splat(b_, x, lanes));
}

}  // namespace einc
