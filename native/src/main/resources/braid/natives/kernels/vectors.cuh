// Thread indices, and vectors of numbers accessed by 4 to 16 bytes.
#pragma once

static __device__ __forceinline__ u64 thread() {
  return (u64)blockIdx.x * blockDim.x + threadIdx.x;
}

static __device__ __forceinline__ u64 threads() { return (u64)gridDim.x * blockDim.x; }

static __device__ __forceinline__ unsigned sharedAddress(const void* pointer) {
  return (unsigned)__cvta_generic_to_shared(pointer);
}

// 64-bit division; five times as fast if both operands are below 2^32.
static __device__ __forceinline__ u64 quotient(u64 a, u64 b) {
  return (a | b) >> 32 == 0 ? (u64)((unsigned)a / (unsigned)b) : a / b;
}

// Type of an access to that number of bytes.
template <int BYTES> struct Words;
template <> struct Words<16> { typedef uint4 Type; };
template <> struct Words<8> { typedef uint2 Type; };
template <> struct Words<4> { typedef unsigned Type; };
template <> struct Words<2> { typedef unsigned short Type; };
template <> struct Words<1> { typedef unsigned char Type; };

// COUNT adjacent numbers of a type, read and written in one access.
template <class T, int COUNT> struct Vector {
  static const int BYTES = COUNT * (int)sizeof(typename T::Bits);
  static const int PER_WORD = 4 / (int)sizeof(typename T::Bits);
  typedef typename Words<BYTES>::Type Access;

  union {
    Access access;
    unsigned words[BYTES / 4];
  };

  __device__ __forceinline__ void read(const void* from, u64 index) {
    access = ((const Access*)from)[index];
  }

  __device__ __forceinline__ void write(void* to, u64 index) const {
    ((Access*)to)[index] = access;
  }

  __device__ __forceinline__ float get(int i) const {
    const int bits = 8 * (int)sizeof(typename T::Bits);
    unsigned word = words[i / PER_WORD] >> i % PER_WORD * bits % 32;
    return T::widen(bits == 32 ? word : word & (1u << bits % 32) - 1);
  }

  __device__ __forceinline__ void set(const float (&values)[COUNT]) {
#pragma unroll
    for (int w = 0; w < BYTES / 4; w++) {
      const float* v = values + w * PER_WORD;
      if constexpr (PER_WORD == 1) {
        words[w] = asBits(v[0]);
      } else if constexpr (PER_WORD == 2) {
        words[w] = T::narrowPair(v[0], v[1]);
      } else {
        words[w] = T::narrowPair(v[0], v[1]) | T::narrowPair(v[2], v[3]) << 16;
      }
    }
  }
};
