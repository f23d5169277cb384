// Attention in fp32 of any type, head size and alignment: tiles of 64 rows and 64 keys, products in
// fp32. Head sizes above SIZE take several launches, each of which computes all scores and SIZE
// columns of the output; the last one writes the LSE.
//
// Thread (x, y) of 16 x 16 has rows 4 y .. 4 y + 3, of the scores keys 4 x .. 4 x + 3 and of the
// output columns 4 x + 64 c .. 4 x + 64 c + 3.
#pragma once

// Rows of a head from `first` on, of `count`; `column` is its first number in a row.
struct HeadRows {
  const void* from;
  u64 column;
  u64 stride;
  int first;
  int count;
};

template <int SIZE>
struct PlainAttention {
  static const int TILE = 64;
  static const int STRIDE = TILE + 4;  // multiple of 4 for vectors; spreads columns over banks
  static const int DEPTH = 32;         // columns of query and key in shared memory
  static const int KEYS = DEPTH * STRIDE * 2 / SIZE / 8 * 8;  // values in the same memory
  static const int VALUES = KEYS < TILE ? KEYS : TILE;

  // Copies DEPTH columns of TILE rows, transposed; what does not exist is 0.
  static __device__ __forceinline__ void copyColumns(
      float* to, int code, const HeadRows& rows, int column, int columns) {
#pragma unroll
    for (int i = 0; i < TILE * DEPTH / 256; i++) {
      int c = threadIdx.x % DEPTH;
      int r = threadIdx.x / DEPTH + i * (256 / DEPTH);
      int row = rows.first + r;
      bool there = row < rows.count && column + c < columns;
      to[c * STRIDE + r] =
          there ? load(code, rows.from, rows.column + row * rows.stride + column + c) : 0;
    }
  }

