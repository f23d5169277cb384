// What tensors hold: their range, and where two of them differ.
#pragma once

struct RangeResult {
  unsigned largestBits;  // of an fp32 number that is not negative: such are ordered as their bits
  int integers;
};

// ASSUMPTION: the result begins as {0, 1}. A NaN counts as infinite and as no integer.
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
  u64 first;  // the smallest index where they differ
  u64 count;
};

// What was expected is rounded to the type that was got. NaN differs from all, itself included.
// ASSUMPTION: the result begins as {2^64 - 1, 0}.
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
    bool same = wanted == is
        || fabs((double)wanted - (double)is) <= atol + rtol * fabs((double)wanted);
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
