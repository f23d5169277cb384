// Gradients of attention by tensor cores, from tiles in shared memory.
#pragma once

// A block has ROWS rows of its own, which stay in shared memory, 16 per warp. It goes through tiles
// of OTHERS other rows in two stages: while one is multiplied, the next is copied. Heads have up to
// SIZE numbers, a multiple of 8. A launch sums COLUMNS columns of the gradients. Weights and changes
// are rounded to the type before they are multiplied. Rows lie in shared memory as in
// AttentionTiles.
template <class T, int SIZE, int COLUMNS, int OTHERS, bool OF_KEYS>
struct GradientTiles {
  typedef AttentionTiles<T, SIZE, 4, 1, OTHERS> Tiles;
  typedef float Sums[COLUMNS / 8][4];
  typedef float Products[OTHERS / 8][4];
  static const int ROWS = Tiles::ROWS;
  static const int ROW_BYTES = Tiles::ROW_BYTES;
  static const int OWN_BYTES = ROWS * ROW_BYTES;
  static const int TILE_BYTES = Tiles::TILE_BYTES;
  static const int SHARED_BYTES = 2 * OWN_BYTES + 4 * TILE_BYTES;

  template <int COUNT>
  static __device__ __forceinline__ void copyPair(
      unsigned first, unsigned second, const RowPair& pair, u64 column, int from, int pieces) {
    Tiles::template copyRows<COUNT>(first, (const unsigned short*)pair.first + column,
                                    pair.firstStride, from, pair.count, pieces, pair.tokens);
    Tiles::template copyRows<COUNT>(second, (const unsigned short*)pair.second + column,
                                    pair.secondStride, from, pair.count, pieces, pair.tokens);
  }

  // Multiplies a warp's rows by a tile's.
  static __device__ __forceinline__ void multiply(
      Products& products, unsigned rowAt, unsigned rowPiece, unsigned otherAt,
      unsigned otherPiece) {
#pragma unroll
    for (int n = 0; n < OTHERS / 8; n++) {
#pragma unroll
      for (int e = 0; e < 4; e++) products[n][e] = 0;
    }
#pragma unroll
    for (int k = 0; k < SIZE / 16; k++) {
      unsigned rows[4];
      loadMatrices(rows, rowAt + (rowPiece ^ (k << 5)));
#pragma unroll
      for (int n = 0; n < OTHERS / 16; n++) {
        unsigned columns[4];
        loadMatrices(columns, otherAt + 16 * n * ROW_BYTES + (otherPiece ^ (k << 5)));
        Tensor<T>::multiply(products[2 * n], rows, columns[0], columns[1]);
        Tensor<T>::multiply(products[2 * n + 1], rows, columns[2], columns[3]);
      }
    }
  }

  // Adds a tile's rows times their weights.
  static __device__ __forceinline__ void accumulate(
      Sums& sums, const Products& weights, unsigned otherAt, unsigned otherPiece, int firstPiece) {
#pragma unroll
    for (int k = 0; k < OTHERS / 16; k++) {
      unsigned rows[4];
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const float* two = &weights[2 * k + i / 2][2 * (i % 2)];
        rows[i] = Tensor<T>::pack(two[0], two[1]);
      }
#pragma unroll
      for (int n = 0; n < COLUMNS / 16; n++) {
        unsigned columns[4];
        loadTransposed(columns, otherAt + 16 * k * ROW_BYTES +
                                    (otherPiece ^ ((firstPiece + 2 * n) << 4)));
        Tensor<T>::multiply(sums[2 * n], rows, columns[0], columns[1]);
        Tensor<T>::multiply(sums[2 * n + 1], rows, columns[2], columns[3]);
      }
    }
  }

  static __device__ __forceinline__ void clear(Sums& sums) {
#pragma unroll
    for (int n = 0; n < COLUMNS / 8; n++) {
#pragma unroll
      for (int e = 0; e < 4; e++) sums[n][e] = 0;
    }
  }

  // Writes or adds the sums of a lane's rows, `row` and `row` + 8.
  static __device__ __forceinline__ void put(
      const Sums& sums, int code, void* to, u64 stride, u64 column, int row, int rows, int columns,
      bool adds) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
      if (row + 8 * h >= rows) continue;