  // Multiplies TILE rows by TILE rows.
  static __device__ __forceinline__ void multiply(
      float (&products)[4][4], float* operands, int code, const HeadRows& lefts,
      const HeadRows& rights, int headSize) {
    float* left = operands;
    float* right = operands + DEPTH * STRIDE;
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
      for (int j = 0; j < 4; j++) products[i][j] = 0;
    }
    for (int depth = 0; depth < headSize; depth += DEPTH) {
      __syncthreads();
      copyColumns(left, code, lefts, depth, headSize);
      copyColumns(right, code, rights, depth, headSize);
      __syncthreads();
#pragma unroll 8
      for (int d = 0; d < DEPTH; d++) {
        float4 l = *(float4*)&left[d * STRIDE + threadIdx.x / 16 * 4];
        float4 r = *(float4*)&right[d * STRIDE + threadIdx.x % 16 * 4];
        float ofLeft[4] = {l.x, l.y, l.z, l.w};
        float ofRight[4] = {r.x, r.y, r.z, r.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
#pragma unroll
          for (int j = 0; j < 4; j++) {
            products[i][j] = __fmaf_rn(ofLeft[i], ofRight[j], products[i][j]);
          }
        }
      }
    }
  }

  // Adds TILE rows times their weights, which are in shared memory. Padding counts as 0.
  static __device__ __forceinline__ void accumulate(
      float (&sums)[4][SIZE / 64][4], const float* weights, float* values, int code,
      const HeadRows& rows, int columns, const unsigned char* tokens) {
    int own = threadIdx.x / 16 * 4;
    int x = threadIdx.x % 16;
    for (int next = 0; next < TILE; next += VALUES) {
      __syncthreads();
      for (int i = threadIdx.x; i < VALUES * SIZE; i += 256) {
        int row = rows.first + next + i / SIZE;
        int column = i % SIZE;
        bool there =
            row < rows.count && column < columns && (tokens == 0 || tokens[row] != 0);
        values[i] = there ? load(code, rows.from, rows.column + row * rows.stride + column) : 0;
      }
      __syncthreads();
#pragma unroll 4
      for (int k = 0; k < VALUES; k++) {
        float weight[4];
#pragma unroll
        for (int i = 0; i < 4; i++) weight[i] = weights[(own + i) * STRIDE + next + k];
#pragma unroll
        for (int c = 0; c < SIZE / 64; c++) {
          float4 v = *(float4*)&values[k * SIZE + 64 * c + 4 * x];
          float right[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
          for (int i = 0; i < 4; i++) {
#pragma unroll
            for (int e = 0; e < 4; e++) sums[i][c][e] = __fmaf_rn(weight[i], right[e], sums[i][c][e]);
          }
        }
      }
    }
  }

  static __device__ __forceinline__ void run(const Attention& a) {
    __shared__ __align__(16) float operands[2 * DEPTH * STRIDE];
    __shared__ __align__(16) float weights[TILE * STRIDE];

    BlockRows block = blockRows(a, TILE);
    int head = block.head;
    int firstRow = block.first;
    int lastRow = firstRow + TILE < a.rows ? firstRow + TILE - 1 : a.rows - 1;
    int begin = seen(a, firstRow).first;
    int end = seen(a, lastRow).end;
    if (begin >= end && a.continued && a.earlier == a.output) return;

    u64 queryColumn = (u64)head * a.headSize;
    u64 kvColumn = (u64)(head / a.group) * a.headSize;
    int columns = a.headSize - a.firstColumn < SIZE ? a.headSize - a.firstColumn : SIZE;
    int x = threadIdx.x % 16;
    int row = firstRow + threadIdx.x / 16 * 4;
    float most[4];
    float sums[4];
    float output[4][SIZE / 64][4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      int r = row + i;
      most[i] = a.continued && r < a.rows ? a.lse[r * a.lseStride + head] * LOG2_E : NO_SCORE;
      bool continues = most[i] != NO_SCORE;
      sums[i] = continues && x == 0 ? 1 : 0;
#pragma unroll
      for (int c = 0; c < SIZE / 64; c++) {
#pragma unroll
        for (int e = 0; e < 4; e++) {
          int column = 64 * c + 4 * x + e;
          u64 at = r * a.outputStride + queryColumn + a.firstColumn + column;
          output[i][c][e] = continues && column < columns ? a.earlier[at] : 0;
        }
      }
    }

    for (int from = begin; from < end; from += TILE) {
      float scores[4][4];
      multiply(scores, operands, a.code,
               HeadRows{a.query, queryColumn, a.queryStride, firstRow, a.rows},
               HeadRows{a.key, kvColumn, a.keyStride, from, a.keys}, a.headSize);

#pragma unroll
      for (int i = 0; i < 4; i++) {
        Seen of = seen(a, row + i);
        float largest = NO_SCORE;
#pragma unroll
        for (int j = 0; j < 4; j++) {
          int key = from + 4 * x + j;
          scores[i][j] = key < of.first || key >= of.end ? NO_SCORE : scores[i][j] * a.scale;
          largest = fmaxf(largest, scores[i][j]);
        }
#pragma unroll
        for (int other = 1; other < 16; other *= 2) {
          largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, other));
        }
        float now = fmaxf(most[i], largest);
        float base = now == NO_SCORE ? 0 : now;
        float kept = power(most[i] - base);
        most[i] = now;
        sums[i] *= kept;
#pragma unroll
        for (int j = 0; j < 4; j++) {
          scores[i][j] = power(scores[i][j] - base);
          sums[i] += scores[i][j];
        }
#pragma unroll
        for (int c = 0; c < SIZE / 64; c++) {
#pragma unroll
          for (int e = 0; e < 4; e++) output[i][c][e] *= kept;
        }
        *(float4*)&weights[(row - firstRow + i) * STRIDE + 4 * x] =
            make_float4(scores[i][0], scores[i][1], scores[i][2], scores[i][3]);
      }

      accumulate(output, weights, operands, a.code,
                 HeadRows{a.value, kvColumn + a.firstColumn, a.valueStride, from, a.keys}, columns,
                 a.tokens);
    }

#pragma unroll
    for (int i = 0; i < 4; i++) {
      float sum = sums[i];
#pragma unroll
      for (int other = 1; other < 16; other *= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, other);
      }
      int r = row + i;
      if (r >= a.rows) continue;
      float share = sum == 0 ? 0 : 1 / sum;
      if (x == 0 && a.writesLse) {
        a.lse[r * a.lseStride + head] = sum == 0 ? NO_SCORE : (most[i] + log2f(sum)) * LOG_2;
      }
#pragma unroll
      for (int c = 0; c < SIZE / 64; c++) {
#pragma unroll
        for (int e = 0; e < 4; e++) {
          int column = 64 * c + 4 * x + e;
          u64 at = r * a.outputStride + queryColumn + a.firstColumn + column;
          float value = output[i][c][e] * share;
          if (column < columns) store(a.outCode, a.output, at, value);
        }
      }
    }
  }
};

#define BRAID_PLAIN_ATTENTION(size)                                  \
  extern "C" __global__ void __launch_bounds__(256, 2)               \
      braid_attention_plain_##size(const __grid_constant__ Attention a) { \
    PlainAttention<size>::run(a);                                    \
  }

BRAID_PLAIN_ATTENTION(64)
BRAID_PLAIN_ATTENTION(128)
