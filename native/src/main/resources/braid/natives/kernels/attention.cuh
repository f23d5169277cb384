// Attention of query rows to keys: tile by tile with running statistics, so that scores are never in
// memory. Scores are kept times log2(e), and the weights of a row are 2^(score - m), where m is the
// row's maximum so far:
//
//   scores = scale * log2(e) * query . key^T     only of keys that the row sees
//   m'     = max(m, max of the row)
//   sum    = sum * 2^(m - m') + sum of 2^(score - m')
//   output = output * 2^(m - m') + 2^(score - m') . value
//
// In the end the output is divided by the sum, and the LSE is (m + log2(sum)) * log(2). Attention
// that continues a partial result begins with m = LSE * log2(e), sum = 1 and its output. A row
// without keys has output 0 and LSE -infinity.
#pragma once

// The keys that a row of the query sees, of those of this launch: [first, end).
struct Seen {
  int first;
  int end;
};

// AttentionArguments writes these 160 bytes and knows each offset. Strides are in elements.
struct Attention {
  const void* query;
  const void* key;
  const void* value;
  void* output;
  float* lse;
  u64 queryStride;
  u64 keyStride;
  u64 valueStride;
  u64 outputStride;
  u64 lseStride;
  // Position of the first row of the query less that of the first key.
  long long shift;
  int rows;
  int keys;
  int heads;
  int group;  // heads that share a head of key and value
  int headSize;
  int causal;
  int window;  // 0: no limit
  int code;    // type of query, key and value
  int outCode;
  int continued;    // the output is in fp32
  float scale;      // times log2(e)
  int firstColumn;  // only for the plain kernel: first column of the heads' outputs to compute
  int writesLse;
  int together;  // heads whose keys and values share the cache
  const Seen* seen;             // 0: as causal and window say
  const unsigned char* tokens;  // of each key, 0 if it is padding, whose value may be NaN; 0: none is
};
static_assert(sizeof(Attention) == 160, "AttentionArguments writes 160 bytes");

// Both ends must not fall from row to row: tiles take theirs from their first and last row.
static __device__ __forceinline__ Seen seen(const Attention& a, int row) {
  if (a.seen != 0) return a.seen[row < a.rows ? row : a.rows - 1];
  long long position = a.shift + row;
  long long first = a.window == 0 ? 0 : position - a.window + 1;
  long long end = a.causal ? position + 1 : a.keys;
  Seen result;
  result.first = (int)(first < 0 ? 0 : first > a.keys ? a.keys : first);
  result.end = (int)(end < 0 ? 0 : end > a.keys ? a.keys : end);
  return result;
}

#define NO_SCORE (asFloat(INFINITY_BITS | 0x80000000u))
// A block's head, and the first of its rows.
struct BlockRows {
  int head;
  int first;
};

// Returns a block's head and, as `first`, the number of its tile in the order of execution. The heads
// of a swath, whose rows are in the cache together, take turns.
static __device__ __forceinline__ BlockRows blockTile(int tiles, int heads, int together) {
  int swath = (int)blockIdx.x / (tiles * together);
  int turn = (int)blockIdx.x - swath * tiles * together;
  int left = heads - swath * together;
  int taking = left < together ? left : together;
  BlockRows result;
  result.head = swath * together + turn % taking;
  result.first = turn / taking;
  return result;
}

// Tiles of later rows come first: in causal attention they have the most keys, and short blocks at
// the end leave few multiprocessors idle.
static __device__ __forceinline__ BlockRows blockRows(const Attention& a, int rows) {
  int tiles = (a.rows + rows - 1) / rows;
  BlockRows result = blockTile(tiles, a.heads, a.together);
  result.first = (tiles - 1 - result.first) * rows;
  return result;
}

static const float LOG2_E = 1.4426950408889634f;
static const float LOG_2 = 0.6931471805599453f;

// 2^x, with a relative error of at most 2^-22; 0 below the normal numbers.
static __device__ __forceinline__ float power(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

// Operations of tensor cores on a 16-bit type.
template <class T> struct Tensor;

#define BRAID_TENSOR(Type, name)                                                              \
  template <> struct Tensor<Type> {                                                           \
    static __device__ __forceinline__ void multiply(                                          \
        float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {                  \
      asm("mma.sync.aligned.m16n8k16.row.col.f32." name "." name ".f32 "                      \
          "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                   \
          : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])                            \
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));                    \
    }                                                                                         \
    static __device__ __forceinline__ unsigned pack(float low, float high) {                  \
      unsigned both;                                                                          \
      asm("cvt.rn." name "x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));            \
      return both;                                                                            \
    }                                                                                         \
  };

BRAID_TENSOR(Bf16, "bf16")
BRAID_TENSOR(Fp16, "f16")

// Loads four 8 x 8 matrices of 16-bit numbers: lane i gives the address of row i % 8 of matrix i / 8.
static __device__ __forceinline__ void loadMatrices(unsigned (&to)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(address) : "memory");
}

