// Types of numbers: widening is exact, narrowing rounds to nearest, ties to even. The bit operations
// compile as plain C++ too and can be compared with the host's. GPUs convert by instructions if they
// have them, which takes less time than memory does; the self-test compares every pattern. There a
// NaN stays a NaN, but not its bits.
#pragma once

#ifdef __CUDACC__
#define BRAID_INLINE __device__ __forceinline__
#if __CUDA_ARCH__ >= 890
#define BRAID_FP8
#endif
static BRAID_INLINE float asFloat(unsigned bits) { return __uint_as_float(bits); }
static BRAID_INLINE unsigned asBits(float value) { return __float_as_uint(value); }
#else
#include <cstring>
#define BRAID_INLINE inline
static inline float asFloat(unsigned bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
static inline unsigned asBits(float value) {
  unsigned bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
#endif

typedef unsigned long long u64;

// Codes by which the host passes types.
enum Code { FP32 = 0, TF32 = 1, BF16 = 2, FP16 = 3, E4M3 = 4, E5M2 = 5 };

// Mask of an fp32 number's bits without its sign.
static const unsigned SIZE_MASK = 0x7fffffffu;
static const unsigned INFINITY_BITS = 0x7f800000u;

// Rounds off the low `drop` bits; a carry correctly increments the exponent.
static BRAID_INLINE unsigned roundedShift(unsigned bits, int drop) {
  return (bits + ((1u << (drop - 1)) - 1) + ((bits >> drop) & 1)) >> drop;
}

// Counts the steps of subnormals in a number: adding `magic`, whose last place is one step, rounds
// to steps and leaves their count in the low bits.
static BRAID_INLINE unsigned steps(unsigned size, float magic) {
  return asBits(asFloat(size) + magic) - asBits(magic);
}

struct F32 {
  typedef unsigned Bits;
  static BRAID_INLINE float widen(unsigned bits) { return asFloat(bits); }
  static BRAID_INLINE unsigned narrow(float value) { return asBits(value); }
};

struct Bf16 {
  typedef unsigned short Bits;
  static BRAID_INLINE float widen(unsigned bits) { return asFloat(bits << 16); }
#ifdef __CUDACC__
  static BRAID_INLINE unsigned narrowPair(float low, float high) {
    unsigned bits;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
    return bits;
  }
  static BRAID_INLINE unsigned narrow(float value) { return narrowPair(value, 0); }
#else
  static BRAID_INLINE unsigned narrow(float value) {
    unsigned bits = asBits(value);
    // A NaN keeps its upper half and becomes quiet, so that it cannot round to an infinity.
    bool nan = (bits & SIZE_MASK) > INFINITY_BITS;
    return nan ? bits >> 16 | 0x40u : roundedShift(bits, 16);
  }
#endif
};

struct Fp16 {
  typedef unsigned short Bits;
#ifdef __CUDACC__
  static BRAID_INLINE float widen(unsigned bits) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"((unsigned short)bits));
    return value;
  }
  static BRAID_INLINE unsigned narrowPair(float low, float high) {
    unsigned bits;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
    return bits;
  }
  static BRAID_INLINE unsigned narrow(float value) { return narrowPair(value, 0); }
#else
  static BRAID_INLINE float widen(unsigned bits) {
    unsigned sign = (bits & 0x8000u) << 16;
    unsigned size = bits & 0x7fffu;
    // The shifted exponent is 112 too small; the product corrects it, also for subnormals.
    unsigned finite = asBits(asFloat(size << 13) * 0x1p112f);
    return asFloat(sign | (size >= 0x7c00u ? INFINITY_BITS | size << 13 : finite));
  }
  static BRAID_INLINE unsigned narrow(float value) {
    unsigned bits = asBits(value);
    unsigned sign = bits >> 16 & 0x8000u;
    unsigned size = bits & SIZE_MASK;
    if (size > INFINITY_BITS) {
      return sign | 0x7e00u | (size >> 13 & 0x3ffu);
    }
    // Numbers from 65520, halfway beyond the largest, become infinite.
    unsigned normal = size >= 0x477ff000u ? 0x7c00u : roundedShift(size, 13) - (112u << 10);
    return sign | (size < 0x38800000u ? steps(size, 0x1p-1f) : normal);
  }
#endif
};

// Has no infinities: numbers that are too large become the largest, 448.
struct E4m3 {
  typedef unsigned char Bits;
  static BRAID_INLINE float widen(unsigned bits) {
    unsigned sign = (bits & 0x80u) << 24;
    unsigned size = bits & 0x7fu;
    unsigned finite = asBits(asFloat(size << 20) * 0x1p120f);
    return asFloat(sign | (size == 0x7fu ? 0x7fc00000u : finite));
  }
#ifdef BRAID_FP8
  static BRAID_INLINE unsigned narrowPair(float low, float high) {
    unsigned short bits;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(bits) : "f"(high), "f"(low));
    return bits;
  }
  static BRAID_INLINE unsigned narrow(float value) { return narrowPair(value, 0); }
#else
  static BRAID_INLINE unsigned narrow(float value) {
    unsigned bits = asBits(value);
    unsigned sign = bits >> 24 & 0x80u;
    unsigned size = bits & SIZE_MASK;
    if (size > INFINITY_BITS) {
      return sign | 0x7fu;
    }
    unsigned normal = size >= 0x43e00000u ? 0x7eu : roundedShift(size, 20) - (120u << 3);
    return sign | (size < 0x3c800000u ? steps(size, 0x1p14f) : normal);
  }
  static BRAID_INLINE unsigned narrowPair(float low, float high) {
    return narrow(low) | narrow(high) << 8;
  }
#endif
};

