// Gradients of attention, from the gradient of its output. For each row of the query and each key
// that it sees:
//
//   weight         = 2^(scale * log2(e) * query . key - LSE * log2(e))
//   change         = weight * (outputGradient . value - outputGradient . output) * scale
//   queryGradient += change * key
//   keyGradient   += change * query              of all heads that share the key
//   valueGradient += weight * outputGradient
//
// One kernel computes the gradients of queries, another one those of keys and values. In both, a
// block has rows of its own, whose gradients it sums in fp32, and goes through the other rows that
// they see or that see them. No number has two writers, so every run has the same results.
#pragma once

// AttentionGradientArguments writes these 280 bytes and knows each offset.
struct AttentionGradient {
  Attention of;  // its output and LSE are read
  const void* outputGradient;
  void* queryGradient;
  void* keyGradient;
  void* valueGradient;
  u64 outputGradientStride;
  u64 queryGradientStride;
  u64 keyGradientStride;
  u64 valueGradientStride;
  float2* statistics;  // of each head and row: LSE times log2(e), outputGradient . output
  const Seen* seeing;  // rows that see each key; 0: as causal and window say
  const unsigned char* queryTokens;  // of each row, 0 if it is padding, which may be NaN; 0: none is
  float scale;                       // not times log2(e)
  int addsQuery;  // 0: the gradient begins
  int addsKeys;
  int queryCode;  // of the gradient; only fp32 is added to
  int keysCode;   // of both gradients of keys
  int unused;
};
static_assert(sizeof(AttentionGradient) == 280, "AttentionGradientArguments writes 280 bytes");

// A warp has one row of a head at a time.
extern "C" __global__ void __launch_bounds__(256)
    braid_attention_gradient_statistics(const __grid_constant__ AttentionGradient g) {
  const Attention& a = g.of;
  int lane = threadIdx.x % 32;
  for (u64 at = thread() / 32; at < (u64)a.rows * a.heads; at += threads() / 32) {
    u64 row = at / a.heads;
    int head = (int)(at % a.heads);
    u64 column = (u64)head * a.headSize;
    float sum = 0;
    for (int i = lane; i < a.headSize; i += 32) {
      sum = __fmaf_rn(load(a.outCode, a.output, row * a.outputStride + column + i),
                      load(a.code, g.outputGradient, row * g.outputGradientStride + column + i),
                      sum);
    }
    for (int other = 1; other < 32; other *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, other);
    if (lane == 0) {
      g.statistics[head * (u64)a.rows + row] =
          make_float2(a.lse[row * a.lseStride + head] * LOG2_E, sum);
    }
  }
}

// Two tensors whose rows belong together: query and gradient of the output, or key and value.
struct RowPair {
  const void* first;
  const void* second;
  u64 firstStride;
  u64 secondStride;
  int count;
  const unsigned char* tokens;
};

static __device__ __forceinline__ RowPair queryPair(const AttentionGradient& g) {
  return RowPair{g.of.query, g.outputGradient, g.of.queryStride, g.outputGradientStride,
                 g.of.rows, g.queryTokens};
}

static __device__ __forceinline__ RowPair keyPair(const AttentionGradient& g) {
  return RowPair{g.of.key, g.of.value, g.of.keyStride, g.of.valueStride, g.of.keys, g.of.tokens};
}

// The keys that a row of the query sees, or the rows that see a key. Both ends never fall from row
// to row, or from key to key.
template <bool OF_KEYS>
static __device__ __forceinline__ Seen partners(const AttentionGradient& g, int row) {
  const Attention& a = g.of;
  if (!OF_KEYS) return seen(a, row);
  if (g.seeing != 0) return g.seeing[row < a.keys ? row : a.keys - 1];
  long long position = row - a.shift;
  long long first = a.causal ? position : 0;
  long long end = a.window == 0 ? a.rows : position + a.window;
  Seen result;
  result.first = (int)(first < 0 ? 0 : first > a.rows ? a.rows : first);
  result.end = (int)(end < 0 ? 0 : end > a.rows ? a.rows : end);
  return result;
}

// Tiles with the most partners come first: those of the last queries, or of the first keys.
template <bool OF_KEYS>
static __device__ __forceinline__ BlockRows gradientRows(const Attention& a, int rows) {
  if (!OF_KEYS) return blockRows(a, rows);
  BlockRows result = blockTile((a.keys + rows - 1) / rows, a.heads / a.group, a.together / a.group);
  result.first *= rows;
  return result;
}

// Gradients in fp32 of any type, head size and alignment: tiles of 64 rows and 64 other rows,
// products in fp32. Head sizes above SIZE take several launches, each of which computes all weights
// and SIZE columns of the gradients. Threads divide tiles as in PlainAttention.
template <int SIZE, bool OF_KEYS>
struct PlainGradient {
  typedef PlainAttention<SIZE> Plain;
  typedef float Sums[4][SIZE / 64][4];
  static const int TILE = Plain::TILE;
  static const int STRIDE = Plain::STRIDE;

