// Copies by the bulk copy engine of a multiprocessor: one thread of a block issues the copies, so a
// worker takes almost nothing from a concurrent multiplication.
#pragma once

#if __CUDA_ARCH__ >= 900
static const int TMA_STAGES = 4;
static const unsigned TMA_CHUNK_BYTES = 16384;

static __device__ __forceinline__ void fetch(
    unsigned stage, const char* from, unsigned bytes, unsigned barrier) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
               :: "r"(barrier), "r"(bytes) : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
               :: "r"(stage), "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(barrier)
               : "memory");
}

static __device__ __forceinline__ void awaitFetched(unsigned barrier, unsigned parity) {
  unsigned done;
  do {
    asm volatile("{\n .reg .pred p;\n"
                 " mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 " selp.u32 %0, 1, 0, p;\n}"
                 : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
  } while (!done);
}

static __device__ __forceinline__ unsigned chunkBytes(u64 chunk, u64 bytes) {
  u64 left = bytes - chunk * TMA_CHUNK_BYTES;
  return left < TMA_CHUNK_BYTES ? (unsigned)left : TMA_CHUNK_BYTES;
}

// Chunk k of a block passes through stage k % 4:
//
//   fetch   0 1 2 3 . 4 . 5 . 6        a stage is reused as soon as its store has read it,
//   store           0 1 . 2 . 3        which is known of all stores but the newest
//
// ASSUMPTION: addresses and size are multiples of 16; 64 KiB of dynamic shared memory.
extern "C" __global__ void __launch_bounds__(32)
    braid_copy_tma(char* to, const char* from, u64 bytes) {
  extern __shared__ __align__(128) char stages[];
  __shared__ __align__(8) u64 barriers[TMA_STAGES];
  if (threadIdx.x != 0) return;

  for (int s = 0; s < TMA_STAGES; s++) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(sharedAddress(&barriers[s])) : "memory");
  }
  // Makes the initialized barriers visible to the engine.
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");

  u64 chunks = (bytes + TMA_CHUNK_BYTES - 1) / TMA_CHUNK_BYTES;
  u64 mine = blockIdx.x < chunks ? (chunks - blockIdx.x + gridDim.x - 1) / gridDim.x : 0;
  u64 fetched = 0;
  for (; fetched < mine && fetched < TMA_STAGES; fetched++) {
    u64 chunk = blockIdx.x + fetched * gridDim.x;
    fetch(sharedAddress(stages + fetched * TMA_CHUNK_BYTES), from + chunk * TMA_CHUNK_BYTES,
          chunkBytes(chunk, bytes), sharedAddress(&barriers[fetched]));
  }
  for (u64 k = 0; k < mine; k++) {
    unsigned stage = (unsigned)(k % TMA_STAGES);
    u64 chunk = blockIdx.x + k * gridDim.x;
    awaitFetched(sharedAddress(&barriers[stage]), (unsigned)(k / TMA_STAGES % 2));
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                 :: "l"(__cvta_generic_to_global(to + chunk * TMA_CHUNK_BYTES)),
                    "r"(sharedAddress(stages + stage * TMA_CHUNK_BYTES)),
                    "r"(chunkBytes(chunk, bytes)) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    // The stage of chunk k - 1 is free once its store has read it.
    if (k > 0 && fetched < mine) {
      asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
      unsigned freed = (unsigned)(fetched % TMA_STAGES);
      u64 next = blockIdx.x + fetched * gridDim.x;
      fetch(sharedAddress(stages + freed * TMA_CHUNK_BYTES), from + next * TMA_CHUNK_BYTES,
            chunkBytes(next, bytes), sharedAddress(&barriers[freed]));
      fetched++;
    }
  }
  // Waits until all stores are complete: they read shared memory, and the stream's next signal
  // promises that their writes are visible. A completed store is visible to every observer of this
  // thread's end, so no further fence is needed.
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
#endif
