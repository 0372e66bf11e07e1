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
// `unsigned char* name`: the block's dynamic shared memory, aligned to 16 bytes.
#define EINC_SHARED(name)                                               \
  extern __shared__ __align__(16) unsigned char einc_shared_memory[];   \
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

// A position outside its table. Of the first launch that has one the smallest place is kept. The lock is held for a few instructions and
// never across a barrier.
struct Fault {
  i32 launch, site;
  i64 place, value;
  u32 lock;
};
__device__ __noinline__ void index_fault(Fault* fault, i32 launch, i32 site, i64 place, i64 value) {
  volatile Fault* held = fault;
  while (atomicCAS(&fault->lock, 0u, 1u) != 0u) {
  }
  __threadfence();
  if (held->launch < 0 || (held->launch == launch && place < held->place)) {
    held->launch = launch;
    held->site = site;
    held->place = place;
    held->value = value;
  }
  __threadfence();
  atomicExch(&fault->lock, 0u);
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
#endif
