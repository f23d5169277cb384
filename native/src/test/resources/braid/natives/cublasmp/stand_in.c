// A library with cuBLASMp's functions, as far as Braid calls them. It gathers or adds by NCCL and
// multiplies by cuBLAS, one after the other, as the descriptors say. With it a host with GPUs runs
// Braid's whole path without cuBLASMp:
//
//   gcc -shared -fPIC -O2 -o FOLDER/libcublasmp.so.0 stand_in.c -ldl -pthread
//   BRAID_LIBRARIES=cublas_mp=FOLDER braid selftest -n 2 --only all-gather-gemm
//
// It wants each rank's part in one block, as tensor parallelism has it, and refuses the rest.
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef BLAS
#define BLAS "libcublas.so.13"
#endif
#ifndef NCCL
#define NCCL "libnccl.so.2"
#endif

enum { SUCCESS = 0, ALLOCATION_FAILED = 2, INVALID_VALUE = 3, EXECUTION_FAILED = 5, NOT_SUPPORTED = 7 };
enum { TRANSPOSE_A = 0, TRANSPOSE_B = 1, EPILOGUE = 5, ATTRIBUTES = 32 };
enum { VERSION = 800, ALL_REDUCE = 1, SYMMETRIC_WINDOW = 1, SUM = 0, BYTES = 0 };

typedef struct {
  void *stream;
  void *multiplier;
} Handle;

typedef struct {
  int64_t rows, columns;
  void *ranks;
  void *window;
} Grid;

typedef struct {
  int64_t rows, columns, block_rows, block_columns, lead;
  int type;
  Grid *grid;
} Matrix;

typedef struct {
  int compute_type;
  int attributes[ATTRIBUTES];
} Product;

static int (*blas_create)(void **);
static int (*blas_destroy)(void *);
static int (*blas_stream)(void *, void *);
static int (*blas_multiply)(void *, int, int, int, int, int, const void *, const void *, int, int,
                            const void *, int, int, const void *, void *, int, int, int, int);
static int (*all_gather)(const void *, void *, size_t, int, void *, void *);
static int (*reduce_scatter)(const void *, void *, size_t, int, int, void *, void *);
static int (*all_reduce)(const void *, void *, size_t, int, int, void *, void *);
static int (*window_register)(void *, void *, size_t, void **, int);
static int (*window_deregister)(void *, void *);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int loaded;

static void load_once(void) {
  void *blas = dlopen(BLAS, RTLD_NOW);
  void *nccl = dlopen(NCCL, RTLD_NOW);
  if (blas == NULL || nccl == NULL) {
    return;
  }
  *(void **)&blas_create = dlsym(blas, "cublasCreate_v2");
  *(void **)&blas_destroy = dlsym(blas, "cublasDestroy_v2");
  *(void **)&blas_stream = dlsym(blas, "cublasSetStream_v2");
  *(void **)&all_gather = dlsym(nccl, "ncclAllGather");
  *(void **)&reduce_scatter = dlsym(nccl, "ncclReduceScatter");
  *(void **)&all_reduce = dlsym(nccl, "ncclAllReduce");
  *(void **)&window_register = dlsym(nccl, "ncclCommWindowRegister");
  *(void **)&window_deregister = dlsym(nccl, "ncclCommWindowDeregister");
  *(void **)&blas_multiply = dlsym(blas, "cublasGemmEx");
  loaded = blas_create && blas_destroy && blas_stream && blas_multiply && all_gather &&
           reduce_scatter && all_reduce && window_register && window_deregister;
}

int cublasMpGetVersion(int *version) {
  *version = VERSION;
  return SUCCESS;
}

int cublasMpCreate(Handle **handle, void *stream) {
  pthread_once(&once, load_once);
  if (!loaded) {
    return EXECUTION_FAILED;
  }
  Handle *made = calloc(1, sizeof *made);
  if (made == NULL || blas_create(&made->multiplier) != 0) {
    free(made);
    return ALLOCATION_FAILED;
  }
  made->stream = stream;
  *handle = made;
  return blas_stream(made->multiplier, stream) == 0 ? SUCCESS : EXECUTION_FAILED;
}

int cublasMpDestroy(Handle *handle) {
  int failed = blas_destroy(handle->multiplier);
  free(handle);
  return failed ? EXECUTION_FAILED : SUCCESS;
}

