// Rounding of heads to e4m3, each row of a head with a scale of its own: its numbers, a byte each,
// and then the scale in fp32, at any alignment. A warp has one row of a head at a time.
#pragma once

static const int LARGEST_EXPONENT = 8;             // of 448, the largest number of e4m3
static const unsigned LARGEST_FRACTION = 0x600000;  // of 448
static const int LEAST_SCALE_EXPONENT = -100;
static const unsigned NOT_A_NUMBER = 0x7fc00000u;

// Returns a power of two.
static __device__ __forceinline__ float powerOfTwo(int exponent) {
  return asFloat((unsigned)(exponent + 127) << 23);
}

// Returns the exponent of the least power of two by which a number is at most 448.
static __device__ __forceinline__ int scaleExponent(unsigned size) {
  int exponent = (int)(size >> 23) - 127 - LARGEST_EXPONENT;
  bool above = (size & 0x7fffffu) > LARGEST_FRACTION;
  int least = exponent + (above ? 1 : 0);
  return least < LEAST_SCALE_EXPONENT ? LEAST_SCALE_EXPONENT : least;
}

static __device__ __forceinline__ float largestOf(int code) {
  return code == BF16 ? asFloat(0x7f7f0000u) : code == FP16 ? 65504.0f : asFloat(0x7f7fffffu);
}

extern "C" __global__ void __launch_bounds__(256)
    braid_attention_round(const void* from, u64 fromStride, int code, unsigned char* to,
                          u64 toStride, u64 count, int heads, int headSize) {
  int lane = threadIdx.x % 32;
  for (u64 at = thread() / 32; at < count; at += threads() / 32) {
    u64 first = at / heads * fromStride + at % heads * headSize;
    unsigned char* rounded = to + at / heads * toStride + at % heads * (headSize + 4);
    unsigned largest = 0;
    for (int i = lane; i < headSize; i += 32) {
      largest = max(largest, asBits(load(code, from, first + i)) & SIZE_MASK);
    }
    for (int step = 16; step > 0; step /= 2) {
      largest = max(largest, __shfl_xor_sync(0xffffffffu, largest, step));
    }
    bool finite = largest < INFINITY_BITS;
    int exponent = finite ? scaleExponent(largest) : 0;
    float inverse = powerOfTwo(-exponent);
    for (int i = lane; i < headSize; i += 32) {
      rounded[i] = (unsigned char)E4m3::narrow(load(code, from, first + i) * inverse);
    }
    unsigned scale = finite ? asBits(powerOfTwo(exponent)) : NOT_A_NUMBER;
    if (lane < 4) rounded[headSize + lane] = (unsigned char)(scale >> 8 * lane);
  }
}

extern "C" __global__ void __launch_bounds__(256)
    braid_attention_restore(void* to, u64 toStride, int code, const unsigned char* from,
                            u64 fromStride, u64 count, int heads, int headSize) {
  int lane = threadIdx.x % 32;
  float limit = largestOf(code);
  for (u64 at = thread() / 32; at < count; at += threads() / 32) {
    u64 first = at / heads * toStride + at % heads * headSize;
    const unsigned char* rounded = from + at / heads * fromStride + at % heads * (headSize + 4);
    unsigned scaleBits = 0;
    for (int i = 0; i < 4; i++) scaleBits |= (unsigned)rounded[headSize + i] << 8 * i;
    float scale = asFloat(scaleBits);
    for (int i = lane; i < headSize; i += 32) {
      float number = E4m3::widen(rounded[i]) * scale;
      if (fabsf(number) > limit) number = copysignf(limit, number);
      store(code, to, first + i, number);
    }
  }
}
