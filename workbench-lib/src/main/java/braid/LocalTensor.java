package braid;

import braid.internal.host.HostAccess;
import braid.internal.resource.Access;
import braid.internal.resource.PrivateMemory;
import braid.model.BraidException;
import braid.model.DType;
import braid.model.GemmSpec;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;

/// A tensor of this rank alone, which other ranks cannot reach. It is in the memory that streams
/// work on (the device's, on GPUs) or in pinned host memory, from and to which copies are fastest.
///
/// ```java
/// try (var x = LocalTensor.on(world).shape(2048, 8192).dtype(BF16).pinned().allocate()) {
///   x.view().copyFrom(pipe.output());
/// }
/// ```
///
/// Filled with zeros at first. Allocating and closing wait for no other rank.
public final class LocalTensor implements Tensor, AutoCloseable {
  private final ProcessGroup group;
  private final List<Long> shape;
  private final DType dtype;
  private final boolean pinned;
  private final PrivateMemory memory;
  private final Access access;
  private boolean closed;

  private LocalTensor(Builder builder, List<Long> shape, PrivateMemory memory, Access access) {
    this.group = builder.group;
    this.shape = shape;
    this.dtype = builder.dtype == null ? GemmSpec.DEFAULT_DTYPE : builder.dtype;
    this.pinned = builder.pinned;
    this.memory = memory;
    this.access = access;
  }

  /// Begins a tensor on the group's backend. The group closes it if the caller does not.
  public static Builder on(ProcessGroup group) {
    Given.check("group", group);
    group.checkMember();
    return new Builder(group);
  }

  /// Collects the attributes of a tensor; each is set at most once.
  public static final class Builder {
    private final ProcessGroup group;
    private long @Nullable [] sizes;
    private @Nullable DType dtype;
    private boolean pinned;

    private Builder(ProcessGroup group) {
      this.group = group;
    }

    /// Sets the sizes; required.
    public Builder shape(long... lengths) {
      Given.check("lengths", lengths);
      once("shape", sizes != null);
      if (lengths.length == 0 || Arrays.stream(lengths).anyMatch(size -> size < 1)) {
        throw new BraidException(
            "shape needs 1 or more sizes, each 1 or more, but was %s"
                .formatted(Arrays.toString(lengths)));
      }
      sizes = lengths.clone();
      return this;
    }

    /// Sets the type; [GemmSpec#DEFAULT_DTYPE] by default.
    public Builder dtype(DType type) {
      Given.check("type", type);
      once("dtype", dtype != null);
      dtype = type;
      return this;
    }

    /// Allocates in pinned host memory, which the host reads and writes directly and the device
    /// copies without staging.
    public Builder pinned() {
      once("pinned", pinned);
      pinned = true;
      return this;
    }

    private static void once(String attribute, boolean before) {
      if (before) {
        throw new BraidException("%s was set already; set it once".formatted(attribute));
      }
    }

    /// Allocates the tensor on this rank.
    public LocalTensor allocate() {
      group.checkMember();
      if (sizes == null) {
        throw new BraidException("shape is missing; call shape(rows, columns) before allocate()");
      }
      var shape = LongStream.of(sizes).boxed().toList();
      long bytes = bytes(shape);
      var backend = group.context().backend();
      var memory = pinned ? backend.pinned(bytes) : backend.allocate(bytes);
      var tensor =
          new LocalTensor(this, shape, memory, pinned ? HostAccess.HOST : backend.access());
      try {
        // Memory may hold data of an earlier owner.
        tensor.view().fill(0);
        group.own(tensor);
        return tensor;
      } catch (RuntimeException | Error e) {
        memory.close();
        throw e;
      }
    }

    private long bytes(List<Long> shape) {
      try {
        long bytes = (dtype == null ? GemmSpec.DEFAULT_DTYPE : dtype).bytes();
        for (long size : shape) {
          bytes = Math.multiplyExact(bytes, size);
        }
        return bytes;
      } catch (ArithmeticException e) {
        throw new BraidException(
            "shape %s must be less than 2^63 bytes; is it in elements?"
                .formatted(TensorView.text(shape)),
            e);
      }
    }
  }

  /// Returns a view of the data, valid until the tensor is closed.
  public synchronized TensorView view() {
    checkOpen();
    return new TensorView(shape, dtype, List.of(memory.segment()), this::ended, access);
  }

  MemorySegment segment() {
    checkOpen();
    return memory.segment();
  }

  synchronized void checkOpen() {
    if (closed) {
      throw new BraidException(ended());
    }
  }

  private String ended() {
    return "local tensor %s %s is closed; allocate it again"
        .formatted(TensorView.text(shape), dtype);
  }

  @Override
  public List<Long> shape() {
    return shape;
  }

  @Override
  public DType dtype() {
    return dtype;
  }

  /// Returns true if the tensor is in pinned host memory.
  public boolean isPinned() {
    return pinned;
  }

  /// Frees the memory; views of it end. Closing twice is harmless.
  @Override
  public synchronized void close() {
    if (!closed) {
      closed = true;
      memory.close();
      group.disown(this);
    }
  }

  @Override
  public String toString() {
    return "local tensor %s %s%s"
        .formatted(TensorView.text(shape), dtype, pinned ? ", pinned" : "");
  }
}
