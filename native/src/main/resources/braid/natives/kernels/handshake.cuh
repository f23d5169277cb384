// Signals between GPUs in the kernel that needs them. A kernel raises words of its peers, waits for
// its own, works, then raises and waits again. One launch so replaces a wait, the work and a signal:
//
//   __global__ void sum(Sum s, Handshake h) {
//     arrive(h);   // this GPU's earlier work is done: tell the peers, and wait until theirs is
//     ...          // read and write peers' memory
//     leave(h);    // the work of all blocks is done: tell the peers, and wait until theirs is
//   }
//
// Only the first block raises words before the work, so no block waits for another of its grid.
// Only the last block to end waits after it.
#pragma once

static const int MOST_WORDS = 16;

// Handshake.java writes these 552 bytes and knows each offset.
struct Handshake {
  u64* raisedFirst[MOST_WORDS];
  u64* awaitedFirst[MOST_WORDS];
  u64* raisedLast[MOST_WORDS];
  u64* awaitedLast[MOST_WORDS];
  u64 value;          // of every word
  unsigned* arrived;  // number of blocks that have ended, 0 between launches
  int raisedFirstCount;
  int awaitedFirstCount;
  int raisedLastCount;
  int awaitedLastCount;
  int exact;  // 1: words must equal the value, 0: they may exceed it
  int unused;
};
static_assert(sizeof(Handshake) == 552, "Handshake.java writes 552 bytes");

// Makes all earlier writes visible to whoever sees the value, on any GPU.
static __device__ __forceinline__ void raiseWord(u64* word, u64 value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

static __device__ __forceinline__ void awaitWord(const u64* word, u64 value, int exact) {
  u64 seen;
  do {
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(seen) : "l"(word) : "memory");
  } while (exact != 0 ? seen != value : (long long)(seen - value) < 0);
}

// Counts this block, after all that it has done, and returns true for the last of the grid, which then
// sees what the others have done. The counter returns to 0 for the next launch. Within the GPU is
// enough: raising a word afterwards makes all of it visible to the peers.
static __device__ __forceinline__ bool isLast(unsigned* arrived) {
  if (gridDim.x == 1) return true;
  unsigned before;
  asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
               : "=r"(before) : "l"(arrived), "r"(gridDim.x - 1) : "memory");
  return before == gridDim.x - 1;
}

// ASSUMPTION: blocks of at least MOST_WORDS threads.
static __device__ __forceinline__ void arrive(const Handshake& h) {
  int word = threadIdx.x;
  if (blockIdx.x == 0 && word < h.raisedFirstCount) raiseWord(h.raisedFirst[word], h.value);
  if (h.awaitedFirstCount > 0) {
    if (word < h.awaitedFirstCount) awaitWord(h.awaitedFirst[word], h.value, h.exact);
    __syncthreads();
  }
}

static __device__ __forceinline__ void leave(const Handshake& h) {
  if (h.raisedLastCount + h.awaitedLastCount == 0) return;
  __shared__ bool last;
  __syncthreads();
  if (threadIdx.x == 0) last = isLast(h.arrived);
  __syncthreads();
  if (!last) return;
  int word = threadIdx.x;
  if (word < h.raisedLastCount) raiseWord(h.raisedLast[word], h.value);
  if (word < h.awaitedLastCount) awaitWord(h.awaitedLast[word], h.value, h.exact);
}
