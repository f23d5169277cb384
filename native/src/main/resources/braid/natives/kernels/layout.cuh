// Conversions of layout and type for multiplications that require them.
#pragma once

static const int TILE = 64;

// Transposes one-byte elements: rows x columns, rows `stride` apart, to columns x rows without
// gaps. Each block moves tiles of 64 x 64 through shared memory, so that reads and writes are whole
// sectors.
extern "C" __global__ void __launch_bounds__(256)
    braid_transpose(unsigned char* to, const unsigned char* from, u64 stride, u64 rows, u64 columns) {
  // Four bytes of padding per row put the bytes of a column into different banks.
  __shared__ unsigned char tile[TILE][TILE + 4];
  u64 across = (columns + TILE - 1) / TILE;
  u64 tiles = across * ((rows + TILE - 1) / TILE);
  unsigned x = threadIdx.x % TILE;
  unsigned y = threadIdx.x / TILE;
  for (u64 t = blockIdx.x; t < tiles; t += gridDim.x) {
    u64 tileRow = t / across;
    u64 row = tileRow * TILE;
    u64 column = (t - tileRow * across) * TILE;
#pragma unroll
    for (unsigned r = 0; r < TILE; r += 4) {
      if (row + y + r < rows && column + x < columns) {
        tile[y + r][x] = from[(row + y + r) * stride + column + x];
      }
    }
    __syncthreads();
#pragma unroll
    for (unsigned c = 0; c < TILE; c += 4) {
      if (column + y + c < columns && row + x < rows) {
        to[(column + y + c) * rows + row + x] = tile[x][y + c];
      }
    }
    __syncthreads();
  }
}

// Widens fp8 to fp16, which represents every number of both fp8 types. Strides are in elements.
extern "C" __global__ void __launch_bounds__(256) braid_widen_fp16(
    unsigned short* to, u64 toStride, const unsigned char* from, u64 fromStride, int code,
    u64 rows, u64 columns) {
  bool byFour = ((u64)from | fromStride | columns) % 4 == 0 && ((u64)to | 2 * toStride) % 8 == 0;
  u64 each = byFour ? 4 : 1;
  u64 perRow = columns / each;
  for (u64 i = thread(); i < perRow * rows; i += threads()) {
    u64 row = quotient(i, perRow);
    u64 column = (i - row * perRow) * each;
    const unsigned char* read = from + row * fromStride + column;
    unsigned short* written = to + row * toStride + column;
    if (byFour) {
      unsigned four = *(const unsigned*)read;
      unsigned short wide[4];
#pragma unroll
      for (int j = 0; j < 4; j++) {
        unsigned bits = four >> 8 * j & 0xffu;
        wide[j] = (unsigned short)Fp16::narrow(code == E4M3 ? E4m3::widen(bits) : E5m2::widen(bits));
      }
      *(uint2*)written = make_uint2(wide[0] | (unsigned)wide[1] << 16, wide[2] | (unsigned)wide[3] << 16);
    } else {
      *written = (unsigned short)Fp16::narrow(load(code, read, 0));
    }
  }
}
