// SPDX-License-Identifier: Apache-2.0
// In front of all generated CUDA: element types and their conversions, loads of several elements, and the processor's own instructions.
// No toolkit header is needed. Kernels hold no inline PTX; what is inside `#ifndef EINC_EMULATED` has its like in the emulator.
typedef signed char i8;
typedef unsigned char u8;
typedef unsigned short u16;
typedef int i32;
typedef unsigned u32;
typedef long long i64;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;
struct bf16 {
  u16 bits;
};
struct f16 {
  u16 bits;
};
struct e4m3 {
  u8 bits;
};
struct e5m2 {
  u8 bits;
};

#ifndef EINC_EMULATED
// `unsigned char* name`: the block's dynamic shared memory, aligned as operands of wgmma are.
#define EINC_SHARED(name)                                               \
  extern __shared__ __align__(1024) unsigned char einc_shared_memory[]; \
  unsigned char* name = einc_shared_memory
#endif

// N elements that are read or written at once; N * sizeof(T) at most 16.
template <class T, int N>
struct __align__(sizeof(T) * N) Vec {
  T at[N];
};
template <int N, class T>
__device__ __forceinline__ Vec<T, N> load_vec(const T* p) {
  return *reinterpret_cast<const Vec<T, N>*>(p);
}
template <class T, int N>
__device__ __forceinline__ void store_vec(T* p, const Vec<T, N>& v) {
  *reinterpret_cast<Vec<T, N>*>(p) = v;
}

// The magnitude of a float in a format of so many bits, rounded to the nearest, ties to even; `overflow` from the first magnitude that
// is no longer rounded to a finite number.
template <int MANTISSA, int BIAS>
__device__ __forceinline__ u32 einc_encode(f32 magnitude, f32 first_overflow, u32 overflow) {
  const u32 bits = __float_as_uint(magnitude), drop = 23 - MANTISSA;
  if (magnitude >= first_overflow) return overflow;
  if (bits < (128u - BIAS) << 23) {  // below the smallest normal number
    const f32 ulp_one = __uint_as_float((128u - BIAS + drop) << 23);
    return __float_as_uint(__fadd_rn(magnitude, ulp_one)) - __float_as_uint(ulp_one);
  }
  return ((bits + ((1u << (drop - 1)) - 1) + (bits >> drop & 1)) >> drop) - ((127u - BIAS) << MANTISSA);
}

__device__ __forceinline__ f32 to_f32(f32 x) { return x; }
__device__ __forceinline__ f32 to_f32(bf16 x) { return __uint_as_float(static_cast<u32>(x.bits) << 16); }
__device__ __forceinline__ bf16 to_bf16(f32 x) {
#ifndef EINC_EMULATED
  bf16 r;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r.bits) : "f"(x));
  return r;
#else
  const u32 bits = __float_as_uint(x);
  if (x != x) return {0x7FFF};
  return {static_cast<u16>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)};
#endif
}
// As to_f32(to_bf16(x)), in one instruction where that takes two: the other half of the pair is zero, so that the pair is an f32.
__device__ __forceinline__ f32 round_to_bf16(f32 x) {
#ifndef EINC_EMULATED
  u32 r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(x), "f"(0.f));
  return __uint_as_float(r);
#else
  return to_f32(to_bf16(x));
#endif
}
__device__ __forceinline__ f32 to_f32(f16 x) {
#ifndef EINC_EMULATED
  f32 r;
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x.bits));
  return r;
#else
  const u32 sign = (x.bits & 0x8000u) << 16, rest = x.bits & 0x7FFFu;
  if (rest >= 0x7C00) return __uint_as_float(sign | 0x7F800000u | (rest & 0x3FF) << 13);
  if (rest < 0x400) return __uint_as_float(sign | __float_as_uint(static_cast<f32>(rest) * 0x1p-24f));
  return __uint_as_float(sign | ((rest << 13) + (112u << 23)));
