// Fills tensors.
#pragma once

extern "C" __global__ void __launch_bounds__(256)
    braid_fill_value(void* to, u64 count, int code, float value) {
  for (u64 i = thread(); i < count; i += threads()) store(code, to, i, value);
}

// Draws element i from -3 to 3 by the seed's i-th random number, as on the host.
extern "C" __global__ void __launch_bounds__(256)
    braid_fill_integers(void* to, u64 count, int code, u64 seed) {
  for (u64 i = thread(); i < count; i += threads()) {
    u64 z = seed + (i + 1) * 0x9E3779B97F4A7C15ull;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ z >> 27) * 0x94D049BB133111EBull;
    z ^= z >> 31;
    store(code, to, i, (float)((int)((z >> 32) * 7 >> 32) - 3));
  }
}
