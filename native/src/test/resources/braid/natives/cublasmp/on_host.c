// The functions of cuBLAS and NCCL that stand_in.c calls, for threads of one process as ranks and
// fp32 in the host's memory.
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RANKS = 16, INVALID = 1, BYTES = 0, FP32 = 7 };

typedef struct {
  int ranks;
  pthread_barrier_t barrier;
  const char *given[MOST_RANKS];
} Group;

typedef struct {
  int64_t rank;
  Group *group;
} Communicator;

// Returns the communicators of all ranks, one after the other.
Communicator *communicators(int ranks) {
  Group *group = calloc(1, sizeof *group);
  Communicator *all = calloc((size_t)ranks, sizeof *all);
  group->ranks = ranks;
  pthread_barrier_init(&group->barrier, NULL, (unsigned)ranks);
  for (int rank = 0; rank < ranks; rank++) {
    all[rank] = (Communicator){rank, group};
  }
  return all;
}

static const float *given(const Communicator *communicator, int rank) {
  return (const float *)communicator->group->given[rank];
}

static void meet(const Communicator *communicator) {
  pthread_barrier_wait(&communicator->group->barrier);
}

static void give(const Communicator *communicator, const void *numbers) {
  communicator->group->given[communicator->rank] = numbers;
  meet(communicator);
}

int ncclAllGather(const void *from, void *to, size_t count, int type, Communicator *communicator,
                  void *stream) {
  (void)stream;
  give(communicator, from);
  for (int rank = 0; rank < communicator->group->ranks; rank++) {
    memcpy((char *)to + (size_t)rank * count, communicator->group->given[rank], count);
  }
  meet(communicator);
  return type == BYTES ? 0 : INVALID;
}

// Adds the numbers of all ranks from one of them on.
static int add(const void *from, void *to, size_t first, size_t count, int type,
               const Communicator *communicator) {
  give(communicator, from);
  float *sums = calloc(count, sizeof *sums);
  for (int rank = 0; rank < communicator->group->ranks; rank++) {
    for (size_t i = 0; i < count; i++) {
      sums[i] += given(communicator, rank)[first + i];
    }
  }
  meet(communicator);
  memcpy(to, sums, count * sizeof *sums);
  free(sums);
  return type == FP32 ? 0 : INVALID;
}

int ncclReduceScatter(const void *from, void *to, size_t count, int type, int operation,
                      Communicator *communicator, void *stream) {
  (void)stream;
  return operation + add(from, to, (size_t)communicator->rank * count, count, type, communicator);
}

int ncclAllReduce(const void *from, void *to, size_t count, int type, int operation,
                  Communicator *communicator, void *stream) {
  (void)stream;
  return operation + add(from, to, 0, count, type, communicator);
}

int ncclCommWindowRegister(void *communicator, void *memory, size_t bytes, void **window,
                           int flags) {
  (void)communicator, (void)bytes, (void)flags;
  *window = memory;
  return 0;
}

int ncclCommWindowDeregister(void *communicator, void *window) {
  (void)communicator;
  return window == NULL;
}

int cublasCreate_v2(void **handle) {
  *handle = malloc(1);
  return 0;
}

int cublasDestroy_v2(void *handle) {
  free(handle);
  return 0;
}

int cublasSetStream_v2(void *handle, void *stream) {
  (void)handle, (void)stream;
  return 0;
}

int cublasGemmEx(void *handle, int transposed_a, int transposed_b, int m, int n, int k,
                 const float *alpha, const float *a, int type_a, int lead_a, const float *b,
                 int type_b, int lead_b, const float *beta, float *c, int type_c, int lead_c,
                 int compute, int algorithm) {
  (void)handle, (void)compute, (void)algorithm;
  if (transposed_b || type_a || type_b || type_c || *alpha != 1 || *beta != 0) {
    return INVALID;
  }
  for (int column = 0; column < n; column++) {
    for (int row = 0; row < m; row++) {
      float sum = 0;
      for (int i = 0; i < k; i++) {
        sum += a[transposed_a ? (size_t)row * lead_a + i : (size_t)i * lead_a + row] *
               b[(size_t)column * lead_b + i];
      }
      c[(size_t)column * lead_c + row] = sum;
    }
  }
  return 0;
}
