// Fills tensors.
#pragma once

extern "C" __global__ void __launch_bounds__(256)
    braid_fill_value(void* to, u64 count, int code, float value) {
  for (u64 i = thread(); i < count; i += threads()) store(code, to, i, value);
}

// The seed's i-th random word, as on the host.
__device__ u64 random_bits(u64 seed, u64 i) {
  u64 z = seed + (i + 1) * 0x9E3779B97F4A7C15ull;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ z >> 27) * 0x94D049BB133111EBull;
  return z ^ z >> 31;
}

// Draws element i from -3 to 3.
extern "C" __global__ void __launch_bounds__(256)
    braid_fill_integers(void* to, u64 count, int code, u64 seed) {
  for (u64 i = thread(); i < count; i += threads()) {
    store(code, to, i, (float)((int)((random_bits(seed, i) >> 32) * 7 >> 32) - 3));
  }
}

// Draws element i with mean 0 and variance 1: four even parts of a word are added.
extern "C" __global__ void __launch_bounds__(256)
    braid_fill_reals(void* to, u64 count, int code, u64 seed) {
  for (u64 i = thread(); i < count; i += threads()) {
    u64 bits = random_bits(seed, i);
    int sum = (int)(bits & 0xFFFF) + (int)(bits >> 16 & 0xFFFF) + (int)(bits >> 32 & 0xFFFF) +
              (int)(bits >> 48);
    store(code, to, i, (float)(sum - 0x1FFFE) * 0x1.bb67aep-16f);
  }
}