#endif
}
__device__ __forceinline__ f16 to_f16(f32 x) {
#ifndef EINC_EMULATED
  f16 r;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r.bits) : "f"(x));
  return r;
#else
  if (x != x) return {0x7FFF};
  return {static_cast<u16>(__float_as_uint(x) >> 16 & 0x8000u | einc_encode<10, 15>(fabsf(x), 65520.f, 0x7C00))};
#endif
}
// Beyond 448, which is its largest number, e4m3 has no infinity: NaN.
__device__ __forceinline__ f32 to_f32(e4m3 x) {
  const u32 sign = (x.bits & 0x80u) << 24, rest = x.bits & 0x7Fu;
  if (rest == 0x7F) return __uint_as_float(sign | 0x7FC00000u);
  if (rest < 8) return __uint_as_float(sign | __float_as_uint(static_cast<f32>(rest) * 0x1p-9f));
  return __uint_as_float(sign | ((rest << 20) + (120u << 23)));
}
__device__ __forceinline__ e4m3 to_e4m3(f32 x) {
  const f32 magnitude = fabsf(x);
  if (!(magnitude <= 464.f)) return {static_cast<u8>(__float_as_uint(x) >> 24 & 0x80u | 0x7F)};
#if !defined(EINC_EMULATED) && __CUDA_ARCH__ >= 890
  u16 pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.f), "f"(x));
  return {static_cast<u8>(pair)};
#else
  return {static_cast<u8>(__float_as_uint(x) >> 24 & 0x80u | einc_encode<3, 7>(magnitude, 1e30f, 0x7F))};
#endif
}
__device__ __forceinline__ f32 to_f32(e5m2 x) { return to_f32(f16{static_cast<u16>(x.bits << 8)}); }
__device__ __forceinline__ e5m2 to_e5m2(f32 x) {
  const u32 sign = __float_as_uint(x) >> 24 & 0x80u;
  if (x != x) return {static_cast<u8>(sign | 0x7F)};
  return {static_cast<u8>(sign | einc_encode<2, 15>(fabsf(x), 61440.f, 0x7C))};
}

// A position outside its table, as runtime/cuda/fault_record.h reads it: lanes of one warp wait for nothing.
struct Fault {
  i32 launch;
  u32 unused;
  u64 words[3];
};
__device__ __noinline__ void index_fault(Fault* fault, i32 launch, i32 site, i64 place, i64 value) {
  const i32 first = atomicCAS(&fault->launch, -1, launch);
  if (first != -1 && first != launch) return;
  const i64 last = (1ll << 34) - 1;
  const u64 order = u64(place < last ? place : last) << 8 | u64(site < 255 ? site : 255);
  for (int part = 0; part < 3; ++part) atomicMin(&fault->words[part], order << 22 | (u64(value) >> 22 * part & 0x3FFFFFu));
}

#ifndef EINC_EMULATED
__device__ __forceinline__ u32 pack_bf16x2(f32 low, f32 high) {
  u32 r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}
__device__ __forceinline__ u32 pack_f16x2(f32 low, f32 high) {
  u32 r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}
// c (16 x 8, f32) += a (16 x 16) b (16 x 8): lane 4g+t holds rows g and g+8 of a, column g of b, and of c rows g and g+8 at columns 2t, 2t+1.
__device__ __forceinline__ void mma_m16n8k16_bf16(f32* c, const u32* a, const u32* b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ __forceinline__ void mma_m16n8k16_f16(f32* c, const u32* a, const u32* b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// c (16 x 8, f32) += a (16 x 8) b (8 x 8) of f32 rounded to tf32: lane 4g+t holds rows g and g+8 of a at columns t, then at t+4; of b column
// g at rows t and t+4; of c as above.
__device__ __forceinline__ void mma_m16n8k8_tf32(f32* c, const u32* a, const u32* b) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ __forceinline__ u32 to_tf32(u32 f32_bits) {
  u32 rounded;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(__uint_as_float(f32_bits)));
  return rounded;
}
// Four 8 x 8 matrices of 16-bit elements from shared memory: lane i gives the address of row i % 8 of matrix i / 8.
__device__ __forceinline__ void ldmatrix_x4(u32* r, const void* row) {
  const u32 address = static_cast<u32>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}
__device__ __forceinline__ void ldmatrix_x4_trans(u32* r, const void* row) {
  const u32 address = static_cast<u32>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}
// 16 bytes from global to shared memory, there after a wait; `bytes` of them (0 to 16), the rest zero.
__device__ __forceinline__ void cp_async16(void* to, const void* from, u32 bytes = 16) {
  const u32 address = static_cast<u32>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes) : "memory");
}
__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Until at most PENDING of this thread's groups are under way.
template <int PENDING>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

