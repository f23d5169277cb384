// Adds up to 16 parts in fp32 in their order, applies the epilogue to the sum, and passes copies of it
// on. Parts and copies may be in peers' memory: see handshake.cuh.
//
//   value = scale * sum;
//   if (parts > 1) value = rounded to the first part's type, as a collective returns it;
//   if (accumulate) value += out;
//   if (bias) value += bias[column];
//   if (preActivation) { preActivation = value; value = gelu(preActivation); }
//   if (amax) amax = max(amax, |value|);
//   out = copies = outScale * value;
//
// Bias and pre-activation have out's type, or BF16 if that is fp8. GELU is of the stored, rounded
// pre-activation. A part that is the pre-activation itself is not written again. Only reduce_any
// takes rows with gaps. Products and sums are rounded separately (-fmad=false), as on the host.
#pragma once

static const int MOST_PARTS = 16;
static const int MOST_COPIES_OF_SUM = 15;
static const int REDUCE_THREADS = 256;
static const int MOST_REDUCE_THREADS = 1024;

// ReduceArguments writes these 528 bytes and knows each offset.
struct Reduction {
  const void* parts[MOST_PARTS];
  int codes[MOST_PARTS];
  void* out;
  void* preActivation;  // 0: no GELU
  const void* bias;     // 0: none
  unsigned* amax;       // 0: none; the fp32 maximum so far
  u64 count;
  u64 columns;
  float scale;
  int partCount;
  int outCode;
  int accumulate;
  float outScale;
  int apart;                // rows of a part or of the sum have gaps
  u64 strides[MOST_PARTS];  // numbers from row to row, at least `columns`
  u64 outStride;
  void* copies[MOST_COPIES_OF_SUM];  // rows without gaps, as those of the sum are then
  u64 copyCount;
};
static_assert(sizeof(Reduction) == 528, "ReduceArguments writes 528 bytes");

// Returns the type of bias and pre-activation for that type of output.
static __device__ __forceinline__ int sideCode(int outCode) {
  return outCode == E4M3 || outCode == E5M2 ? BF16 : outCode;
}

// x · (1 + tanh(u)) / 2 = x / (1 + e^-2u), which loses no precision where tanh is near -1. The
// approximate operations are off by a few units in the last place; exact ones take longer than
// memory does.
static __device__ __forceinline__ float gelu(float x) {
  float u = 0.7978845608f * (x + 0.044715f * x * x * x);
  return __fdividef(x, 1.0f + __expf(-2.0f * u));
}

// Returns true if the pre-activation is to be stored.
static __device__ __forceinline__ bool keeps(const Reduction& r) {
  return r.preActivation != r.parts[0];
}

// Raises the maximum by one atomic operation per block. Every thread of the block must call it.
static __device__ __forceinline__ void raise(unsigned* amax, unsigned bits) {
  __shared__ unsigned largest[MOST_REDUCE_THREADS / 32];
  bits = __reduce_max_sync(0xffffffffu, bits);
  if (threadIdx.x % 32 == 0) largest[threadIdx.x / 32] = bits;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (unsigned w = 1; w < blockDim.x / 32; w++) bits = bits > largest[w] ? bits : largest[w];
    if (bits != 0) atomicMax(amax, bits);
  }
}

// Returns true if the sum is rounded before the epilogue; without an epilogue storing rounds it.
static __device__ __forceinline__ bool roundsSum(const Reduction& r) {
  return r.partCount > 1
      && (r.accumulate || r.bias != 0 || r.preActivation != 0 || r.amax != 0 || r.outScale != 1
          || r.codes[0] != r.outCode);
}

// Reduces the elements from `begin` on one by one, of any type and alignment.
static __device__ __forceinline__ unsigned reduceElements(const Reduction& r, u64 begin) {
  unsigned amax = 0;
  int side = sideCode(r.outCode);
  for (u64 i = begin + thread(); i < r.count; i += threads()) {
    u64 row = r.apart || r.bias != 0 ? quotient(i, r.columns) : 0;
    u64 inOut = i + row * (r.outStride - r.columns);
    float value = load(r.codes[0], r.parts[0], i + row * (r.strides[0] - r.columns));
    for (int p = 1; p < r.partCount; p++) {
      value += load(r.codes[p], r.parts[p], i + row * (r.strides[p] - r.columns));
    }
    value *= r.scale;
    if (roundsSum(r)) value = rounded(r.codes[0], value);
    if (r.accumulate) value += load(r.outCode, r.out, inOut);
    if (r.bias != 0) value += load(side, r.bias, i - row * r.columns);
    if (r.preActivation != 0) {
      value = rounded(side, value);
      if (keeps(r)) store(side, r.preActivation, i, value);
      value = gelu(value);
    }
    unsigned size = asBits(value) & SIZE_MASK;
    amax = amax > size ? amax : size;
    value *= r.outScale;
    store(r.outCode, r.out, inOut, value);
    for (u64 c = 0; c < r.copyCount; c++) store(r.outCode, r.copies[c], i, value);
  }
  return amax;
}

