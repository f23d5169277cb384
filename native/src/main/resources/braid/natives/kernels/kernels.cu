// All kernels but those of attention, in one program and module. Only these files are included, since
// a host may have NVRTC but no headers.
#include "numbers.cuh"
#include "vectors.cuh"
#include "handshake.cuh"
#include "copy.cuh"
#include "tma.cuh"
#include "reduce.cuh"
#include "fill.cuh"
#include "bounds.cuh"
#include "inspect.cuh"
#include "layout.cuh"