// Products of four warps together, on GPUs of compute capability 9.0 alone (PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions").
// Operands in shared memory are rows of 128 bytes whose 16-byte pieces stand in another order, piece c of row r at c ^ r % 8: so neither
// reading a row nor a column meets one bank twice. Eight rows are 1024 bytes, to which an operand's first row is aligned; an operand may
// begin at any multiple of 32 bytes in a row, and of 16 rows.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
__device__ __forceinline__ u64 wgmma_operand(const void* first) {
  const u64 swizzled = u64(1) << 62, eight_rows = u64(1024 >> 4) << 32, unused = u64(1) << 16;
  return swizzled | eight_rows | unused | (u64(__cvta_generic_to_shared(first)) >> 4 & 0x3FFF);
}
// What this thread stored in shared memory, copies that have arrived too, is there for products after the next barrier.
__device__ __forceinline__ void wgmma_stored() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
// Before the first product of a group, and where registers of one were written since the last.
__device__ __forceinline__ void wgmma_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
// Until all products are done; then wgmma_use of each array of sums.
__device__ __forceinline__ void wgmma_end() {
  asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
}
template <int N>
__device__ __forceinline__ void wgmma_use(f32 (&d)[N][4]) {
  #pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3]) :: "memory");
}
#define EINC_SUMS_8(d, i) "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])
#define EINC_SUMS_32(d) EINC_SUMS_8(d, 0), EINC_SUMS_8(d, 1), EINC_SUMS_8(d, 2), EINC_SUMS_8(d, 3)
#define EINC_SUMS_64(d) EINC_SUMS_32(d), EINC_SUMS_8(d, 4), EINC_SUMS_8(d, 5), EINC_SUMS_8(d, 6), EINC_SUMS_8(d, 7)
#define EINC_REGISTERS_32 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define EINC_REGISTERS_64 EINC_REGISTERS_32 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define EINC_WGMMA(columns, format, operands) \
  "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." #format "." #format " {" EINC_REGISTERS_##columns "}, " operands ";\n}"
#define EINC_IF_NOT_0(x) "{\n.reg .pred p;\nsetp.ne.b32 p, " x ", 0;\n"
// d (64 x 8 N, laid out as mma_m16n8k16's in each warp's 16 rows) = a b^T of 16 columns of both, or with that added; both by rows. And
// d (64 x 64) += a b, a (64 x 16) in registers as mma_m16n8k16's, b 16 rows of 64.
#define EINC_DEFINE_WGMMA(format)                                                                                                     \
  __device__ __forceinline__ void wgmma_##format(f32 (&d)[4][4], u64 a, u64 b, int add) {                                             \
    asm volatile(EINC_IF_NOT_0("%18") EINC_WGMMA(32, format, "%16, %17, p, 1, 1, 0, 0")                                               \
                 : EINC_SUMS_32(d)                                                                                                    \
                 : "l"(a), "l"(b), "r"(add));                                                                                         \
  }                                                                                                                                   \
  __device__ __forceinline__ void wgmma_##format(f32 (&d)[8][4], u64 a, u64 b, int add) {                                             \
    asm volatile(EINC_IF_NOT_0("%34") EINC_WGMMA(64, format, "%32, %33, p, 1, 1, 0, 0")                                               \
                 : EINC_SUMS_64(d)                                                                                                    \
                 : "l"(a), "l"(b), "r"(add));                                                                                         \
  }                                                                                                                                   \
  __device__ __forceinline__ void wgmma_##format(f32 (*d)[4], const u32* a, u64 b) {                                                  \
    asm volatile(EINC_IF_NOT_0("1") EINC_WGMMA(64, format, "{%32, %33, %34, %35}, %36, p, 1, 1, 1")                                   \
                 : EINC_SUMS_64(d)                                                                                                    \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));                                                               \
  }
