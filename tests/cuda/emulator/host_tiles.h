// SPDX-License-Identifier: Apache-2.0
// The prelude's tile instructions as each lane of a warp does its part of them; part of cuda_host.h.
#pragma once

inline unsigned emu_bf16(float x) {
  const unsigned bits = __float_as_uint(x);
  return x != x ? 0x7FFFu : (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16;
}
inline unsigned pack_bf16x2(float low, float high) { return emu_bf16(low) | emu_bf16(high) << 16; }
inline unsigned emu_f16(float x) { return emu_cast<unsigned short>(static_cast<_Float16>(x)); }
inline unsigned pack_f16x2(float low, float high) { return emu_f16(low) | emu_f16(high) << 16; }
struct EmuBf16 {
  static float value(unsigned bits) { return __uint_as_float(bits << 16); }
};
struct EmuF16 {
  static float value(unsigned bits) { return static_cast<float>(emu_cast<_Float16>(static_cast<unsigned short>(bits))); }
};
template <class Format>
inline float emu_half_of(const unsigned* registers, unsigned index, unsigned odd) {
  return Format::value(registers[index] >> (odd * 16) & 0xFFFFu);
}
// c of 16 rows x 8 columns: each thread has two neighbours of a row, and of the row 8 below. `sum(all, row, column)`: what is added there.
template <int Depth, class Sum>
inline void emu_mma(float* c, const unsigned* a, const unsigned* b, Sum sum) {
  EmuSlot slot{};
  __builtin_memcpy(slot.words, a, 16);
  __builtin_memcpy(slot.words + 4, b, 8);
  const EmuSlot* all = emu->collective(~0u, &slot);
  const unsigned lane = (*emu->current)->lane, group = lane / 4, in_group = lane % 4;
  if (lane == 0) emu->multiplied(2 * 16 * 8 * Depth);
  for (unsigned i = 0; i < 4; ++i) c[i] += sum(all, group + i / 2 * 8, 2 * in_group + i % 2);
}
template <class Format>
inline void emu_mma_m16n8k16(float* c, const unsigned* a, const unsigned* b) {
  emu_mma<16>(c, a, b, [](const EmuSlot* all, unsigned row, unsigned column) {
    float sum = 0;
    for (unsigned k = 0; k < 16; ++k)
      sum += emu_half_of<Format>(all[row % 8 * 4 + k % 8 / 2].words, (row >= 8) + 2 * (k >= 8), k & 1) *
             emu_half_of<Format>(all[column * 4 + k % 8 / 2].words, 4 + (k >= 8), k & 1);
    return sum;
  });
}
inline void mma_m16n8k16_bf16(float* c, const unsigned* a, const unsigned* b) { emu_mma_m16n8k16<EmuBf16>(c, a, b); }
inline void mma_m16n8k16_f16(float* c, const unsigned* a, const unsigned* b) { emu_mma_m16n8k16<EmuF16>(c, a, b); }

// The hardware reads no bits below the tenth behind the point, so that what was not rounded would be cut.
inline float emu_tf32(unsigned bits) { return __uint_as_float(bits & 0xFFFFE000u); }
inline void mma_m16n8k8_tf32(float* c, const unsigned* a, const unsigned* b) {
  emu_mma<8>(c, a, b, [](const EmuSlot* all, unsigned row, unsigned column) {
    float sum = 0;
    for (unsigned k = 0; k < 8; ++k)
      sum += emu_tf32(all[row % 8 * 4 + k % 4].words[(row >= 8) + 2 * (k >= 4)]) * emu_tf32(all[column * 4 + k % 4].words[4 + (k >= 4)]);
    return sum;
  });
}
// To the nearest, halves away from zero.
inline unsigned to_tf32(unsigned f32_bits) {
  return (f32_bits & 0x7F800000u) == 0x7F800000u ? f32_bits : (f32_bits + 0x1000u) & 0xFFFFE000u;
}

inline const EmuSlot* emu_rows(const void* row) {
  if (reinterpret_cast<unsigned long long>(row) % 16 != 0) emu->fail("a row of ldmatrix is not aligned to 16 bytes");
  EmuSlot slot{};
  __builtin_memcpy(slot.words, &row, sizeof row);
  return emu->collective(~0u, &slot);
}
inline const char* emu_row(const EmuSlot* all, unsigned lane) {
  const char* row;
  __builtin_memcpy(&row, all[lane].words, sizeof row);
  return row;
}
inline void ldmatrix_x4(unsigned* r, const void* row) {
  const EmuSlot* all = emu_rows(row);
  const unsigned lane = (*emu->current)->lane;
  for (unsigned j = 0; j < 4; ++j) __builtin_memcpy(r + j, emu_row(all, j * 8 + lane / 4) + lane % 4 * 4, 4);
}
inline void ldmatrix_x4_trans(unsigned* r, const void* row) {
  const EmuSlot* all = emu_rows(row);
  const unsigned lane = (*emu->current)->lane;
  for (unsigned j = 0; j < 4; ++j) {
    unsigned short pair[2];
    for (unsigned i = 0; i < 2; ++i) __builtin_memcpy(pair + i, emu_row(all, j * 8 + lane % 4 * 2 + i) + lane / 4 * 2, 2);
    r[j] = pair[0] | static_cast<unsigned>(pair[1]) << 16;
  }
}
inline void cp_async16(void* to, const void* from, unsigned bytes = 16) {
  if ((reinterpret_cast<unsigned long long>(to) | reinterpret_cast<unsigned long long>(from)) % 16 != 0)
    emu->fail("an address of cp_async16 is not aligned to 16 bytes");
  emu->copy_push({to, from, bytes});
}
inline void cp_async_commit() { emu->copy_commit(); }
template <int PENDING>
inline void cp_async_wait() {
  for (EmuCopy copy; emu->copy_take(PENDING, &copy);) {
    __builtin_memset(copy.to, 0, 16);
    __builtin_memcpy(copy.to, copy.from, copy.bytes);
  }
}

// Products of four warps: done when they are waited for, so that what is read before is old, and what is overwritten before is new.
#define __CUDA_ARCH_FEAT_SM90_ALL 1
inline unsigned long long wgmma_operand(const void* first) {
  const long long at = static_cast<const unsigned char*>(first) - (*emu->current)->shared;
  if (at < 0 || at % 1024 != 0 || at >> 18 != 0) emu->fail("an operand of wgmma that does not begin at a multiple of 1024 bytes");
  return 1ull << 62 | static_cast<unsigned long long>(at) >> 4;
}
inline void wgmma_stored() {}
inline void wgmma_begin() {}
// Of rows of 128 bytes from `operand` on, which may begin in a row; piece c of row r lies at c ^ r % 8.
inline unsigned emu_wgmma_bits(unsigned long long operand, unsigned row, unsigned column) {
  unsigned at = static_cast<unsigned>(operand & 0x3FFF) * 16 + row * 128 + column * 2;
  at ^= (at >> 7 & 7) << 4;
  unsigned short bits;
  __builtin_memcpy(&bits, (*emu->current)->shared + at, 2);
  return bits;
}
inline void wgmma_end() {
  const unsigned lane = (*emu->current)->lane, warp = (*emu->current)->thread.x / 32 % 4;
  for (EmuProduct p; emu->product_take(&p);) {
    if (lane == 0) emu->multiplied(2ull * 16 * 8 * 16 * static_cast<unsigned>(p.groups));
    for (int n = 0; n < p.groups; ++n)
      for (unsigned i = 0; i < 4; ++i) {
        const unsigned row = warp * 16 + lane / 4 + i / 2 * 8, column = static_cast<unsigned>(n) * 8 + lane % 4 * 2 + i % 2;
        float sum = p.add ? p.sums[n][i] : 0;
        for (unsigned k = 0; k < 16; ++k) {
          const unsigned a =
              p.a_operand ? emu_wgmma_bits(p.a_operand, row, k) : p.a[k % 8 / 2][i / 2 + 2 * (k >= 8)] >> (k & 1) * 16 & 0xFFFF;
          const unsigned b = p.a_operand ? emu_wgmma_bits(p.b_operand, column, k) : emu_wgmma_bits(p.b_operand, k, column);
          sum += p.value(a) * p.value(b);
        }
        p.sums[n][i] = sum;
      }
  }
}
template <int N>
inline void wgmma_use(float (&)[N][4]) {}
inline void emu_wgmma(EmuProduct p, const unsigned* a) {
  EmuSlot slot{};
  if (a) __builtin_memcpy(slot.words, a, 16);
  const EmuSlot* all = emu->collective(~0u, &slot);
  for (unsigned lane = 0; lane < 4; ++lane) __builtin_memcpy(p.a[lane], all[(*emu->current)->lane / 4 * 4 + lane].words, 16);
  emu->product_push(&p);
}
template <int N>
inline void wgmma_bf16(float (&d)[N][4], unsigned long long a, unsigned long long b, int add) {
  emu_wgmma({d, {}, a, b, N, add != 0, EmuBf16::value}, nullptr);
}
template <int N>
inline void wgmma_f16(float (&d)[N][4], unsigned long long a, unsigned long long b, int add) {
  emu_wgmma({d, {}, a, b, N, add != 0, EmuF16::value}, nullptr);
}
inline void wgmma_bf16(float (*d)[4], const unsigned* a, unsigned long long b) { emu_wgmma({d, {}, 0, b, 8, true, EmuBf16::value}, a); }
inline void wgmma_f16(float (*d)[4], const unsigned* a, unsigned long long b) { emu_wgmma({d, {}, 0, b, 8, true, EmuF16::value}, a); }