int cublasMpSetStream(Handle *handle, void *stream) {
  handle->stream = stream;
  return blas_stream(handle->multiplier, stream) == 0 ? SUCCESS : EXECUTION_FAILED;
}

int cublasMpGridCreate(int64_t rows, int64_t columns, int order, void *ranks, Grid **grid) {
  if ((rows > 1 && (columns > 1 || order != 0)) || (columns > 1 && order != 1)) {
    return INVALID_VALUE;
  }
  Grid *made = calloc(1, sizeof *made);
  if (made == NULL) {
    return ALLOCATION_FAILED;
  }
  *made = (Grid){rows, columns, ranks, NULL};
  *grid = made;
  return SUCCESS;
}

int cublasMpGridDestroy(Grid *grid) {
  free(grid);
  return SUCCESS;
}

int cublasMpBufferRegister(Grid *grid, void *buffer, size_t bytes) {
  return window_register(grid->ranks, buffer, bytes, &grid->window, SYMMETRIC_WINDOW) == 0 &&
                 grid->window != NULL
             ? SUCCESS
             : EXECUTION_FAILED;
}

int cublasMpBufferDeregister(Grid *grid, void *buffer) {
  (void)buffer;
  return window_deregister(grid->ranks, grid->window) == 0 ? SUCCESS : EXECUTION_FAILED;
}

int cublasMpMatrixDescriptorCreate(int64_t rows, int64_t columns, int64_t block_rows,
                                   int64_t block_columns, int64_t first_row, int64_t first_column,
                                   int64_t lead, int type, Grid *grid, Matrix **matrix) {
  if (first_row != 0 || first_column != 0) {
    return NOT_SUPPORTED;
  }
  Matrix *made = calloc(1, sizeof *made);
  if (made == NULL) {
    return ALLOCATION_FAILED;
  }
  *made = (Matrix){rows, columns, block_rows, block_columns, lead, type, grid};
  *matrix = made;
  return SUCCESS;
}

int cublasMpMatrixDescriptorDestroy(Matrix *matrix) {
  free(matrix);
  return SUCCESS;
}

int cublasMpMatmulDescriptorCreate(Product **product, int compute_type) {
  Product *made = calloc(1, sizeof *made);
  if (made == NULL) {
    return ALLOCATION_FAILED;
  }
  made->compute_type = compute_type;
  *product = made;
  return SUCCESS;
}

int cublasMpMatmulDescriptorDestroy(Product *product) {
  free(product);
  return SUCCESS;
}

int cublasMpMatmulDescriptorSetAttribute(Product *product, int attribute, const void *value,
                                         size_t bytes) {
  if (attribute < 0 || attribute >= ATTRIBUTES || bytes != sizeof(int)) {
    return INVALID_VALUE;
  }
  product->attributes[attribute] = *(const int *)value;
  return SUCCESS;
}

static int64_t ranks_of(const Grid *grid) { return grid->rows * grid->columns; }

// Rows and columns of this rank's part.
static int64_t own_rows(const Matrix *matrix) { return matrix->rows / matrix->grid->rows; }

static int64_t own_columns(const Matrix *matrix) { return matrix->columns / matrix->grid->columns; }

static size_t type_bytes(int type) { return type == 0 ? 4 : 2; }

static int nccl_type(int type) { return type == 0 ? 7 : type == 2 ? 6 : 9; }

// The ranks divide the columns of what is multiplied from the right: they gather it.
static int gathers(const Matrix *b) { return b->grid->columns > 1; }

// Each rank's part is one block, and its columns follow each other without gaps if they are moved.
static int is_divided(const Matrix *matrix) {
  return own_rows(matrix) * matrix->grid->rows == matrix->rows &&
         own_columns(matrix) * matrix->grid->columns == matrix->columns &&
         (matrix->grid->rows == 1 || matrix->block_rows == own_rows(matrix)) &&
         (matrix->grid->columns == 1 || matrix->block_columns == own_columns(matrix)) &&
         matrix->lead >= own_rows(matrix);
}

