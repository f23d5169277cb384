package braid.natives.cublasmp;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import braid.natives.cuda.GpuError;
import braid.natives.cuda.GpuStream;
import braid.natives.load.BraidNativeMissing;
import braid.natives.nccl.NcclCommunicator;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/// One rank's use of cuBLASMp over a communicator: two grids, and the handle that all communicators
/// of a GPU share. Every rank opens and closes it, its products and their workspaces in the same
/// order. Closed before the communicator. For one thread.
public final class CublasMp implements AutoCloseable {
  /// Collective of a product.
  public enum Operation {
    /// Gathers the input's rows of all ranks, then multiplies with this rank's columns of the
    /// weight.
    ALL_GATHER,
    /// Multiplies this rank's part of the depth, then adds over all ranks and keeps this rank's
    /// rows.
    REDUCE_SCATTER,
    /// Multiplies this rank's part of the depth, then adds over all ranks and keeps everything.
    ALL_REDUCE
  }

  /// Types of all operands, with CUDA's numbers. Products are accumulated in fp32.
  public enum Type {
    FP32(0),
    FP16(2),
    BF16(14);

    private final int number;

    Type(int number) {
      this.number = number;
    }

    int number() {
      return number;
    }
  }

  /// Method of overlap, with the library's numbers.
  public enum Algorithm {
    /// The library's choice.
    DEFAULT(0),
    SPLIT_P2P(1),
    SPLIT_MULTICAST(2),
    ATOMIC_P2P(3),
    ATOMIC_MULTICAST(4),
    NO_OVERLAP(5);

    private final int number;

    Algorithm(int number) {
      this.number = number;
    }

    int number() {
      return number;
    }
  }

  /// Product of row-major, contiguous matrices: `output[M,N] = input[M,K] * weight[K,N]`.
  ///
  /// @param rows M of all ranks; a multiple of the number of ranks unless it is an all-reduce
  /// @param columns N of this rank
  /// @param depth K of this rank
  /// @param weightTransposed true if the weight is stored as N × K
  /// @param workers multiprocessors that communicate; 0 for the library's choice
  public record Shape(
      Operation operation,
      long rows,
      long columns,
      long depth,
      Type type,
      boolean weightTransposed,
      Algorithm algorithm,
      int workers) {
    public Shape {
      requirePositive("rows", rows);
      requirePositive("columns", columns);
      requirePositive("depth", depth);
      if (workers < 0) {
        throw new IllegalArgumentException(
            "workers must be 0 (the library chooses) or more but was " + workers);
      }
      if (operation == Operation.ALL_REDUCE && !weightTransposed) {
        throw new IllegalArgumentException(
            "an all-reduce of cuBLASMp needs a transposed weight but the weight is K × N; store it"
                + " as N × K");
      }
    }

    private static void requirePositive(String name, long value) {
      if (value < 1) {
        throw new IllegalArgumentException(name + " must be 1 or more but was " + value);
      }
    }
  }

  /// Handle of a GPU, with the stream that it is directed to. The library supports one per process
  /// and GPU.
  private static final class Handle {
    private record Gpu(CublasMpCalls calls, String place) {}

    private static final Map<Gpu, Handle> OPEN = new HashMap<>();

    final long address;
    long stream;
    private final Gpu gpu;
    private int users;

    private Handle(Gpu gpu, long address, long stream) {
      this.gpu = gpu;
      this.address = address;
      this.stream = stream;
    }

    static Handle open(CublasMpCalls calls, String place, long stream) {
      synchronized (OPEN) {
        var handle =
            OPEN.computeIfAbsent(
                new Gpu(calls, place),
                gpu ->
                    new Handle(
                        gpu,
                        create(
                            place,
                            "cublasMpCreate",
                            slot -> (int) calls.create.invokeExact(slot, stream)),
                        stream));
        handle.users++;
        return handle;
      }
    }

    void close() {
      synchronized (OPEN) {
        users--;
        if (users == 0) {
          OPEN.remove(gpu);
          CublasMpCalls.call(
              "cublasMpDestroy", gpu.place(), () -> (int) gpu.calls().destroy.invokeExact(address));
        }
      }
    }
  }

  private static final int COLUMN_MAJOR = 0;
  private static final int ROW_MAJOR = 1;

