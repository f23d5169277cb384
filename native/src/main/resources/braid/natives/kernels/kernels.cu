// All of Braid's kernels: one program, one module. Nothing but these files is included, since a
// machine that runs it may have NVRTC and no headers.
#include "numbers.cuh"
#include "vectors.cuh"
#include "copy.cuh"
#include "tma.cuh"
#include "reduce.cuh"
#include "fill.cuh"
#include "bounds.cuh"
#include "inspect.cuh"
#include "layout.cuh"