int cublasMpMatmul_bufferSize(Handle *handle, Product *product, int64_t m, int64_t n, int64_t k,
                              const void *alpha, const void *a, int64_t ia, int64_t ja,
                              Matrix *first, const void *b, int64_t ib, int64_t jb, Matrix *second,
                              const void *beta, const void *c, int64_t ic, int64_t jc, void *third,
                              void *d, int64_t id, int64_t jd, Matrix *result,
                              size_t *device_bytes, size_t *host_bytes) {
  (void)handle, (void)alpha, (void)a, (void)b, (void)beta, (void)c, (void)d;
  if (ia != 1 || ja != 1 || ib != 1 || jb != 1 || ic != 1 || jc != 1 || id != 1 || jd != 1 ||
      third != NULL || product->attributes[TRANSPOSE_B] != 0) {
    return NOT_SUPPORTED;
  }
  if (!is_divided(first) || !is_divided(second) || !is_divided(result)) {
    return INVALID_VALUE;
  }
  size_t numbers = gathers(second) ? (size_t)(k * n) : (size_t)(m * n);
  size_t bytes = product->attributes[EPILOGUE] == ALL_REDUCE ? 1 : numbers * type_bytes(first->type);
  *device_bytes = (bytes + 4095) / 4096 * 4096;
  *host_bytes = 64;
  return SUCCESS;
}

int cublasMpMatmul(Handle *handle, Product *product, int64_t m, int64_t n, int64_t k,
                   const void *alpha, const void *a, int64_t ia, int64_t ja, Matrix *first,
                   const void *b, int64_t ib, int64_t jb, Matrix *second, const void *beta,
                   const void *c, int64_t ic, int64_t jc, void *third, void *d, int64_t id,
                   int64_t jd, Matrix *result, void *workspace, size_t device_bytes,
                   void *host_workspace, size_t host_bytes) {
  size_t needed, needed_on_host;
  int failed = cublasMpMatmul_bufferSize(handle, product, m, n, k, alpha, a, ia, ja, first, b, ib,
                                         jb, second, beta, c, ic, jc, third, d, id, jd, result,
                                         &needed, &needed_on_host);
  if (failed) {
    return failed;
  }
  if (device_bytes < needed || workspace == NULL || host_bytes < needed_on_host ||
      host_workspace == NULL) {
    return INVALID_VALUE;
  }
  int transposed = product->attributes[TRANSPOSE_A];
  int reduces_all = product->attributes[EPILOGUE] == ALL_REDUCE;
  int type = first->type;
  // Sizes of this rank's multiplication, from the parts that it has.
  int64_t own_m = transposed ? own_columns(first) : own_rows(first);
  int64_t own_k = transposed ? own_rows(first) : own_columns(first);
  const void *right = b;
  int64_t right_lead = second->lead;
  void *target = d;
  int64_t target_lead = result->lead;
  if (gathers(second)) {
    if (right_lead != own_rows(second) || own_k != second->rows || own_m != own_rows(result) ||
        own_columns(result) != n || own_m * ranks_of(first->grid) != m) {
      return INVALID_VALUE;
    }
    size_t bytes = (size_t)(own_rows(second) * own_columns(second)) * type_bytes(type);
    if (all_gather(b, workspace, bytes, BYTES, second->grid->ranks, handle->stream) != 0) {
      return EXECUTION_FAILED;
    }
    right = workspace;
  } else if (own_k != own_rows(second) || own_k * ranks_of(second->grid) != k || own_m != m) {
    return INVALID_VALUE;
  } else if (!reduces_all) {
    target = workspace;
    target_lead = m;
  }
  if (blas_multiply(handle->multiplier, transposed, 0, (int)own_m, (int)n, (int)own_k, alpha, a,
                    type, (int)first->lead, right, type, (int)right_lead, beta, target, type,
                    (int)target_lead, product->compute_type, -1) != 0) {
    return EXECUTION_FAILED;
  }
  if (gathers(second)) {
    return SUCCESS;
  }
  if (target_lead != m || result->lead != m) {
    return INVALID_VALUE;
  }
  int number = nccl_type(type);
  void *ranks = result->grid->ranks;
  if (reduces_all) {
    failed = all_reduce(d, d, (size_t)(m * n), number, SUM, ranks, handle->stream);
  } else {
    size_t part = (size_t)(m * own_columns(result));
    failed = reduce_scatter(workspace, d, part, number, SUM, ranks, handle->stream);
  }
  return failed ? EXECUTION_FAILED : SUCCESS;
}
