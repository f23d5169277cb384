// Merge of partial results.
#pragma once

static const int MOST_MERGED = 16;

// AttentionMergeArguments writes these 312 bytes and knows each offset. Parts are in fp32 and
// without gaps, like the result.
struct AttentionParts {
  const float* outputs[MOST_MERGED];
  const float* lses[MOST_MERGED];
  void* output;
  float* lse;
  u64 count;  // rows times heads
  int headSize;
  int parts;
  int outCode;
  int byFour;
  u64 unused[2];
};
static_assert(sizeof(AttentionParts) == 312, "AttentionMergeArguments writes 312 bytes");

// Merges attention of the same rows to different keys, in the order of the parts: the share of a
// part is e^(its LSE - LSE of all). A warp has one row of a head at a time, and reads all statistics
// before it writes that of the result, which may be one of the parts.
extern "C" __global__ void __launch_bounds__(256)
    braid_attention_merge(const __grid_constant__ AttentionParts p) {
  int lane = threadIdx.x % 32;
  for (u64 at = thread() / 32; at < p.count; at += threads() / 32) {
    float most = NO_SCORE;
    for (int i = 0; i < p.parts; i++) most = fmaxf(most, p.lses[i][at]);
    float base = most == NO_SCORE ? 0 : most;
    float total = 0;
    for (int i = 0; i < p.parts; i++) total += expf(p.lses[i][at] - base);
    float scale = total == 0 ? 0 : 1 / total;
    u64 first = at * p.headSize;
    if (p.byFour) {
      for (int column = 4 * lane; column < p.headSize; column += 128) {
        float sum[4] = {0, 0, 0, 0};
        for (int i = 0; i < p.parts; i++) {
          float share = expf(p.lses[i][at] - base) * scale;
          float4 part = *(const float4*)(p.outputs[i] + first + column);
          sum[0] = __fmaf_rn(share, part.x, sum[0]);
          sum[1] = __fmaf_rn(share, part.y, sum[1]);
          sum[2] = __fmaf_rn(share, part.z, sum[2]);
          sum[3] = __fmaf_rn(share, part.w, sum[3]);
        }
        if (p.outCode == FP32) {
          *(float4*)((float*)p.output + first + column) =
              make_float4(sum[0], sum[1], sum[2], sum[3]);
        } else if (p.outCode == BF16) {
          *(uint2*)((unsigned short*)p.output + first + column) = 
              make_uint2(Bf16::narrowPair(sum[0], sum[1]), Bf16::narrowPair(sum[2], sum[3]));
        } else {
          *(uint2*)((unsigned short*)p.output + first + column) = 
              make_uint2(Fp16::narrowPair(sum[0], sum[1]), Fp16::narrowPair(sum[2], sum[3]));
        }
      }
    } else {
      for (int column = lane; column < p.headSize; column += 32) {
        float sum = 0;
        for (int i = 0; i < p.parts; i++) {
          float share = expf(p.lses[i][at] - base) * scale;
          sum = __fmaf_rn(share, p.outputs[i][first + column], sum);
        }
        store(p.outCode, p.output, first + column, sum);
      }
    }
    __syncwarp();
    if (lane == 0) p.lse[at] = total == 0 ? NO_SCORE : most + logf(total);
  }
}