  private final CublasMpCalls calls;
  private final int ranks;
  private final String place;
  private final Runnable makeCurrent;
  private final ReleaseStack releases = new ReleaseStack();
  private final List<Product> products = new ArrayList<>();
  private final Handle handle;
  private final long columnGrid;
  private final long rowGrid;
  private boolean closed;

  private CublasMp(
      CublasMpCalls calls,
      long communicator,
      long stream,
      int ranks,
      String place,
      Runnable makeCurrent) {
    this.calls = calls;
    this.ranks = ranks;
    this.place = place;
    this.makeCurrent = makeCurrent;
    makeCurrent.run();
    try {
      handle = Handle.open(calls, place, stream);
      releases.push(handle::close);
      columnGrid = grid(ranks, 1, COLUMN_MAJOR, communicator);
      rowGrid = grid(1, ranks, ROW_MAJOR, communicator);
    } catch (RuntimeException | Error e) {
      releases.closeAfter(e);
      throw e;
    }
  }

  private long grid(long rows, long columns, int order, long communicator) {
    long grid =
        create(
            "cublasMpGridCreate",
            slot -> (int) calls.createGrid.invokeExact(rows, columns, order, communicator, slot));
    releases.push(
        () -> call("cublasMpGridDestroy", () -> (int) calls.destroyGrid.invokeExact(grid)));
    return grid;
  }

  /// Returns in one line why cuBLASMp cannot be used, with the remedy; empty if it can.
  public static Optional<String> missing() {
    try {
      CublasMpCalls.load();
      return Optional.empty();
    } catch (BraidNativeMissing | UnsatisfiedLinkError | GpuError e) {
      return Optional.of(String.valueOf(e.getMessage()).lines().findFirst().orElse("" + e));
    }
  }

  /// Creates the grids, and the handle of the GPU if there is none, of all ranks of the
  /// communicator.
  public static CublasMp open(NcclCommunicator communicator, GpuStream stream) {
    var gpu = communicator.gpu();
    return open(
        CublasMpCalls.load(),
        communicator.address(),
        stream.address(),
        communicator.size(),
        gpu.where(),
        gpu::use);
  }

  /// @param makeCurrent makes the GPU current for the calling thread
  static CublasMp open(
      CublasMpCalls calls,
      long communicator,
      long stream,
      int ranks,
      String place,
      Runnable makeCurrent) {
    return new CublasMp(calls, communicator, stream, ranks, place, makeCurrent);
  }

  /// Prepares a product. Its operands are passed to each enqueue.
  ///
  /// @throws IllegalArgumentException if the rows cannot be divided among the ranks
  public Product product(Shape shape) {
    requireOpen();
    var product = new Product(this, shape, ProductLayout.of(shape, ranks));
    products.add(product);
    return product;
  }

  /// Closes products that are still open, and destroys the grids and the handle. Enqueued products
  /// must be complete. Further calls have no effect.
  @Override
  public void close() {
    if (!closed) {
      closed = true;
      makeCurrent.run();
      products.forEach(product -> releases.push(product::close));
      releases.close();
    }
  }

  /// Directs the handle to a stream.
  void direct(long next) {
    if (next != handle.stream) {
      call("cublasMpSetStream", () -> (int) calls.setStream.invokeExact(handle.address, next));
      handle.stream = next;
    }
  }

  long handle() {
    return handle.address;
  }

  long grid(ProductLayout.Grid grid) {
    return switch (grid) {
      case COLUMN -> columnGrid;
      case ROW -> rowGrid;
    };
  }

  CublasMpCalls calls() {
    return calls;
  }

  String place() {
    return place;
  }

  void requireOpen() {
    if (closed) {
      throw new IllegalStateException("cuBLASMp of " + place + " is closed");
    }
    makeCurrent.run();
  }

  /// Makes the GPU current for the release of a product, which is no longer closed with this.
  void forget(Product product) {
    makeCurrent.run();
    products.remove(product);
  }

  void call(String name, CublasMpCalls.Call call) {
    CublasMpCalls.call(name, place, call);
  }

  /// A call that stores a new handle in a slot.
  interface Creation {
    int run(MemorySegment slot) throws Throwable;
  }

  long create(String name, Creation creation) {
    return create(place, name, creation);
  }

  private static long create(String place, String name, Creation creation) {
    try (var arena = Arena.ofConfined()) {
      var slot = arena.allocate(JAVA_LONG);
      CublasMpCalls.call(name, place, () -> creation.run(slot));
      return slot.get(JAVA_LONG, 0);
    }
  }
}