EINC_DEFINE_WGMMA(bf16)
EINC_DEFINE_WGMMA(f16)
#endif
#endif

// Of a 4 x 4 matrix of words lane t of four has column t in x, and then row t: what the lanes hold of four tiles of a product's sums is
// side by side in memory.
__device__ __forceinline__ void transpose_quad(u32* x) {
  #pragma unroll
  for (int bit = 1; bit < 4; bit *= 2) {
    const bool upper = threadIdx.x & bit;
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i & bit) continue;
      const u32 taken = __shfl_xor_sync(0xffffffffu, upper ? x[i] : x[i + bit], bit);
      if (upper) x[i] = taken;
      else x[i + bit] = taken;
    }
  }
}

__device__ __forceinline__ f32 infinity() { return __uint_as_float(0x7F800000u); }
__device__ __forceinline__ f32 not_a_number() { return __uint_as_float(0x7FC00000u); }

// f64 to f32 by rounding to odd, so that rounding again to a shorter format gives what rounding at once gives.
__device__ __forceinline__ f32 odd_f32(f64 x) {
  const f32 nearest = f32(x);
  const f64 back = f64(nearest);
  const u32 bits = __float_as_uint(nearest);
  if (!(back < x || back > x) || (bits & 1u)) return nearest;
  return __uint_as_float(fabs(back) < fabs(x) ? bits + 1u : bits - 1u);
}

// Floats to integers go towards zero and stop at the ends; NaN gives 0.
__device__ __forceinline__ i32 to_i32(f64 x) { return x != x ? 0 : x >= 2147483648.0 ? 2147483647 : x <= -2147483648.0 ? -2147483647 - 1 : i32(x); }
__device__ __forceinline__ i64 to_i64(f64 x) {
  return x != x ? 0 : x >= 0x1p63 ? 0x7FFFFFFFFFFFFFFFll : x <= -0x1p63 ? -0x7FFFFFFFFFFFFFFFll - 1 : i64(x);
}
__device__ __forceinline__ i32 to_whole(f64 x, i32 largest) { return !(x > 0) ? 0 : x >= largest ? largest : i32(x); }

// --- functions ---

__device__ __forceinline__ i32 add(i32 a, i32 b) { return i32(u32(a) + u32(b)); }
__device__ __forceinline__ i64 add(i64 a, i64 b) { return i64(u64(a) + u64(b)); }
__device__ __forceinline__ i32 sub(i32 a, i32 b) { return i32(u32(a) - u32(b)); }
__device__ __forceinline__ i64 sub(i64 a, i64 b) { return i64(u64(a) - u64(b)); }
__device__ __forceinline__ i32 mul(i32 a, i32 b) { return i32(u32(a) * u32(b)); }
__device__ __forceinline__ i64 mul(i64 a, i64 b) { return i64(u64(a) * u64(b)); }
__device__ __forceinline__ f32 add(f32 a, f32 b) { return a + b; }
__device__ __forceinline__ f64 add(f64 a, f64 b) { return a + b; }
__device__ __forceinline__ f32 mul(f32 a, f32 b) { return a * b; }
__device__ __forceinline__ f64 mul(f64 a, f64 b) { return a * b; }
__device__ __forceinline__ f32 add_product(f32 a, f32 b, f32 sum) { return __fmaf_rn(a, b, sum); }
__device__ __forceinline__ f64 add_product(f64 a, f64 b, f64 sum) { return __fma_rn(a, b, sum); }

