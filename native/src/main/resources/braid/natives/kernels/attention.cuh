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

// AttentionArguments writes these 168 bytes and knows each offset. Strides are in elements.
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
  int continued;    // with the output of other keys, `earlier`
  float scale;      // times log2(e)
  int firstColumn;  // first column of the heads' outputs to compute
  int writesLse;
  int together;  // heads whose keys and values share the cache
  const Seen* seen;             // 0: as causal and window say
  const unsigned char* tokens;  // of each key, 0 if it is padding, whose value may be NaN; 0: none is
  const float* earlier;         // the output itself if that stays in fp32
};
static_assert(sizeof(Attention) == 168, "AttentionArguments writes 168 bytes");

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
