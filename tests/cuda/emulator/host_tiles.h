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
template <class Sum>
inline void emu_mma(float* c, const unsigned* a, const unsigned* b, Sum sum) {
  EmuSlot slot{};
  __builtin_memcpy(slot.words, a, 16);
  __builtin_memcpy(slot.words + 4, b, 8);
  const EmuSlot* all = emu->collective(~0u, &slot);
  const unsigned lane = (*emu->current)->lane, group = lane / 4, in_group = lane % 4;
  for (unsigned i = 0; i < 4; ++i) c[i] += sum(all, group + i / 2 * 8, 2 * in_group + i % 2);
}
template <class Format>
inline void emu_mma_m16n8k16(float* c, const unsigned* a, const unsigned* b) {
  emu_mma(c, a, b, [](const EmuSlot* all, unsigned row, unsigned column) {
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
  emu_mma(c, a, b, [](const EmuSlot* all, unsigned row, unsigned column) {
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
