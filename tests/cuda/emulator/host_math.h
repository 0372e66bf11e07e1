// SPDX-License-Identifier: Apache-2.0
// CUDA's elementary functions and reinterpretations, from the host's C library; part of cuda_host.h. Nothing is included: a kernel compiles
// in a tenth of the time.
#pragma once

template <class To, class From>
inline To emu_cast(From from) {
  static_assert(sizeof(To) == sizeof(From), "a cast of bits between sizes");
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}
inline float __uint_as_float(unsigned x) { return emu_cast<float>(x); }
inline unsigned __float_as_uint(float x) { return emu_cast<unsigned>(x); }
inline float __int_as_float(int x) { return emu_cast<float>(x); }
inline int __float_as_int(float x) { return emu_cast<int>(x); }
inline double __longlong_as_double(long long x) { return emu_cast<double>(x); }
inline long long __double_as_longlong(double x) { return emu_cast<long long>(x); }
inline double __hiloint2double(int high, int low) {
  return __longlong_as_double(static_cast<long long>(high) << 32 | static_cast<unsigned>(low));
}

// Formatted again it changes each time.
// clang-format off
#define EMU_MATH_1(X) \
  X(exp) X(exp2) X(exp10) X(expm1) X(log) X(log2) X(log10) X(log1p) X(sin) X(cos) X(tan) X(sinh) X(cosh) X(tanh) X(asin) X(acos) X(atan) \
  X(asinh) X(acosh) X(atanh) X(erf) X(erfc) X(sqrt) X(cbrt) X(fabs) X(floor) X(ceil) X(trunc) X(round) X(rint) X(nearbyint) X(lgamma) X(tgamma)
// clang-format on
#define EMU_MATH_2(X) X(pow) X(atan2) X(fmod) X(hypot) X(fmin) X(fmax) X(copysign) X(fdim) X(remainder)
#define EMU_DECLARE_1(name)                 \
  extern "C" double name(double) noexcept;  \
  extern "C" float name##f(float) noexcept; \
  inline float name(float x) { return name##f(x); }
#define EMU_DECLARE_2(name)                        \
  extern "C" double name(double, double) noexcept; \
  extern "C" float name##f(float, float) noexcept; \
  inline float name(float x, float y) { return name##f(x, y); }
EMU_MATH_1(EMU_DECLARE_1)
EMU_MATH_2(EMU_DECLARE_2)
extern "C" double fma(double, double, double) noexcept;
extern "C" float fmaf(float, float, float) noexcept;
inline float fma(float a, float b, float c) { return fmaf(a, b, c); }
extern "C" double ldexp(double, int) noexcept;
extern "C" float ldexpf(float, int) noexcept;
// By bisection of erf, or of erfc where that is smaller: slow, and independent of all that is tested with it.
inline double erfinv(double x) {
  const double a = fabs(x), infinity = __builtin_inf();
  if (!(a < 1)) return a == 1 ? copysign(infinity, x) : __builtin_nan("");
  if (a < 1e-8) return x * 0.88622692545275801364;
  double low = 0, high = 6;
  for (int step = 0; step < 60; ++step) {
    const double middle = 0.5 * (low + high);
    const bool beyond = a < 0.5 ? erf(middle) > a : erfc(middle) < 1 - a;
    (beyond ? high : low) = middle;
  }
  return copysign(0.5 * (low + high), x);
}
inline float erfinvf(float x) { return static_cast<float>(erfinv(x)); }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __frcp_rn(float x) { return 1.0f / x; }

// Operations that the compiler never merges; the host is told not to either (-ffp-contract=off).
#define EMU_ROUNDED(T, p)                            \
  inline T __##p##add_rn(T a, T b) { return a + b; } \
  inline T __##p##sub_rn(T a, T b) { return a - b; } \
  inline T __##p##mul_rn(T a, T b) { return a * b; } \
  inline T __##p##div_rn(T a, T b) { return a / b; }
EMU_ROUNDED(float, f)
EMU_ROUNDED(double, d)
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline double __dsqrt_rn(double x) { return sqrt(x); }

// Conversions to integers keep to the range, and NaN is 0.
template <class To, class From>
inline To emu_to_integer(From x, To lowest, To highest) {
  if (x != x) return 0;
  if (x <= static_cast<From>(lowest)) return lowest;
  if (x >= static_cast<From>(highest)) return highest;
  return static_cast<To>(x);
}
inline int __float2int_rn(float x) { return emu_to_integer<int>(rintf(x), -2147483647 - 1, 2147483647); }
inline int __float2int_rz(float x) { return emu_to_integer<int>(x, -2147483647 - 1, 2147483647); }
inline int __double2int_rz(double x) { return emu_to_integer<int>(x, -2147483647 - 1, 2147483647); }
inline unsigned __float2uint_rn(float x) { return emu_to_integer<unsigned>(rintf(x), 0, 4294967295u); }
inline unsigned __float2uint_rz(float x) { return emu_to_integer<unsigned>(x, 0, 4294967295u); }
inline long long __float2ll_rz(float x) { return emu_to_integer<long long>(x, -9223372036854775807ll - 1, 9223372036854775807ll); }
inline long long __float2ll_rn(float x) { return __float2ll_rz(rintf(x)); }
inline long long __double2ll_rz(double x) { return emu_to_integer<long long>(x, -9223372036854775807ll - 1, 9223372036854775807ll); }
inline long long __double2ll_rn(double x) { return __double2ll_rz(rint(x)); }
inline float __double2float_rn(double x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }

inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline unsigned __brev(unsigned x) {
  unsigned r = 0;
  for (int i = 0; i < 32; ++i) r = r << 1 | (x >> i & 1);
  return r;
}
inline bool isnan(float x) { return x != x; }
inline bool isnan(double x) { return x != x; }
inline bool isinf(float x) { return fabsf(x) == __builtin_inff(); }
inline bool isinf(double x) { return fabs(x) == __builtin_inf(); }
inline bool isfinite(float x) { return fabsf(x) < __builtin_inff(); }
inline bool isfinite(double x) { return fabs(x) < __builtin_inf(); }
inline bool signbit(float x) { return __builtin_signbit(x) != 0; }
inline bool signbit(double x) { return __builtin_signbit(x) != 0; }
#define EMU_MIN_MAX(T)                             \
  inline T min(T a, T b) { return b < a ? b : a; } \
  inline T max(T a, T b) { return a < b ? b : a; }
EMU_MIN_MAX(int)
EMU_MIN_MAX(unsigned)
EMU_MIN_MAX(long long)
EMU_MIN_MAX(unsigned long long)
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
inline int abs(int x) { return x < 0 ? -x : x; }
inline long long llabs(long long x) { return x < 0 ? -x : x; }
template <class T>
inline T __ldg(const T* p) {
  return *p;
}
template <class T>
inline T __ldcs(const T* p) {
  return *p;
}
template <class T>
inline void __stcs(T* p, T value) {
  *p = value;
}
template <class T>
inline T __ldcg(const T* p) {
  return *p;
}
template <class T>
inline void __stcg(T* p, T value) {
  *p = value;
}