  static __device__ __forceinline__ void share(float* weights, const float (&values)[4][4]) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      *(float4*)&weights[(threadIdx.x / 16 * 4 + i) * STRIDE + threadIdx.x % 16 * 4] =
          make_float4(values[i][0], values[i][1], values[i][2], values[i][3]);
    }
  }

  static __device__ __forceinline__ void clear(Sums& sums) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
      for (int c = 0; c < SIZE / 64; c++) {
#pragma unroll
        for (int e = 0; e < 4; e++) sums[i][c][e] = 0;
      }
    }
  }

  // Writes or adds the sums of a thread's rows, from `row` on.
  static __device__ __forceinline__ void put(
      const Sums& sums, int code, void* to, u64 stride, u64 column, int row, int rows, int columns,
      bool adds) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      if (row + i >= rows) break;
#pragma unroll
      for (int c = 0; c < SIZE / 64; c++) {
#pragma unroll
        for (int e = 0; e < 4; e++) {
          int at = 64 * c + threadIdx.x % 16 * 4 + e;
          if (at >= columns) continue;
          u64 index = (row + i) * stride + column + at;
          float before = adds ? ((const float*)to)[index] : 0;
          store(code, to, index, before + sums[i][c][e]);
        }
      }
    }
  }

  static __device__ __forceinline__ void run(const AttentionGradient& g) {
    __shared__ __align__(16) float operands[2 * Plain::DEPTH * STRIDE];
    __shared__ __align__(16) float weights[TILE * STRIDE];
    const Attention& a = g.of;
    RowPair own = OF_KEYS ? keyPair(g) : queryPair(g);
    RowPair others = OF_KEYS ? queryPair(g) : keyPair(g);
    BlockRows block = gradientRows<OF_KEYS>(a, TILE);
    int last = block.first + TILE < own.count ? block.first + TILE - 1 : own.count - 1;
    int begin = partners<OF_KEYS>(g, block.first).first;
    int end = partners<OF_KEYS>(g, last).end;
    bool adds = OF_KEYS ? g.addsKeys : g.addsQuery;
    if (begin >= end && adds) return;

    int columns = a.headSize - a.firstColumn < SIZE ? a.headSize - a.firstColumn : SIZE;
    int row = block.first + threadIdx.x / 16 * 4;
    Sums first;   // of query or key
    Sums second;  // of value
    clear(first);
    clear(second);
    for (int h = 0; h < (OF_KEYS ? a.group : 1); h++) {
      int head = OF_KEYS ? block.head * a.group + h : block.head;
      u64 queryColumn = (u64)head * a.headSize;
      u64 kvColumn = (u64)(head / a.group) * a.headSize;
      u64 ownColumn = OF_KEYS ? kvColumn : queryColumn;
      u64 column = OF_KEYS ? queryColumn : kvColumn;
      const float2* statistics = g.statistics + (u64)head * a.rows;
      for (int from = begin; from < end; from += TILE) {
        float scores[4][4];
        float changes[4][4];
        Plain::multiply(
            scores, operands, a.code,
            HeadRows{own.first, ownColumn, own.firstStride, block.first, own.count},
            HeadRows{others.first, column, others.firstStride, from, others.count}, a.headSize);
        Plain::multiply(
            changes, operands, a.code,
            HeadRows{own.second, ownColumn, own.secondStride, block.first, own.count},
            HeadRows{others.second, column, others.secondStride, from, others.count}, a.headSize);

        int other = from + threadIdx.x % 16 * 4;
        float2 ofQueries[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
          int query = (OF_KEYS ? other : row) + i;
          ofQueries[i] = statistics[query < a.rows ? query : a.rows - 1];
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
          Seen of = partners<OF_KEYS>(g, row + i);
#pragma unroll
          for (int j = 0; j < 4; j++) {
            bool sees = other + j >= of.first && other + j < of.end;
            float2 ofQuery = ofQueries[OF_KEYS ? j : i];
            float weight = power(__fmaf_rn(scores[i][j], a.scale, -ofQuery.x));
            scores[i][j] = sees ? weight : 0;
            changes[i][j] = sees ? weight * (changes[i][j] - ofQuery.y) * g.scale : 0;
          }
        }

        if (OF_KEYS) {
          share(weights, scores);
          Plain::accumulate(
              second, weights, operands, a.code,
              HeadRows{others.second, column + a.firstColumn, others.secondStride, from,
                       others.count},
              columns, others.tokens);
          __syncthreads();
        }
        share(weights, changes);
        Plain::accumulate(
            first, weights, operands, a.code,
            HeadRows{others.first, column + a.firstColumn, others.firstStride, from, others.count},
            columns, others.tokens);
      }
    }

    u64 column = (u64)block.head * a.headSize + a.firstColumn;
    if (OF_KEYS) {
      put(first, g.keysCode, g.keyGradient, g.keyGradientStride, column, row, own.count, columns, adds);
      put(second, g.keysCode, g.valueGradient, g.valueGradientStride, column, row, own.count, columns, adds);
    } else {
      put(first, g.queryCode, g.queryGradient, g.queryGradientStride, column, row, own.count, columns, adds);
    }
  }
};

#define BRAID_PLAIN_GRADIENT(size, part, ofKeys, blocks)                      \
  extern "C" __global__ void __launch_bounds__(256, blocks)                   \
      braid_attention_gradient_##part##_plain_##size(                         \
          const __grid_constant__ AttentionGradient g) {                      \
    PlainGradient<size, ofKeys>::run(g);                                      \
  }

BRAID_PLAIN_GRADIENT(64, query, false, 2)
BRAID_PLAIN_GRADIENT(128, query, false, 2)
BRAID_PLAIN_GRADIENT(64, keys, true, 2)
BRAID_PLAIN_GRADIENT(128, keys, true, 1)
