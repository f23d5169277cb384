// Inspects tensors: their range, their differences and their errors.
#pragma once

struct RangeResult {
  unsigned largestBits;  // fp32 numbers that are not negative have the order of their bits
  int integers;
};

// ASSUMPTION: the result starts as {0, 1}. A NaN counts as infinite and as no integer.
extern "C" __global__ void __launch_bounds__(256)
    braid_range(const void* from, u64 count, int code, RangeResult* result) {
  unsigned largest = 0;
  int integers = 1;
  for (u64 i = thread(); i < count; i += threads()) {
    float value = load(code, from, i);
    unsigned size = asBits(value) & SIZE_MASK;
    integers &= value == rintf(value);
    size = size < INFINITY_BITS ? size : INFINITY_BITS;
    largest = largest > size ? largest : size;
  }
  largest = __reduce_max_sync(0xffffffffu, largest);
  integers = __all_sync(0xffffffffu, integers);
  if (threadIdx.x % 32 == 0) {
    atomicMax(&result->largestBits, largest);
    if (!integers) atomicAnd(&result->integers, 0);
  }
}

struct CompareResult {
  u64 first;  // the smallest index at which they differ
  u64 count;
};

// Compares with expected numbers rounded to the type of the actual ones. NaN equals an expected
// NaN; only an equal infinity is near an infinity.
// ASSUMPTION: the result starts as {2^64 - 1, 0}.
extern "C" __global__ void __launch_bounds__(256) braid_compare(
    const void* expected, int expectedCode, const void* got, int gotCode, u64 count,
    u64 atolBits, u64 rtolBits, CompareResult* result) {
  double atol = __longlong_as_double((long long)atolBits);
  double rtol = __longlong_as_double((long long)rtolBits);
  u64 first = ~0ull;
  unsigned different = 0;
  for (u64 i = thread(); i < count; i += threads()) {
    float wanted = rounded(gotCode, load(expectedCode, expected, i));
    float is = load(gotCode, got, i);
    double apart = fabs((double)wanted - (double)is);
    bool same = wanted == is || (isNan(wanted) && isNan(is))
        || (isFinite(wanted) && isFinite(is) && apart <= atol + rtol * fabs((double)wanted));
    if (!same) {
      first = first < i ? first : i;
      different++;
    }
  }
  if (different != 0) {
    atomicMin(&result->first, first);
    atomicAdd(&result->count, (u64)different);
  }
}

// Writes the magnitudes of numbers in their type by clearing the sign bit: store() would turn an
// fp8 infinity into the largest finite number.
extern "C" __global__ void __launch_bounds__(256)
    braid_sizes(void* to, const void* from, u64 count, int code) {
  for (u64 i = thread(); i < count; i += threads()) {
    switch (code) {
      case E4M3:
      case E5M2: ((unsigned char*)to)[i] = ((const unsigned char*)from)[i] & 0x7fu; break;
      case BF16:
      case FP16: ((unsigned short*)to)[i] = ((const unsigned short*)from)[i] & 0x7fffu; break;
      default: ((unsigned*)to)[i] = ((const unsigned*)from)[i] & SIZE_MASK;
    }
  }
}

// Lowers `low` and raises `high` by share * size + least, rounded outward, unless the size is at
// most `exact`. Bounds that are not finite stay, unless `overflows` is set and the sum is not
// finite: then any number is allowed.
extern "C" __global__ void __launch_bounds__(256) braid_widen(
    float* low, float* high, const float* sizes, u64 count, float share, float least, float exact,
    int overflows) {
  for (u64 i = thread(); i < count; i += threads()) {
    float size = sizes[i];
    if (size <= exact) continue;
    float far = isFinite(size) ? __fadd_ru(__fmul_ru(share, size), least) : asFloat(INFINITY_BITS);
    bool all = overflows && !isFinite(far);
    if (isFinite(low[i]) || all) {
      low[i] = all ? asFloat(INFINITY_BITS | 0x80000000u) : __fsub_rd(low[i], far);
    }
    if (isFinite(high[i]) || all) {
      high[i] = all ? asFloat(INFINITY_BITS) : __fadd_ru(high[i], far);
    }
  }
}

struct Judgement {
  u64 first;       // the smallest index outside its interval
  double squares;  // sum of squared errors beyond the last rounding
  double allowed;  // sum of squared reaches of the intervals
};

static __device__ __forceinline__ double sumOfWarp(double value) {
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    value += __shfl_down_sync(0xffffffffu, value, lanes);
  }
  return value;
}

// Checks numbers against the intervals around the expected ones.
// ASSUMPTION: the result starts as {2^64 - 1, 0, 0}.
extern "C" __global__ void __launch_bounds__(256) braid_judge(
    const void* expected, const void* low, const void* high, int code, int activation,
    float outScale, const void* got, int gotCode, u64 count, Judgement* result) {
  u64 first = ~0ull;
  double squares = 0;
  double allowed = 0;
  for (u64 i = thread(); i < count; i += threads()) {
    Bounds bounds;
    bounds.expected = load(code, expected, i);
    bounds.low = load(code, low, i);
    bounds.high = load(code, high, i);
    if (activation) bounds = activated(bounds);
    bounds = scaled(bounds, outScale);
    float found = load(gotCode, got, i);
    if (first > i && !allows(rounded(gotCode, bounds), found)) first = i;
    double far = reach(bounds);
    if (isFinite(found) && far < 1e300) {
      double off = unexplained(gotCode, bounds.expected, found);
      squares += off * off;
      allowed += far * far;
    }
  }
  if (first != ~0ull) atomicMin(&result->first, first);
  squares = sumOfWarp(squares);
  allowed = sumOfWarp(allowed);
  if (threadIdx.x % 32 == 0) {
    atomicAdd(&result->squares, squares);
    atomicAdd(&result->allowed, allowed);
  }
}