// NaN where one operand is; of zeros of both signs either.
template <class T>
__device__ __forceinline__ T larger(T a, T b) {
  return a > b || a != a ? a : b;
}
template <class T>
__device__ __forceinline__ T smaller(T a, T b) {
  return a < b || a != a ? a : b;
}
#ifndef EINC_EMULATED
__device__ __forceinline__ f32 larger(f32 a, f32 b) {
  f32 r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
__device__ __forceinline__ f32 smaller(f32 a, f32 b) {
  f32 r;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
#endif
__device__ __forceinline__ bool larger(bool a, bool b) { return a || b; }
__device__ __forceinline__ bool smaller(bool a, bool b) { return a && b; }

// Whether (x, place) comes before (old, old_place): NaN first, then the extreme, then the lower place.
template <class T>
__device__ __forceinline__ bool comes_first_as_largest(T x, i64 place, T old, i64 old_place) {
  const bool nan = x != x, old_nan = old != old;
  return x > old || (nan && !old_nan) || ((x == old || (nan && old_nan)) && place < old_place);
}
template <class T>
__device__ __forceinline__ bool comes_first_as_least(T x, i64 place, T old, i64 old_place) {
  const bool nan = x != x, old_nan = old != old;
  return x < old || (nan && !old_nan) || ((x == old || (nan && old_nan)) && place < old_place);
}

template <class T>
__device__ __forceinline__ T sign_of(T x) {
  return x != x ? x : T((x > T(0)) - (x < T(0)));
}
template <class T>
__device__ __forceinline__ T relu_of(T x) {
  return x < T(0) ? T(0) : x;
}
__device__ __forceinline__ i32 abs_of(i32 x) { return x < 0 ? sub(0, x) : x; }
__device__ __forceinline__ i64 abs_of(i64 x) { return x < 0 ? sub(i64(0), x) : x; }
__device__ __forceinline__ f32 abs_of(f32 x) { return fabsf(x); }
__device__ __forceinline__ f64 abs_of(f64 x) { return fabs(x); }

#define EINC_FUNCTION(name, in_float, in_double)      \
  __device__ __forceinline__ f32 name(f32 x) { return in_float(x); } \
  __device__ __forceinline__ f64 name(f64 x) { return in_double(x); }
EINC_FUNCTION(exp_of, expf, exp)
EINC_FUNCTION(expm1_of, expm1f, expm1)
EINC_FUNCTION(log_of, logf, log)
EINC_FUNCTION(log1p_of, log1pf, log1p)
EINC_FUNCTION(sqrt_of, sqrtf, sqrt)
EINC_FUNCTION(rsqrt_of, rsqrtf, rsqrt)
EINC_FUNCTION(sin_of, sinf, sin)
EINC_FUNCTION(cos_of, cosf, cos)
EINC_FUNCTION(tanh_of, tanhf, tanh)
EINC_FUNCTION(erf_of, erff, erf)
EINC_FUNCTION(erfc_of, erfcf, erfc)
EINC_FUNCTION(floor_of, floorf, floor)
EINC_FUNCTION(ceil_of, ceilf, ceil)
EINC_FUNCTION(round_of, rintf, rint)
EINC_FUNCTION(trunc_of, truncf, trunc)
EINC_FUNCTION(tan_of, tanf, tan)
EINC_FUNCTION(asin_of, asinf, asin)
EINC_FUNCTION(acos_of, acosf, acos)
EINC_FUNCTION(atan_of, atanf, atan)
EINC_FUNCTION(sinh_of, sinhf, sinh)
EINC_FUNCTION(cosh_of, coshf, cosh)
EINC_FUNCTION(erfinv_of, erfinvf, erfinv)
EINC_FUNCTION(lgamma_of, lgammaf, lgamma)
// 2^x by the processor's own instruction: within 2^-22 of it, numbers below the normal ones are 0.
__device__ __forceinline__ f32 exp2_short(f32 x) {
#ifndef EINC_EMULATED
  f32 r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
#else
  return exp2f(x);
#endif
}
static const f32 kLog2E = 1.44269504f;
__device__ __forceinline__ f32 atan2_of(f32 y, f32 x) { return atan2f(y, x); }
__device__ __forceinline__ f64 atan2_of(f64 y, f64 x) { return atan2(y, x); }
// Toward -infinity; the least integer over -1 wraps. The divisor is not 0.
template <class T>
__device__ __forceinline__ T floor_divide(T x, T by) {
  if (by == T(-1)) return sub(T(0), x);
  const T quotient = x / by, rest = x % by;
  return rest != T(0) && (rest < T(0)) != (by < T(0)) ? quotient - T(1) : quotient;
}
template <class T>
__device__ __forceinline__ T floor_remainder(T x, T by) {
  if (by == T(-1)) return T(0);
  const T rest = x % by;
  return rest != T(0) && (rest < T(0)) != (by < T(0)) ? rest + by : rest;
}
__device__ __forceinline__ f32 pow_of(f32 x, f32 y) { return powf(x, y); }
__device__ __forceinline__ f64 pow_of(f64 x, f64 y) { return pow(x, y); }
template <class T>
__device__ __forceinline__ T sigmoid_of(T x) {
  return T(1) / (T(1) + exp_of(-x));
}
template <class T>
__device__ __forceinline__ T silu_of(T x) {
  return x / (T(1) + exp_of(-x));
}
template <class T>
__device__ __forceinline__ T gelu_of(T x) {
  return T(0.5) * x * erfc_of(x * T(-0.70710678118654752));
}
template <class T>
__device__ __forceinline__ T gelu_tanh_of(T x) {
  return x * sigmoid_of(T(1.5957691216057308) * (x + T(0.044715) * x * x * x));
}
template <class T>
__device__ __forceinline__ T softplus_of(T x) {
  return larger(x, T(0)) + log1p_of(exp_of(-abs_of(x)));
}
// log(e^a + e^b), of infinities too.
template <class T>
__device__ __forceinline__ T log_add(T a, T b) {
  return larger(a, b) + log1p_of(exp_of(a == b ? T(0) : -abs_of(a - b)));
}
// Squaring while bits of the exponent remain.
template <class T>
__device__ __forceinline__ T whole_power(T base, T exponent) {
  T result = 1;
  for (u64 bits = sizeof(T) == 4 ? u64(u32(exponent) & 0x7FFFFFFFu) : u64(exponent) & 0x7FFFFFFFFFFFFFFFull; bits; bits >>= 1) {
    if (bits & 1) result = mul(result, base);
    base = mul(base, base);
  }
  return result;
}

// --- random numbers: the sequences that the language fixes, bit for bit ---

struct Words {
  u32 at[4];
};
__device__ __forceinline__ Words random_words(u64 key, u64 step, u64 block) {
  u32 low = u32(key), high = u32(key >> 32);
  u32 c0 = u32(block), c1 = u32(block >> 32), c2 = u32(step), c3 = u32(step >> 32);
  for (int round = 0; round < 10; ++round) {
    const u64 a = u64(0xD2511F53u) * c0, b = u64(0xCD9E8D57u) * c2;
    c0 = u32(b >> 32) ^ c1 ^ low, c1 = u32(b), c2 = u32(a >> 32) ^ c3 ^ high, c3 = u32(a);
    low += 0x9E3779B9u, high += 0xBB67AE85u;
  }
  return Words{{c0, c1, c2, c3}};
}
__device__ __forceinline__ u32 random_word(u64 key, u64 step, u64 index) {
  const Words words = random_words(key, step, index >> 2);
  const u32 even = index & 2 ? words.at[2] : words.at[0], odd = index & 2 ? words.at[3] : words.at[1];
  return index & 1 ? odd : even;
}
__device__ __forceinline__ f64 random_uniform(u64 key, u64 step, u64 index) { return f64(random_word(key, step, index) >> 8) * 0x1p-24; }
__device__ __forceinline__ bool random_kept(u64 key, u64 step, u64 index, u32 below) { return random_word(key, step, index) >> 8 < below; }

__device__ __forceinline__ f64 log_of_share(f64 x) {
  const i64 half = 0x3FE6A09E667F3BCDll;  // sqrt(1/2)
  const i64 exponent = (__double_as_longlong(x) - half) & ~0xFFFFFFFFFFFFFll;
  const f64 m = __longlong_as_double(__double_as_longlong(x) - exponent), e = f64(exponent >> 52);
  const f64 s = __ddiv_rn(__dadd_rn(m, -1.0), __dadd_rn(m, 1.0)), z = __dmul_rn(s, s);
  f64 series = 0.1481207579715455;
  series = __fma_rn(series, z, 0.15312518420371354);
  series = __fma_rn(series, z, 0.181836209122515);
  series = __fma_rn(series, z, 0.2222219755213358);
  series = __fma_rn(series, z, 0.28571428751627181);
  series = __fma_rn(series, z, 0.39999999999376612);
  series = __fma_rn(series, z, 0.66666666666667396);
  return __fma_rn(e, 0.69314718055994531, __fma_rn(__dmul_rn(s, z), series, __dmul_rn(2.0, s)));
}
__device__ __forceinline__ i64 random_bits(u64 key, u64 step, u64 index) { return i64(random_word(key, step, index) >> 1); }
__device__ __forceinline__ f64 random_gumbel(u64 key, u64 step, u64 index) {
  const f64 share = __dmul_rn(__dadd_rn(f64(random_word(key, step, index)), 0.5), 0x1p-32);
  return -__dadd_rn(log_of_share(__dmul_rn(-log_of_share(share), 0x1p-5)), 3.4657359027997265);
}
__device__ __forceinline__ f64 random_normal(u64 key, u64 step, u64 index) {
  const Words words = random_words(key, step, index >> 2);
  const u32 first = index & 2 ? words.at[2] : words.at[0], second = index & 2 ? words.at[3] : words.at[1];
  const f64 radius = __dsqrt_rn(__dmul_rn(-2.0, log_of_share(__dmul_rn(__dadd_rn(f64(first), 1.0), 0x1p-32))));
  const u32 octant = second >> 29, rest = second & 0x1FFFFFFFu;
  const f64 r = __dmul_rn(__dmul_rn(f64(octant & 1 ? 0x20000000u - rest : rest), 0x1p-29), 0.78539816339744831), z = __dmul_rn(r, r);
  const bool cosine = (((octant + 1) >> 1 ^ u32(index)) & 1u) == 0, negative = (index & 1 ? octant >> 2 : (octant + 2) >> 2) & 1u;
  f64 series = cosine ? -1.1359802563253344e-11 : 1.5895434146411586e-10;
  series = __fma_rn(series, z, cosine ? 2.0875727060114306e-9 : -2.5050734399872692e-8);
  series = __fma_rn(series, z, cosine ? -2.7557314387473928e-7 : 2.7557313538554341e-6);
  series = __fma_rn(series, z, cosine ? 2.4801587289636317e-5 : -0.00019841269829358571);
  series = __fma_rn(series, z, cosine ? -0.0013888888888874441 : 0.0083333333333218407);
  series = __fma_rn(series, z, cosine ? 0.041666666666666602 : -0.1666666666666663);
  const f64 chosen =
      cosine ? __fma_rn(__dmul_rn(z, z), series, __fma_rn(z, -0.5, 1.0)) : __fma_rn(__dmul_rn(r, z), series, r);
  return __dmul_rn(radius, negative ? -chosen : chosen);
}