// ASSUMPTION for all kernels below: blocks of a multiple of 32 threads, at most as many as the launch
// bounds say. Usually a multiprocessor has several blocks of 256; a sum that waits for peers has one,
// as large as all of those, to leave other multiprocessors free.
extern "C" __global__ void __launch_bounds__(MOST_REDUCE_THREADS, 1)
    braid_reduce_any(const __grid_constant__ Reduction r, const __grid_constant__ Handshake h) {
  arrive(h);
  unsigned amax = reduceElements(r, 0);
  if (r.amax != 0) raise(r.amax, amax);
  leave(h);
}

// Applies the epilogue to a vector of sums and stores it. Elements of one vector may belong to two
// rows. Bias and pre-activation have type Side.
template <class In, class Out, class Side, int COUNT>
static __device__ __forceinline__ unsigned finish(
    const Reduction& r, u64 index, float (&values)[COUNT]) {
#pragma unroll
  for (int e = 0; e < COUNT; e++) values[e] *= r.scale;
  if (roundsSum(r)) {
#pragma unroll
    for (int e = 0; e < COUNT; e++) values[e] = In::widen(In::narrow(values[e]));
  }
  if (r.accumulate) {
    Vector<Out, COUNT> before;
    before.read(r.out, index);
#pragma unroll
    for (int e = 0; e < COUNT; e++) values[e] += before.get(e);
  }
  if (r.bias != 0) {
    u64 first = index * COUNT;
    u64 column = first - quotient(first, r.columns) * r.columns;
    const typename Side::Bits* bias = (const typename Side::Bits*)r.bias + column;
    if (column + COUNT <= r.columns && (u64)bias % sizeof(Vector<Side, COUNT>) == 0) {
      Vector<Side, COUNT> whole;
      whole.read(bias, 0);
#pragma unroll
      for (int e = 0; e < COUNT; e++) values[e] += whole.get(e);
    } else {
#pragma unroll
      for (int e = 0; e < COUNT; e++) {
        values[e] += Side::widen(*bias);
        column++;
        bias = column == r.columns ? (const typename Side::Bits*)r.bias : bias + 1;
        column = column == r.columns ? 0 : column;
      }
    }
  }
  if (r.preActivation != 0) {
    Vector<Side, COUNT> kept;
    kept.set(values);
    if (keeps(r)) kept.write(r.preActivation, index);
#pragma unroll
    for (int e = 0; e < COUNT; e++) values[e] = gelu(kept.get(e));
  }
  Vector<Out, COUNT> result;
  unsigned amax = 0;
#pragma unroll
  for (int e = 0; e < COUNT; e++) {
    unsigned size = asBits(values[e]) & SIZE_MASK;
    amax = amax > size ? amax : size;
    values[e] *= r.outScale;
  }
  result.set(values);
  result.write(r.out, index);
  for (u64 c = 0; c < r.copyCount; c++) result.write(r.copies[c], index);
  return amax;
}

// Returns true if nothing is to be done but the GELU of a pre-activation that is stored already.
static __device__ __forceinline__ bool onlyActivates(const Reduction& r) {
  return r.preActivation != 0 && !keeps(r) && r.partCount == 1 && r.scale == 1 && !r.accumulate
      && r.bias == 0 && r.copyCount == 0;
}

template <class In, class Out>
static __device__ __forceinline__ void activateVectors(const Reduction& r) {
  const int widest = sizeof(typename In::Bits) > sizeof(typename Out::Bits)
      ? sizeof(typename In::Bits) : sizeof(typename Out::Bits);
  const int COUNT = 16 / widest;
  const int UNROLL = 4;
  u64 vectors = r.count / COUNT;
  u64 step = threads();
  unsigned amax = 0;
  for (u64 i = thread(); i < vectors; i += UNROLL * step) {
    Vector<In, COUNT> loaded[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
      if (i + u * step < vectors) loaded[u].read(r.preActivation, i + u * step);
    }
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
      float values[COUNT];
#pragma unroll
      for (int e = 0; e < COUNT; e++) values[e] = gelu(loaded[u].get(e));
      if (i + u * step < vectors) {
        if (r.amax != 0) {
#pragma unroll
          for (int e = 0; e < COUNT; e++) {
            unsigned size = asBits(values[e]) & SIZE_MASK;
            amax = amax > size ? amax : size;
          }
        }
#pragma unroll
        for (int e = 0; e < COUNT; e++) values[e] *= r.outScale;
        Vector<Out, COUNT> result;
        result.set(values);
        result.write(r.out, i + u * step);
      }
    }
  }
  unsigned left = reduceElements(r, vectors * COUNT);
  amax = amax > left ? amax : left;
  if (r.amax != 0) raise(r.amax, amax);
}