// Infinities are read but never written: numbers that are too large become 57344.
struct E5m2 {
  typedef unsigned char Bits;
  static BRAID_INLINE float widen(unsigned bits) {
    unsigned sign = (bits & 0x80u) << 24;
    unsigned size = bits & 0x7fu;
    unsigned finite = asBits(asFloat(size << 21) * 0x1p112f);
    return asFloat(sign | (size >= 0x7cu ? INFINITY_BITS | size << 21 : finite));
  }
#ifdef BRAID_FP8
  static BRAID_INLINE unsigned narrowPair(float low, float high) {
    unsigned short bits;
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(bits) : "f"(high), "f"(low));
    return bits;
  }
  static BRAID_INLINE unsigned narrow(float value) { return narrowPair(value, 0); }
#else
  static BRAID_INLINE unsigned narrow(float value) {
    unsigned bits = asBits(value);
    unsigned sign = bits >> 24 & 0x80u;
    unsigned size = bits & SIZE_MASK;
    if (size > INFINITY_BITS) {
      return sign | 0x7fu;
    }
    unsigned normal = size >= 0x47600000u ? 0x7bu : roundedShift(size, 21) - (112u << 2);
    return sign | (size < 0x38800000u ? steps(size, 0x1p7f) : normal);
  }
  static BRAID_INLINE unsigned narrowPair(float low, float high) {
    return narrow(low) | narrow(high) << 8;
  }
#endif
};

// Returns the element at that index, widened.
static BRAID_INLINE float load(int code, const void* from, u64 index) {
  switch (code) {
    case BF16: return Bf16::widen(((const Bf16::Bits*)from)[index]);
    case FP16: return Fp16::widen(((const Fp16::Bits*)from)[index]);
    case E4M3: return E4m3::widen(((const E4m3::Bits*)from)[index]);
    case E5M2: return E5m2::widen(((const E5m2::Bits*)from)[index]);
    default: return F32::widen(((const F32::Bits*)from)[index]);
  }
}

static BRAID_INLINE void store(int code, void* to, u64 index, float value) {
  switch (code) {
    case BF16: ((Bf16::Bits*)to)[index] = (Bf16::Bits)Bf16::narrow(value); break;
    case FP16: ((Fp16::Bits*)to)[index] = (Fp16::Bits)Fp16::narrow(value); break;
    case E4M3: ((E4m3::Bits*)to)[index] = (E4m3::Bits)E4m3::narrow(value); break;
    case E5M2: ((E5m2::Bits*)to)[index] = (E5m2::Bits)E5m2::narrow(value); break;
    default: ((F32::Bits*)to)[index] = F32::narrow(value);
  }
}

// Returns the value as the type stores it.
static BRAID_INLINE float rounded(int code, float value) {
  switch (code) {
    case BF16: return Bf16::widen(Bf16::narrow(value));
    case FP16: return Fp16::widen(Fp16::narrow(value));
    case E4M3: return E4m3::widen(E4m3::narrow(value));
    case E5M2: return E5m2::widen(E5m2::narrow(value));
    default: return value;
  }
}
