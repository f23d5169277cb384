// Words by which streams and ranks tell each other how far they are, and a delay for tests.
#pragma once

static __device__ __forceinline__ u64 acquire(const u64* word) {
  u64 value;
  asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}

// Whoever sees the value sees all that this stream did before.
extern "C" __global__ void braid_signal_write(u64* word, u64 value) {
  __threadfence_system();
  asm volatile("st.release.sys.u64 [%0], %1;" :: "l"(word), "l"(value) : "memory");
}

// Spins until the word has come as far as the value (`exactly`: is the value), or until `stop`,
// where there is one, is no longer 0: a wait must end when the run does. Values may wrap.
extern "C" __global__ void braid_signal_wait(
    const u64* word, u64 value, int exactly, const u64* stop) {
  unsigned nanoseconds = 32;
  for (;;) {
    u64 now = acquire(word);
    if (exactly ? now == value : (long long)(now - value) >= 0) return;
    if (stop != 0 && acquire(stop) != 0) return;
    __nanosleep(nanoseconds);
    if (nanoseconds < 512) nanoseconds *= 2;
  }
}

static __device__ __forceinline__ u64 nanosecondsNow() {
  u64 now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// Keeps its multiprocessor busy for that long.
extern "C" __global__ void braid_delay(u64 nanoseconds) {
  u64 begun = nanosecondsNow();
  while (nanosecondsNow() - begun < nanoseconds) {
  }
}