static __device__ __forceinline__ void loadTransposed(unsigned (&to)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(address) : "memory");
}

// Copies 16 bytes, or sets them to 0.
static __device__ __forceinline__ void copyLater(unsigned to, const void* from, bool copies) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :: "r"(to), "l"(__cvta_generic_to_global(from)), "r"(copies ? 16 : 0) : "memory");
}

static __device__ __forceinline__ void awaitCopies() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}

static __device__ __forceinline__ float mostOfFour(float value) {
  value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 1));
  return fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 2));
}

static __device__ __forceinline__ float sumOfFour(float value) {
  value += __shfl_xor_sync(0xffffffffu, value, 1);
  return value + __shfl_xor_sync(0xffffffffu, value, 2);
}

// Tiles of WARPS * MATRICES * 16 query rows and KEYS keys. Heads have up to SIZE numbers, a multiple
// of 8; missing ones are zeros in shared memory. Rows in memory begin at multiples of 16 bytes.
//
// Shared memory holds the rows of the query and two stages of keys and values: while a stage is
// multiplied, the next is copied. Rows lie without gaps; in each, piece p of 16 bytes lies at p ^
// (row % 8), so that eight rows of a column of pieces are in different banks.
template <class T, int SIZE, int WARPS, int MATRICES, int KEYS>
struct AttentionTiles {
  static const int THREADS = 32 * WARPS;
  static const int ROWS = 16 * MATRICES * WARPS;
  static const int ROW_BYTES = 2 * SIZE;
  static const int PIECES = SIZE / 8;
  static const int TILE_BYTES = KEYS * ROW_BYTES;
  static const int SHARED_BYTES = ROWS * ROW_BYTES + 4 * TILE_BYTES;

  // Copies rows of a head; rows behind the last are copies of it. Padding becomes 0.
  template <int COUNT>
  static __device__ __forceinline__ void copyRows(
      unsigned to, const unsigned short* head, u64 stride, int from, int count, int pieces,
      const unsigned char* tokens = 0) {
    const int EACH = THREADS / PIECES;
    int piece = threadIdx.x % PIECES;
    int row = threadIdx.x / PIECES;
    if (piece >= pieces) return;
    const unsigned short* column = head + 8 * piece;
#pragma unroll
    for (int i = 0; i < COUNT; i += EACH) {
      int r = row + i;
      int source = from + r < count ? from + r : count - 1;
      copyLater(to + r * ROW_BYTES + ((piece ^ (r & 7)) << 4), column + (u64)source * stride,
                tokens == 0 || tokens[source] != 0);
    }
  }

