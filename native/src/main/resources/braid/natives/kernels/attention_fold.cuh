// Takes a library's attention to some keys into a result: the library writes its output in a narrow
// type, and its statistics head by head.
#pragma once

// Place of a row's statistics: head by head in sequences of `length` rows, or row by row if it is 0.
static __device__ __forceinline__ u64 ofStatistics(int row, int head, int heads, int length) {
  return length == 0 ? (u64)row * heads + head
                     : ((u64)(row / length) * heads + head) * length + row % length;
}

// Takes `count` rows, from row `first` of the result on, into the result's `rows` rows. With an output
// of `earlier` keys the rows are added to it; without one the result begins with them, and other rows
// are without keys; so are computed rows for which `seeing` is 0. The output is in fp32, or `narrow` in
// the library's type. A warp has one row of a head at a time.
template <class T>
static __device__ __forceinline__ void foldAttention(
    const typename T::Bits* part, const float* stats, const float* earlier, void* output,
    float* lse, int rows, int first, int count, int heads, int headSize, int narrow, int length,
    const unsigned char* seeing) {
  bool inPlace = earlier != nullptr && earlier == output;
  int lane = threadIdx.x % 32;
  u64 all = (u64)rows * heads;
  for (u64 at = thread() / 32; at < all; at += threads() / 32) {
    int head = (int)(at % heads);
    int row = (int)(at / heads) - first;
    bool has = row >= 0 && row < count && (seeing == nullptr || seeing[row]);
    if (inPlace && !has) continue;
    float before = earlier != nullptr ? lse[at] : NO_SCORE;
    float added = has ? stats[ofStatistics(row, head, heads, length)] : NO_SCORE;
    float most = fmaxf(before, added);
    float base = most == NO_SCORE ? 0 : most;
    float ofBefore = expf(before - base);
    float ofAdded = expf(added - base);
    float total = ofBefore + ofAdded;
    float scale = total == 0 ? 0 : 1 / total;
    ofBefore *= scale;
    ofAdded *= scale;
    for (int column = 4 * lane; column < headSize; column += 128) {
      u64 to = at * headSize + column;
      float sum[4] = {0, 0, 0, 0};
      if (has) {
        uint2 four = *(const uint2*)(part + ((u64)row * heads + head) * headSize + column);
        sum[0] = ofAdded * T::widen(four.x & 0xffffu);
        sum[1] = ofAdded * T::widen(four.x >> 16);
        sum[2] = ofAdded * T::widen(four.y & 0xffffu);
        sum[3] = ofAdded * T::widen(four.y >> 16);
      }
      if (ofBefore != 0) {
        float4 old = *(const float4*)(earlier + to);
        sum[0] = __fmaf_rn(ofBefore, old.x, sum[0]);
        sum[1] = __fmaf_rn(ofBefore, old.y, sum[1]);
        sum[2] = __fmaf_rn(ofBefore, old.z, sum[2]);
        sum[3] = __fmaf_rn(ofBefore, old.w, sum[3]);
      }
      if (narrow) {
        *(uint2*)((typename T::Bits*)output + to) =
            make_uint2(T::narrowPair(sum[0], sum[1]), T::narrowPair(sum[2], sum[3]));
      } else {
        *(float4*)((float*)output + to) = make_float4(sum[0], sum[1], sum[2], sum[3]);
      }
    }
    __syncwarp();
    if (lane == 0) lse[at] = total == 0 ? NO_SCORE : most + logf(total);
  }
}

#define BRAID_FOLD_ATTENTION(Type, name)                                                         \
  extern "C" __global__ void __launch_bounds__(256) braid_attention_fold_##name(                 \
      const Type::Bits* part, const float* stats, const float* earlier, void* output, float* lse, \
      int rows, int first, int count, int heads, int headSize, int narrow, int length,           \
      const unsigned char* seeing) {                                                             \
    foldAttention<Type>(                                                                         \
        part, stats, earlier, output, lse, rows, first, count, heads, headSize, narrow, length,  \
        seeing);                                                                                 \
  }

BRAID_FOLD_ATTENTION(Bf16, bf16)
BRAID_FOLD_ATTENTION(Fp16, fp16)

// Takes the statistics alone into a result that begins. A thread has one number at a time.
extern "C" __global__ void __launch_bounds__(256) braid_attention_fold_stats(
    const float* stats, float* lse, int rows, int first, int count, int heads, int length,
    const unsigned char* seeing) {
  u64 all = (u64)rows * heads;
  for (u64 at = thread(); at < all; at += threads()) {
    int place = (int)quotient(at, heads);
    int head = (int)(at - (u64)place * heads);
    int row = place - first;
    bool has = row >= 0 && row < count && (seeing == nullptr || seeing[row]);
    lse[at] = has ? stats[ofStatistics(row, head, heads, length)] : NO_SCORE;
  }
}

// Writes the statistics of rows head by head in sequences of `length` rows, as a library reads them.
// Without keys a row has the largest number, which makes its weights 0.
extern "C" __global__ void __launch_bounds__(256) braid_attention_stats(
    const float* lse, float* stats, int rows, int heads, int length) {
  u64 all = (u64)rows * heads;
  for (u64 at = thread(); at < all; at += threads()) {
    u64 perSequence = (u64)length * heads;
    u64 in = at % perSequence;
    float value = lse[at / perSequence * perSequence + in % length * heads + in / length];
    stats[at] = value == NO_SCORE ? asFloat(INFINITY_BITS - 1) : value;
  }
}

// Adds rows of a library's type to sums, whose rows begin `stride` numbers apart, or begins these with
// them. `count` numbers, the `columns` of a row and the stride are multiples of 4. Rows for which `computed` is 0 add nothing.
template <class T>
static __device__ __forceinline__ void addNarrow(
    const typename T::Bits* part, float* sum, u64 count, int continued, int columns,
    const unsigned char* computed, u64 stride) {
  for (u64 at = 4 * thread(); at < count; at += 4 * threads()) {
    u64 row = computed == nullptr && stride == columns ? 0 : quotient(at, columns);
    bool has = computed == nullptr || computed[row];
    if (continued && !has) continue;
    uint2 four = has ? *(const uint2*)(part + at) : make_uint2(0, 0);
    float4* to = (float4*)(sum + at + row * (stride - columns));
    float4 before = continued ? *to : make_float4(0, 0, 0, 0);
    *to = make_float4(
        before.x + T::widen(four.x & 0xffffu), before.y + T::widen(four.x >> 16),
        before.z + T::widen(four.y & 0xffffu), before.w + T::widen(four.y >> 16));
  }
}

extern "C" __global__ void __launch_bounds__(256) braid_attention_add_bf16(
    const Bf16::Bits* part, float* sum, u64 count, int continued, int columns,
    const unsigned char* computed, u64 stride) {
  addNarrow<Bf16>(part, sum, count, continued, columns, computed, stride);
}

extern "C" __global__ void __launch_bounds__(256) braid_attention_add_fp16(
    const Fp16::Bits* part, float* sum, u64 count, int continued, int columns,
    const unsigned char* computed, u64 stride) {
  addNarrow<Fp16>(part, sum, count, continued, columns, computed, stride);
}
