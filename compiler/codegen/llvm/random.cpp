// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/llvm/random.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

#include "compiler/codegen/llvm/lanes.h"
#include "runtime/base/check.h"
#include "runtime/base/random.h"

namespace einc {
namespace {

using namespace box_muller_numbers;

constexpr uint64_t kLowWord = 0xFFFFFFFF;

// Words of 32 bits in lanes of 64, whose upper half is 0: products are whole, and LLVM sees that one instruction makes them.
using Words = std::array<Bits, 4>;

// philox of runtime/base/philox.h; the keys of all rounds are made once, as scalars.
Words philox_words(Words counter, Bits key_low, Bits key_high) {
  const auto over_lanes = [&](Bits scalar) {
    const int lanes = lanes_of(counter[0].value->getType());
    return Bits{scalar.builder, splat(static_cast<IrBuilder&>(*scalar.builder), scalar.value, lanes)};
  };
  for (int round = 0; round < 10; ++round) {
    const Bits a = counter[0] * 0xD2511F53, b = counter[2] * 0xCD9E8D57;
    counter = {(b >> 32) ^ counter[1] ^ over_lanes(key_low), b & kLowWord, (a >> 32) ^ counter[3] ^ over_lanes(key_high), a & kLowWord};
    key_low = (key_low + 0x9E3779B9) & kLowWord;
    key_high = (key_high + 0xBB67AE85) & kLowWord;
  }
  return counter;
}

Bits if_bit(Bits word, int place, Bits yes, Bits no) { return select((word & (uint64_t{1} << place)) != 0, yes, no); }
Real if_bit(Bits word, int place, Real yes, Real no) { return select((word & (uint64_t{1} << place)) != 0, yes, no); }

// An integer below 2^52 as a double.
Real whole(Bits word) {
  llvm::Type* type = with_lanes_of(word.builder->getDoubleTy(), word.value->getType());
  const Bits shifted = word | word.constant(std::bit_cast<uint64_t>(0x1p52));
  return Real{word.builder, word.builder->CreateBitCast(shifted.value, type)} - 0x1p52;
}

Real log_of_share(Real x) {
  const Bits exponent = (x.bits() - std::bit_cast<uint64_t>(kSqrtHalf)) & (~uint64_t{0} << 52);
  const Real m = as_real(x.bits() - exponent, x);
  // The exponent is at most 0, its negation below 2^52.
  const Real e = -whole((exponent.constant(0) - exponent) >> 52);
  const Real s = (m - 1.0) / (m + 1.0), z = s * s;
  return fma(e, kLn2, fma(s * z, horner(z, kLogSeries), s * 2.0));
}

// box_muller of runtime/base/random.h; of its two numbers the one that `index` names.
Real normal(Bits first, Bits second, Bits index) {
  const Real radius = square_root(log_of_share((whole(first) + 1.0) * 0x1p-32) * -2.0);
  const Bits octant = second >> 29, rest = second & 0x1FFFFFFF;
  const Real r = whole(if_bit(octant, 0, 0x20000000 - rest, rest)) * 0x1p-29 * kQuarterPi, z = r * r;
  const Real cosine = fma(z * z, horner(z, kCosSeries), fma(z, -0.5, 1.0)), sine = fma(r * z, horner(z, kSinSeries), r);
  // Octants 1, 2, 5 and 6 swap the two, and so does an odd index; the cosine is negative in 2 to 5, the sine from 4 on.
  const Real chosen = if_bit((octant + 1) >> 1 ^ index, 0, sine, cosine);
  const Bits sign = if_bit(index, 0, octant >> 2, (octant + 2) >> 2) & 1;
  return radius * as_real(chosen.bits() ^ (sign << 63), chosen);
}

// Words of the blocks with these numbers.
Words words_of(IrBuilder& b, Bits block, llvm::Value* key, llvm::Value* step) {
  const Bits keys{&b, key}, steps{&b, splat(b, step, lanes_of(block.value->getType()))};
  return philox_words({block & kLowWord, block >> 32, steps & kLowWord, steps >> 32}, keys & kLowWord, keys >> 32);
}

Real gumbel(Bits word) {
  const Real share = (whole(word) + 0.5) * 0x1p-32;
  return -(log_of_share(-log_of_share(share) * 0x1p-5) + kLogOf32);
}

// All but normal numbers and masks are made of words of 64 bits.
bool takes_wide_words(RandomKind kind) { return kind != RandomKind::keep_mask; }

// A uniform or Gumbel number, bits or a mask, from a word of its own for each lane.
llvm::Value* from_word(IrBuilder& b, RandomKind kind, Bits word, double keep) {
  if (kind == RandomKind::gumbel) return gumbel(word).value;
  if (kind == RandomKind::bits) return (word >> 1).value;
  const Bits share = word >> 8;
  if (kind == RandomKind::uniform) return (whole(share) * 0x1p-24).value;
  // share * 2^-24 < keep, in integers.
  const auto kept = static_cast<uint64_t>(std::clamp(std::ceil(keep * 0x1p24), 0.0, 0x1p24));
  return b.CreateICmpULT(share.value, share.constant(kept).value);
}

// Lane 4 k + j is lane k of vector j; lanes of 32 bits, the upper halves of the words being 0.
Bits in_turn(IrBuilder& b, const Words& words) {
  const int blocks = lanes_of(words[0].value->getType());
  llvm::Type* narrow = llvm::FixedVectorType::get(b.getInt32Ty(), static_cast<unsigned>(blocks));
  const auto joined = [&](Bits x, Bits y) {
    std::vector<int> all(static_cast<size_t>(2 * blocks));
    std::iota(all.begin(), all.end(), 0);
    return b.CreateShuffleVector(b.CreateTrunc(x.value, narrow), b.CreateTrunc(y.value, narrow), all);
  };
  std::vector<int> turns;
  for (int k = 0; k < blocks; ++k)
    for (int j = 0; j < 4; ++j) turns.push_back(j * blocks + k);
  return {&b, b.CreateShuffleVector(joined(words[0], words[1]), joined(words[2], words[3]), turns)};
}

Bits widened(IrBuilder& b, Bits x) { return {&b, b.CreateZExt(x.value, with_lanes_of(b.getInt64Ty(), x.value->getType()))}; }

Bits counted(IrBuilder& b, Bits first, int lanes) {
  std::vector<llvm::Constant*> numbers;
  for (int k = 0; k < lanes; ++k) numbers.push_back(b.getInt64(static_cast<uint64_t>(k)));
  return Bits{&b, b.CreateAdd(splat(b, first.value, lanes), llvm::ConstantVector::get(numbers))};
}

}  // namespace

llvm::Value* emit_random(IrBuilder& b, RandomKind kind, llvm::Value* key, llvm::Value* step, llvm::Value* index, double keep) {
  const llvm::IRBuilderBase::FastMathFlagGuard guard(b);
  b.clearFastMathFlags();
  const Bits i{&b, index};
  const Words words = words_of(b, i >> 2, key, step);
  if (kind == RandomKind::normal) return normal(if_bit(i, 1, words[2], words[0]), if_bit(i, 1, words[3], words[1]), i).value;
  return from_word(b, kind, if_bit(i, 1, if_bit(i, 0, words[3], words[2]), if_bit(i, 0, words[1], words[0])), keep);
}

llvm::Value* emit_random_blocks(IrBuilder& b, RandomKind kind, llvm::Value* key, llvm::Value* step, llvm::Value* first, int lanes,
                                double keep) {
  const llvm::IRBuilderBase::FastMathFlagGuard guard(b);
  b.clearFastMathFlags();
  const Bits start{&b, first};
  // Behind other elements of a vector the first draws have negative numbers, and nobody reads them: the next block is 0 all the same.
  const Bits block{&b, b.CreateAShr(first, 2)};
  const Words w = words_of(b, counted(b, block, lanes / kRandomBlock), key, step);
  if (kind == RandomKind::normal) {
    const Bits one = in_turn(b, {w[0], w[0], w[2], w[2]}), other = in_turn(b, {w[1], w[1], w[3], w[3]});
    return normal(widened(b, one), widened(b, other), counted(b, start, lanes)).value;
  }
  const Bits word = in_turn(b, w);
  return from_word(b, kind, takes_wide_words(kind) ? widened(b, word) : word, keep);
}

}  // namespace einc