  static __device__ __forceinline__ void run(const Attention& a) {
    extern __shared__ __align__(1024) char attentionTiles[];
    unsigned queries = sharedAddress(attentionTiles);
    unsigned stages = queries + ROWS * ROW_BYTES;

    BlockRows block = blockRows(a, ROWS);
    int head = block.head;
    int firstRow = block.first;
    int lastRow = firstRow + ROWS < a.rows ? firstRow + ROWS - 1 : a.rows - 1;
    int begin = seen(a, firstRow).first;
    int end = seen(a, lastRow).end;
    if (begin >= end && a.continued) return;

    int pieces = a.headSize / 8;
    if (pieces < PIECES) {
      for (int i = threadIdx.x * 16; i < SHARED_BYTES; i += THREADS * 16) {
        *(uint4*)(attentionTiles + i) = make_uint4(0, 0, 0, 0);
      }
      __syncthreads();
    }
    u64 kvColumn = (u64)(head / a.group) * a.headSize;
    const unsigned short* keys = (const unsigned short*)a.key + kvColumn;
    const unsigned short* values = (const unsigned short*)a.value + kvColumn;
    if (begin < end) {
      copyRows<ROWS>(queries, (const unsigned short*)a.query + (u64)head * a.headSize,
                     a.queryStride, firstRow, a.rows, pieces);
      copyRows<KEYS>(stages, keys, a.keyStride, begin, a.keys, pieces);
      copyRows<KEYS>(stages + TILE_BYTES, values, a.valueStride, begin, a.keys, pieces,
                     a.tokens);
    }

    int lane = threadIdx.x % 32;
    int warpRow = firstRow + (int)threadIdx.x / 32 * 16 * MATRICES;
    int warpLast = warpRow + 16 * MATRICES < a.rows ? warpRow + 16 * MATRICES - 1 : a.rows - 1;
    Seen top = seen(a, warpRow);
    Seen bottom = seen(a, warpLast);
    if (warpRow >= a.rows) bottom.end = 0;

    // Of matrix t, this lane has rows lane / 4 and lane / 4 + 8 (h = 0, 1), and of every 8 columns
    // those at 2 * (lane % 4) and after it.
    int row = warpRow + lane / 4;
    int column = 2 * (lane % 4);
    u64 outColumn = (u64)head * a.headSize + column;
    float output[MATRICES][SIZE / 8][4];
    float most[MATRICES][2];
    float sums[MATRICES][2];
#pragma unroll
    for (int t = 0; t < MATRICES; t++) {
#pragma unroll
      for (int h = 0; h < 2; h++) {
        int r = row + 16 * t + 8 * h;
        bool continues = a.continued && r < a.rows;
        most[t][h] = continues ? a.lse[r * a.lseStride + head] * LOG2_E : NO_SCORE;
        continues = most[t][h] != NO_SCORE;
        // The four lanes of a row add their sums in the end.
        sums[t][h] = continues && column == 0 ? 1 : 0;
#pragma unroll
        for (int n = 0; n < SIZE / 8; n++) {
          bool there = continues && 8 * n < a.headSize;
          u64 at = r * a.outputStride + outColumn + 8 * n;
          output[t][n][2 * h] = there ? ((const float*)a.output)[at] : 0;
          output[t][n][2 * h + 1] = there ? ((const float*)a.output)[at + 1] : 0;
        }
      }
    }

    // Byte offsets of what this lane addresses for loadMatrices; the column of pieces is added by ^.
    int eighth = lane & 7;
    unsigned queryAt = queries + (warpRow - firstRow + (lane & 15)) * ROW_BYTES;
    unsigned queryPiece = ((lane >> 4) ^ eighth) << 4;
    unsigned keyAt = ((lane >> 4) * 8 + eighth) * ROW_BYTES;
    unsigned keyPiece = ((lane >> 3 & 1) ^ eighth) << 4;
    unsigned valueAt = TILE_BYTES + (lane & 15) * ROW_BYTES;
    unsigned valuePiece = ((lane >> 4) ^ eighth) << 4;

    unsigned stage = stages;
    for (int from = begin; from < end; from += KEYS) {
      awaitCopies();
      __syncthreads();
      unsigned other = stages + stages + 2 * TILE_BYTES - stage;
      if (from + KEYS < end) {
        copyRows<KEYS>(other, keys, a.keyStride, from + KEYS, a.keys, pieces);
        copyRows<KEYS>(other + TILE_BYTES, values, a.valueStride, from + KEYS, a.keys, pieces,
                       a.tokens);
      }
      if (from < bottom.end && from + KEYS > top.first) {
        float scores[MATRICES][KEYS / 8][4];
#pragma unroll
        for (int t = 0; t < MATRICES; t++) {
#pragma unroll
          for (int n = 0; n < KEYS / 8; n++) {
#pragma unroll
            for (int e = 0; e < 4; e++) scores[t][n][e] = 0;
          }
        }
#pragma unroll
        for (int k = 0; k < SIZE / 16; k++) {
          unsigned rows[MATRICES][4];
#pragma unroll
          for (int t = 0; t < MATRICES; t++) {
            loadMatrices(rows[t], queryAt + 16 * t * ROW_BYTES + (queryPiece ^ (k << 5)));
          }
#pragma unroll
          for (int n = 0; n < KEYS / 16; n++) {
            unsigned columns[4];
            loadMatrices(columns, stage + keyAt + 16 * n * ROW_BYTES + (keyPiece ^ (k << 5)));
#pragma unroll
            for (int t = 0; t < MATRICES; t++) {
              Tensor<T>::multiply(scores[t][2 * n], rows[t], columns[0], columns[1]);
              Tensor<T>::multiply(scores[t][2 * n + 1], rows[t], columns[2], columns[3]);
            }
          }
        }

        // Only tiles at a border hold keys that a row does not see.
        if (from < bottom.first || from + KEYS > top.end) {
#pragma unroll
          for (int t = 0; t < MATRICES; t++) {
#pragma unroll
            for (int h = 0; h < 2; h++) {
              Seen of = seen(a, row + 16 * t + 8 * h);
#pragma unroll
              for (int n = 0; n < KEYS / 8; n++) {
#pragma unroll
                for (int e = 0; e < 2; e++) {
                  int key = from + 8 * n + column + e;
                  if (key < of.first || key >= of.end) scores[t][n][2 * h + e] = NO_SCORE;
                }
              }
            }
          }
        }

        weigh(a.scale, scores, most, sums, output);

        // A matrix of 16 rows x 16 keys has its keys in two matrices of scores.
#pragma unroll
        for (int k = 0; k < KEYS / 16; k++) {
          unsigned weights[MATRICES][4];
#pragma unroll
          for (int t = 0; t < MATRICES; t++) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
              const float* two = &scores[t][2 * k + i / 2][2 * (i % 2)];
              weights[t][i] = Tensor<T>::pack(two[0], two[1]);
            }
          }
#pragma unroll
          for (int n = 0; n < SIZE / 16; n++) {
            unsigned columns[4];
            loadTransposed(columns, stage + valueAt + 16 * k * ROW_BYTES + (valuePiece ^ (n << 5)));
#pragma unroll
            for (int t = 0; t < MATRICES; t++) {
              Tensor<T>::multiply(output[t][2 * n], weights[t], columns[0], columns[1]);
              Tensor<T>::multiply(output[t][2 * n + 1], weights[t], columns[2], columns[3]);
            }
          }
        }
      }
      stage = other;
    }