// Reduces parts of one type, all aligned to 16 bytes. To hide the latency of memory, each thread
// issues the loads of four parts for two vectors before the first addition.
template <class In, class Out, class Side>
static __device__ __forceinline__ void reduceVectors(const Reduction& r) {
  const int widest = sizeof(typename In::Bits) > sizeof(typename Out::Bits)
      ? sizeof(typename In::Bits) : sizeof(typename Out::Bits);
  const int COUNT = 16 / widest;
  const int AT_ONCE = 4;
  const int UNROLL = 2;
  u64 vectors = r.count / COUNT;
  u64 step = threads();
  unsigned amax = 0;
  for (u64 i = thread(); i < vectors; i += UNROLL * step) {
    float sums[UNROLL][COUNT];
    for (int p = 0; p < r.partCount; p += AT_ONCE) {
      Vector<In, COUNT> loaded[AT_ONCE][UNROLL];
#pragma unroll
      for (int j = 0; j < AT_ONCE; j++) {
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
          if (p + j < r.partCount && i + u * step < vectors) {
            loaded[j][u].read(r.parts[p + j], i + u * step);
          }
        }
      }
#pragma unroll
      for (int j = 0; j < AT_ONCE; j++) {
        if (p + j < r.partCount) {
#pragma unroll
          for (int u = 0; u < UNROLL; u++) {
#pragma unroll
            for (int e = 0; e < COUNT; e++) {
              float value = loaded[j][u].get(e);
              sums[u][e] = p + j == 0 ? value : sums[u][e] + value;
            }
          }
        }
      }
    }
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
      if (i + u * step < vectors) {
        unsigned size = finish<In, Out, Side>(r, i + u * step, sums[u]);
        amax = amax > size ? amax : size;
      }
    }
  }
  unsigned left = reduceElements(r, vectors * COUNT);
  amax = amax > left ? amax : left;
  if (r.amax != 0) raise(r.amax, amax);
}

// `blocks` is the number of blocks of 256 threads per multiprocessor, or the size of one block in such
// numbers, that its registers allow without spilling.
#define BRAID_REDUCE(name, In, Out, Side, blocks)                    \
  extern "C" __global__ void __launch_bounds__(REDUCE_THREADS * blocks, 1) braid_reduce_##name( \
      const __grid_constant__ Reduction r, const __grid_constant__ Handshake h) {           \
    arrive(h);                                                                              \
    if (onlyActivates(r)) {                                                                 \
      activateVectors<In, Out>(r);                                                          \
    } else {                                                                                \
      reduceVectors<In, Out, Side>(r);                                                      \
    }                                                                                       \
    leave(h);                                                                               \
  }

BRAID_REDUCE(fp32_fp32, F32, F32, F32, 3)
BRAID_REDUCE(fp32_bf16, F32, Bf16, Bf16, 3)
BRAID_REDUCE(fp32_fp16, F32, Fp16, Fp16, 3)
BRAID_REDUCE(fp32_e4m3, F32, E4m3, Bf16, 3)
BRAID_REDUCE(fp32_e5m2, F32, E5m2, Bf16, 3)
BRAID_REDUCE(bf16_fp32, Bf16, F32, F32, 4)
BRAID_REDUCE(bf16_bf16, Bf16, Bf16, Bf16, 3)
BRAID_REDUCE(bf16_e4m3, Bf16, E4m3, Bf16, 3)
BRAID_REDUCE(bf16_e5m2, Bf16, E5m2, Bf16, 3)
BRAID_REDUCE(fp16_fp32, Fp16, F32, F32, 4)
BRAID_REDUCE(fp16_fp16, Fp16, Fp16, Fp16, 3)
// Processes 16 numbers at once, whose BF16 bias or pre-activation would exceed 16 bytes: with
// those, braid_reduce_any runs instead.
BRAID_REDUCE(e4m3_e4m3, E4m3, E4m3, E4m3, 2)
BRAID_REDUCE(e5m2_e5m2, E5m2, E5m2, E5m2, 2)