#pragma unroll
      for (int n = 0; n < COLUMNS / 8; n++) {
        if (8 * n >= columns) break;
        u64 index = (row + 8 * h) * stride + column + 8 * n;
        if (code != FP32) {
          *(unsigned*)((typename T::Bits*)to + index) =
              Tensor<T>::pack(sums[n][2 * h], sums[n][2 * h + 1]);
          continue;
        }
        float2* two = (float2*)((float*)to + index);
        float2 before = adds ? *two : make_float2(0, 0);
        *two = make_float2(before.x + sums[n][2 * h], before.y + sums[n][2 * h + 1]);
      }
    }
  }

  static __device__ __forceinline__ void run(const AttentionGradient& g) {
    extern __shared__ __align__(1024) char attentionTiles[];
    unsigned ownFirst = sharedAddress(attentionTiles);
    unsigned ownSecond = ownFirst + OWN_BYTES;
    unsigned stages = ownSecond + OWN_BYTES;
    const Attention& a = g.of;
    RowPair own = OF_KEYS ? keyPair(g) : queryPair(g);
    RowPair others = OF_KEYS ? queryPair(g) : keyPair(g);
    BlockRows block = gradientRows<OF_KEYS>(a, ROWS);
    int last = block.first + ROWS < own.count ? block.first + ROWS - 1 : own.count - 1;
    int begin = partners<OF_KEYS>(g, block.first).first;
    int end = partners<OF_KEYS>(g, last).end;
    bool adds = OF_KEYS ? g.addsKeys : g.addsQuery;
    if (begin >= end && adds) return;

    int pieces = a.headSize / 8;
    if (pieces < Tiles::PIECES) {
      for (int i = threadIdx.x * 16; i < SHARED_BYTES; i += Tiles::THREADS * 16) {
        *(uint4*)(attentionTiles + i) = make_uint4(0, 0, 0, 0);
      }
      __syncthreads();
    }
    int head = OF_KEYS ? block.head * a.group : block.head;
    int endHead = OF_KEYS ? head + a.group : head + 1;
    if (begin < end) {
      u64 queryColumn = (u64)head * a.headSize;
      u64 kvColumn = (u64)(head / a.group) * a.headSize;
      copyPair<ROWS>(ownFirst, ownSecond, own, OF_KEYS ? kvColumn : queryColumn, block.first,
                     pieces);
      copyPair<OTHERS>(stages, stages + TILE_BYTES, others, OF_KEYS ? queryColumn : kvColumn, begin,
                       pieces);
    } else {
      head = endHead;
    }

    // This lane has rows lane / 4 and lane / 4 + 8 of its warp (h = 0, 1), and of every 8 columns
    // those at 2 * (lane % 4) and after it.
    int lane = threadIdx.x % 32;
    int warpRow = block.first + (int)threadIdx.x / 32 * 16;
    int warpLast = warpRow + 16 < own.count ? warpRow + 15 : own.count - 1;
    Seen top = partners<OF_KEYS>(g, warpRow);
    Seen bottom = partners<OF_KEYS>(g, warpLast);
    if (warpRow >= own.count) bottom.end = 0;
    int row = warpRow + lane / 4;
    int pair = 2 * (lane % 4);

    // Byte offsets of what this lane addresses for loadMatrices; the column of pieces is added by ^.
    int eighth = lane & 7;
    unsigned rowAt = (warpRow - block.first + (lane & 15)) * ROW_BYTES;
    unsigned rowPiece = ((lane >> 4) ^ eighth) << 4;
    unsigned otherAt = ((lane >> 4) * 8 + eighth) * ROW_BYTES;
    unsigned otherPiece = ((lane >> 3 & 1) ^ eighth) << 4;
    unsigned transposedAt = (lane & 15) * ROW_BYTES;
    int firstPiece = a.firstColumn / 8;

    Sums first;                   // of query or key
    Sums second;                  // of value
    clear(first);
    clear(second);
    unsigned stage = stages;
    int from = begin;
    while (head < endHead) {
      const float2* statistics = g.statistics + (u64)head * a.rows;
      int nextFrom = from + OTHERS < end ? from + OTHERS : begin;
      int nextHead = from + OTHERS < end ? head : head + 1;
      awaitCopies();
      __syncthreads();
      unsigned next = stages + stages + 2 * TILE_BYTES - stage;
      if (nextHead < endHead) {
        u64 column = (u64)(OF_KEYS ? nextHead : nextHead / a.group) * a.headSize;
        copyPair<OTHERS>(next, next + TILE_BYTES, others, column, nextFrom, pieces);
      }
      if (from < bottom.end && from + OTHERS > top.first) {
        Products weights;
        Products changes;
        multiply(weights, ownFirst + rowAt, rowPiece, stage + otherAt, otherPiece);
        multiply(changes, ownSecond + rowAt, rowPiece, stage + TILE_BYTES + otherAt, otherPiece);

        // Only tiles at a border hold pairs of which one does not see the other.
        bool border = from < bottom.first || from + OTHERS > top.end;
#pragma unroll
        for (int h = 0; h < 2; h++) {
          Seen of;
          of.first = from;
          of.end = from + OTHERS;
          if (border) of = partners<OF_KEYS>(g, row + 8 * h);
          int query = row + 8 * h;
          float2 ofQuery = statistics[query < a.rows ? query : a.rows - 1];
#pragma unroll
          for (int n = 0; n < OTHERS / 8; n++) {
#pragma unroll
            for (int e = 0; e < 2; e++) {
              int other = from + 8 * n + pair + e;
              if (OF_KEYS) ofQuery = statistics[other < a.rows ? other : a.rows - 1];
              bool sees = other >= of.first && other < of.end;
              float weight = power(__fmaf_rn(weights[n][2 * h + e], a.scale, -ofQuery.x));
              float change = weight * (changes[n][2 * h + e] - ofQuery.y) * g.scale;
              weights[n][2 * h + e] = sees ? weight : 0;
              changes[n][2 * h + e] = sees ? change : 0;
            }
          }
        }

        if (OF_KEYS) {
          accumulate(second, weights, stage + TILE_BYTES + transposedAt, rowPiece, firstPiece);
        }
        accumulate(first, changes, stage + transposedAt, rowPiece, firstPiece);
      }
      stage = next;
      from = nextFrom;
      head = nextHead;
    }

    u64 column = (u64)block.head * a.headSize + a.firstColumn + pair;
    int columns = a.headSize - a.firstColumn;
    if (OF_KEYS) {
      put(first, g.keysCode, g.keyGradient, g.keyGradientStride, column, row, own.count, columns, adds);
      put(second, g.keysCode, g.valueGradient, g.valueGradientStride, column, row, own.count, columns, adds);
    } else {
      put(first, g.queryCode, g.queryGradient, g.queryGradientStride, column, row, own.count, columns, adds);
    }
  }
};

#define BRAID_GRADIENT(name, Type, size, columns, part, ofKeys, others)                    \
  extern "C" __global__ void __launch_bounds__(128, 2)                                     \
      braid_attention_gradient_##part##_##name##_##size(                                   \
          const __grid_constant__ AttentionGradient g) {                                   \
    GradientTiles<Type, size, columns, others, ofKeys>::run(g);                            \
  }

#define BRAID_GRADIENTS(name, Type)                              \
  BRAID_GRADIENT(name, Type, 64, 64, query, false, 64)           \
  BRAID_GRADIENT(name, Type, 128, 128, query, false, 64)         \
  BRAID_GRADIENT(name, Type, 256, 128, query, false, 16)         \
  BRAID_GRADIENT(name, Type, 64, 64, keys, true, 64)             \
  BRAID_GRADIENT(name, Type, 128, 128, keys, true, 32)           \
  BRAID_GRADIENT(name, Type, 256, 128, keys, true, 16)

BRAID_GRADIENTS(bf16, Bf16)
BRAID_GRADIENTS(fp16, Fp16)
