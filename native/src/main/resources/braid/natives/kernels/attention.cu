// Kernels of attention: a program and module of their own, since compiling them takes longer than
// all others, and only attention needs them.
#include "numbers.cuh"
#include "vectors.cuh"
#include "attention.cuh"
#include "attention_plain.cuh"
#include "attention_merge.cuh"
#include "attention_recode.cuh"
#include "attention_fold.cuh"
#include "attention_gradient.cuh"
