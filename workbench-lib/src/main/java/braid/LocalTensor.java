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

/// A tensor of this rank alone, out of the other ranks' reach: in the memory that its streams work
/// on, which on GPUs is the device's, or pinned in the host's, where copies to and from the device
/// are fastest.
///
/// ```java
/// try (var x = LocalTensor.on(world).shape(2048, 8192).dtype(BF16).pinned().allocate()) {
///   x.view().copyFrom(pipe.output());
/// }
/// ```
///
/// It begins as zeroes. No rank waits for another to make one or to close it.
public final class LocalTensor implements PipelineTensor, AutoCloseable {
  private final ProcessGroup group;
  private final List<Long> shape;
  private final DType dtype;
  private final boolean pinned;
  private final PrivateMemory memory;
  private final Access access;
  private boolean closed;

  private LocalTensor(Builder how, List<Long> shape, PrivateMemory memory, Access access) {
    this.group = how.group;
    this.shape = shape;
    this.dtype = how.dtype == null ? GemmSpec.DEFAULT_DTYPE : how.dtype;
    this.pinned = how.pinned;
    this.memory = memory;
    this.access = access;
  }

  /// Begins a tensor on that group's backend; it is closed with the group at the latest.
  public static Builder on(ProcessGroup group) {
    group.checkMember();
    return new Builder(group);
  }

  /// Collects what a tensor is; each thing is said at most once.
  public static final class Builder {
    private final ProcessGroup group;
    private long @Nullable [] sizes;
    private @Nullable DType dtype;
    private boolean pinned;

    private Builder(ProcessGroup group) {
      this.group = group;
    }

    /// Its sizes; required.
    public Builder shape(long... those) {
      once("shape", sizes != null);
      if (those.length == 0 || Arrays.stream(those).anyMatch(size -> size < 1)) {
        throw new BraidException(
            "shape needs 1 or more sizes, each 1 or more, but was %s"
                .formatted(Arrays.toString(those)));
      }
      sizes = those.clone();
      return this;
    }

    /// [GemmSpec#DEFAULT_DTYPE] where it is not said.
    public Builder dtype(DType type) {
      once("dtype", dtype != null);
      dtype = type;
      return this;
    }

    /// In memory of the host that does not move, where the host reads and writes it itself and the
    /// device copies it without a detour.
    public Builder pinned() {
      once("pinned", pinned);
      pinned = true;
      return this;
    }

    private static void once(String what, boolean before) {
      if (before) {
        throw new BraidException("%s was said already; say it once".formatted(what));
      }
    }

    /// Makes it, on this rank.
    public LocalTensor allocate() {
      group.checkMember();
      if (sizes == null) {
        throw new BraidException("shape is missing; say shape(rows, columns) before allocate()");
      }
      var shape = LongStream.of(sizes).boxed().toList();
      long bytes = bytes(shape);
      var backend = group.context().backend();
      var memory = pinned ? backend.pinned(bytes) : backend.allocate(bytes);
      var tensor =
          new LocalTensor(this, shape, memory, pinned ? HostAccess.HOST : backend.access());
      try {
        // Memory may hold what an earlier owner left.
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
                .formatted(Tensor.text(shape)),
            e);
      }
    }
  }

  /// Its numbers, as long as it is open.
  public synchronized Tensor view() {
    checkOpen();
    return new Tensor(shape, dtype, List.of(memory.segment()), this::ended, access);
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
    return "local tensor %s %s is closed; allocate it again".formatted(Tensor.text(shape), dtype);
  }

  @Override
  public List<Long> shape() {
    return shape;
  }

  @Override
  public DType dtype() {
    return dtype;
  }

  /// Whether it lies in the host's memory.
  public boolean isPinned() {
    return pinned;
  }

  /// Gives its memory back; views of it end. Twice is harmless.
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
    return "local tensor %s %s%s".formatted(Tensor.text(shape), dtype, pinned ? ", pinned" : "");
  }
}