#pragma unroll
    for (int t = 0; t < MATRICES; t++) {
#pragma unroll
      for (int h = 0; h < 2; h++) {
        float sum = sumOfFour(sums[t][h]);
        int r = row + 16 * t + 8 * h;
        if (r >= a.rows) continue;
        float share = sum == 0 ? 0 : 1 / sum;
        if (column == 0) {
          a.lse[r * a.lseStride + head] =
              sum == 0 ? NO_SCORE : (most[t][h] + log2f(sum)) * LOG_2;
        }
        u64 at = r * a.outputStride + outColumn;
#pragma unroll
        for (int n = 0; n < SIZE / 8; n++) {
          if (8 * n >= a.headSize) break;
          float low = output[t][n][2 * h] * share;
          float high = output[t][n][2 * h + 1] * share;
          if (a.outCode == FP32) {
            *(float2*)((float*)a.output + at + 8 * n) = make_float2(low, high);
          } else {
            *(unsigned*)((unsigned short*)a.output + at + 8 * n) = Tensor<T>::pack(low, high);
          }
        }
      }
    }
  }

  // Replaces scores by weights, and rescales what was summed before.
  static __device__ __forceinline__ void weigh(
      float scale, float (&scores)[MATRICES][KEYS / 8][4], float (&most)[MATRICES][2],
      float (&sums)[MATRICES][2], float (&output)[MATRICES][SIZE / 8][4]) {
#pragma unroll
    for (int t = 0; t < MATRICES; t++) {
      float kept[2];
#pragma unroll
      for (int h = 0; h < 2; h++) {
        float largest = scores[t][0][2 * h];
#pragma unroll
        for (int n = 0; n < KEYS / 8; n++) {
          largest = fmaxf(largest, fmaxf(scores[t][n][2 * h], scores[t][n][2 * h + 1]));
        }
        float before = most[t][h];
        float now = fmaxf(before, mostOfFour(largest) * scale);
        most[t][h] = now;
        // Without any key yet, all weights must be 0, not NaN.
        float base = now == NO_SCORE ? 0 : now;
        kept[h] = power(before - base);
        float sum = sums[t][h] * kept[h];
#pragma unroll
        for (int n = 0; n < KEYS / 8; n++) {
#pragma unroll
          for (int e = 2 * h; e < 2 * h + 2; e++) {
            scores[t][n][e] = power(__fmaf_rn(scores[t][n][e], scale, -base));
            sum += scores[t][n][e];
          }
        }
        sums[t][h] = sum;
      }
      // Later tiles seldom have a larger score.
      if (__any_sync(0xffffffffu, kept[0] != 1 || kept[1] != 1)) {
#pragma unroll
        for (int n = 0; n < SIZE / 8; n++) {
#pragma unroll
          for (int e = 0; e < 4; e++) output[t][n][e] *= kept[e / 2];
        }
      }
    }
  }
};

#define BRAID_ATTENTION(name, Type, size, warps, matrices, keys)                          \
  extern "C" __global__ void __launch_bounds__(32 * warps, 2)                             \
      braid_attention_##name##_##size(const __grid_constant__ Attention a) {              \
    AttentionTiles<Type, size, warps, matrices, keys>::run(a);                            \
  }

BRAID_ATTENTION(bf16, Bf16, 64, 4, 2, 96)
BRAID_ATTENTION(bf16, Bf16, 128, 4, 2, 48)
BRAID_ATTENTION(bf16, Bf16, 256, 4, 1, 32)
BRAID_ATTENTION(fp16, Fp16, 64, 4, 2, 96)
BRAID_ATTENTION(fp16, Fp16, 128, 4, 2, 48)
BRAID_ATTENTION(fp16, Fp16, 256, 4, 1, 32)
