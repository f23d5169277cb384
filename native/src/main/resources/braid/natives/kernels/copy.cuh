// Copies by the multiprocessors. The grid is the number of workers; more of them help only where
// fewer cannot saturate the link.
#pragma once

// Accesses in flight per thread: a peer responds after about a microsecond.
static const int COPY_UNROLL = 8;

// Copies by `blocks` blocks, of which this one has number `block`.
template <class Word>
static __device__ __forceinline__ void copyWords(
    Word* to, const Word* from, u64 count, unsigned block, unsigned blocks) {
  u64 step = (u64)blocks * blockDim.x;
  for (u64 i = (u64)block * blockDim.x + threadIdx.x; i < count; i += COPY_UNROLL * step) {
    Word words[COPY_UNROLL];
#pragma unroll
    for (int j = 0; j < COPY_UNROLL; j++) {
      if (i + j * step < count) words[j] = from[i + j * step];
    }
#pragma unroll
    for (int j = 0; j < COPY_UNROLL; j++) {
      if (i + j * step < count) to[i + j * step] = words[j];
    }
  }
}

// Copies bytes until `to` is aligned to a word, then words, then the remaining bytes. `from` has
// the same alignment.
template <class Word>
static __device__ __forceinline__ void copyAligned(
    char* to, const char* from, u64 bytes, unsigned block, unsigned blocks) {
  u64 head = (0 - (u64)to) % sizeof(Word);
  head = head < bytes ? head : bytes;
  u64 words = (bytes - head) / sizeof(Word);
  u64 tail = bytes - head - words * sizeof(Word);
  copyWords((Word*)(to + head), (const Word*)(from + head), words, block, blocks);
  if (block == 0) {
    if (threadIdx.x < head) to[threadIdx.x] = from[threadIdx.x];
    if (threadIdx.x < tail) to[bytes - 1 - threadIdx.x] = from[bytes - 1 - threadIdx.x];
  }
}

static __device__ __forceinline__ void copyBytes(
    char* to, const char* from, u64 bytes, unsigned block, unsigned blocks) {
  u64 apart = (u64)to - (u64)from;
  if (apart % 16 == 0) {
    copyAligned<uint4>(to, from, bytes, block, blocks);
  } else if (apart % 8 == 0) {
    copyAligned<uint2>(to, from, bytes, block, blocks);
  } else if (apart % 4 == 0) {
    copyAligned<unsigned>(to, from, bytes, block, blocks);
  } else if (apart % 2 == 0) {
    copyAligned<unsigned short>(to, from, bytes, block, blocks);
  } else {
    copyAligned<unsigned char>(to, from, bytes, block, blocks);
  }
}

// ASSUMPTION: blocks of at least 16 threads, for head and tail; source and target do not overlap.
extern "C" __global__ void __launch_bounds__(512, 2)
    braid_copy(char* to, const char* from, u64 bytes) {
  copyBytes(to, from, bytes, blockIdx.x, gridDim.x);
}

static const int MOST_COPIES = 16;

// CopyArguments writes these 392 bytes and knows each offset.
struct Copies {
  char* to[MOST_COPIES];
  const char* from[MOST_COPIES];
  u64 bytes[MOST_COPIES];
  int count;
  int unused;
};
static_assert(sizeof(Copies) == 392, "CopyArguments writes 392 bytes");

// Makes independent copies at once, between the signals of a handshake. ASSUMPTION: as above, and
// the grid is a multiple of the number of copies.
extern "C" __global__ void __launch_bounds__(512, 1)
    braid_copy_all(const __grid_constant__ Copies c, const __grid_constant__ Handshake h) {
  arrive(h);
  unsigned copy = blockIdx.x % (unsigned)c.count;
  copyBytes(
      c.to[copy], c.from[copy], c.bytes[copy], blockIdx.x / (unsigned)c.count,
      gridDim.x / (unsigned)c.count);
  leave(h);
}

template <class Word>
static __device__ __forceinline__ void copyRowsBy(
    char* to, u64 toPitch, const char* from, u64 fromPitch, u64 rowBytes, u64 rows) {
  const int unroll = 4;
  u64 perRow = rowBytes / sizeof(Word);
  u64 count = perRow * rows;
  u64 step = threads();
  for (u64 i = thread(); i < count; i += unroll * step) {
    Word words[unroll];
    Word* places[unroll];
#pragma unroll
    for (int j = 0; j < unroll; j++) {
      u64 at = i + j * step;
      if (at < count) {
        u64 row = quotient(at, perRow);
        u64 offset = (at - row * perRow) * sizeof(Word);
        places[j] = (Word*)(to + row * toPitch + offset);
        words[j] = *(const Word*)(from + row * fromPitch + offset);
      }
    }
#pragma unroll
    for (int j = 0; j < unroll; j++) {
      if (i + j * step < count) *places[j] = words[j];
    }
  }
}

// Copies rows that start a pitch apart: packs if `toPitch` is the length of a row, unpacks if
// `fromPitch` is. ASSUMPTION: a pitch is at least a row.
extern "C" __global__ void __launch_bounds__(256) braid_copy_rows(
    char* to, u64 toPitch, const char* from, u64 fromPitch, u64 rowBytes, u64 rows) {
  u64 all = (u64)to | toPitch | (u64)from | fromPitch | rowBytes;
  if (all % 16 == 0) {
    copyRowsBy<uint4>(to, toPitch, from, fromPitch, rowBytes, rows);
  } else if (all % 4 == 0) {
    copyRowsBy<unsigned>(to, toPitch, from, fromPitch, rowBytes, rows);
  } else if (all % 2 == 0) {
    copyRowsBy<unsigned short>(to, toPitch, from, fromPitch, rowBytes, rows);
  } else {
    copyRowsBy<unsigned char>(to, toPitch, from, fromPitch, rowBytes, rows);
  }
}
