package braid;

import braid.internal.collective.ReachableTensor;
import braid.internal.memory.Call;
import braid.internal.report.progress.Progress;
import braid.internal.resource.Access;
import braid.internal.resource.ConcatenatedAccess;
import braid.internal.resource.SymmetricMemory;
import braid.model.BraidException;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.MemoryKind;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;

/// A tensor of the same shape on every rank of a group, each part reachable by all ranks:
///
/// ```java
/// var x = SymmetricTensor.on(group).shape(2048, 8192).dtype(BF16).allocate();
/// x.local(); x.on(3); x.all();      // mine, rank 3's, all as one contiguous view
/// ```
///
/// Filled with zeros at first. A tensor does not synchronize: before you read another rank's part,
/// make sure that it has been written, by a barrier or a pipeline's signals.
public final class SymmetricTensor implements Tensor, AutoCloseable {
  private static final double BYTES_PER_GIB = 1 << 30;
  private static final Progress.Task ALLOCATING =
      new Progress.Task("allocating", "allocated", "tensor");

  static final int MAX_NAME_CHARACTERS = 64;

  private final ProcessGroup group;
  private final String name;
  private final List<Long> shape;
  private final DType dtype;
  private final MemoryKind kind;
  private final SymmetricMemory memory;
  private final String identity;
  private final ReachableTensor shared;
  private boolean closed;

  private SymmetricTensor(Builder builder, String name, MemoryKind kind, SymmetricMemory memory) {
    this.group = builder.group;
    this.name = name;
    this.shape = builder.shape();
    this.dtype = builder.dtype();
    this.kind = kind;
    this.memory = memory;
    this.identity = group.nextTensor();
    this.shared =
        new ReachableTensor(
            dtype,
            shape.stream().mapToLong(Long::longValue).reduce(1, Math::multiplyExact),
            rank -> on(rank).memory(),
            memory.attachment());
  }

  /// Begins a tensor on a group; all members allocate it together.
  public static Builder on(ProcessGroup group) {
    Given.check("group", group);
    group.checkMember();
    return new Builder(group);
  }

  /// Collects the attributes of a tensor; each is set at most once.
  public static final class Builder {
    private static final Pattern NAME =
        Pattern.compile("\\P{C}{1,%d}".formatted(MAX_NAME_CHARACTERS));

    private final ProcessGroup group;
    private @Nullable List<Long> shape;
    private @Nullable DType dtype;
    private @Nullable MemoryKind kind;
    private @Nullable String name;

    private Builder(ProcessGroup group) {
      this.group = group;
    }

    /// Sets the sizes of one rank's part; required.
    public Builder shape(long... sizes) {
      Given.check("sizes", sizes);
      SetOnce.check("shape", shape);
      if (sizes.length == 0) {
        throw new BraidException(
            "shape needs 1 or more sizes but has none; call shape(1) for one number");
      }
      if (Arrays.stream(sizes).anyMatch(size -> size < 1)) {
        throw new BraidException(
            "every size of shape must be 1 or more but it was %s"
                .formatted(TensorView.text(boxed(sizes))));
      }
      shape = boxed(sizes);
      return this;
    }

    /// Sets the type; [GemmSpec#DEFAULT_DTYPE] by default.
    public Builder dtype(DType type) {
      Given.check("type", type);
      SetOnce.check("dtype", dtype);
      dtype = type;
      return this;
    }

    /// Sets the kind of memory; by default `BRAID_SYMMETRIC_MEMORY`, else the backend's choice.
    public Builder memory(MemoryKind symmetric) {
      Given.check("symmetric", symmetric);
      SetOnce.check("memory", kind);
      kind = symmetric;
      return this;
    }

    /// Sets the name used in messages.
    public Builder name(String label) {
      Given.check("label", label);
      SetOnce.check("name", name);
      if (!NAME.matcher(label).matches()) {
        throw new BraidException(
            "a tensor's name must be 1 to 64 printable characters but was `%s`; try `x`"
                .formatted(label));
      }
      name = label;
      return this;
    }

    /// Allocates the tensor on all ranks of the group together. Memory comes from the group's pool:
    /// if a tensor of that number of bytes has been closed, this waits in shared memory until all
    /// ranks have called and have closed that one; otherwise all ranks meet once. If ranks allocate
    /// different tensors, all of them get an error, and the next call works.
    public SymmetricTensor allocate() {
      group.checkMember();
      var context = group.context();
      var resolved = context.memory(kind, group.members());
      var label = name == null ? "tensor" : name;
      long bytes = bytes();
      var call =
          Call.of(
              "allocate `%s`".formatted(label),
              "%s %s %s".formatted(TensorView.text(shape()), dtype(), resolved));
      var memory = take(call, resolved, label, bytes);
      try {
        var tensor = new SymmetricTensor(this, label, resolved, memory);
        group.own(tensor);
        return tensor;
      } catch (BraidException e) {
        memory.close();
        throw e;
      }
    }

    private SymmetricMemory take(Call call, MemoryKind resolved, String label, long bytes) {
      boolean reports = group.rank() == 0;
      try (var progress = Progress.of(ALLOCATING, 1, group.context().outbox(), reports)) {
        progress.step(
            String.format(Locale.ROOT, "`%s`, %.1f GiB per rank", label, bytes / BYTES_PER_GIB));
        var memory = group.pool().take(call, resolved, bytes);
        progress.finished("");
        return memory;
      }
    }

    private List<Long> shape() {
      if (shape == null) {
        throw new BraidException("shape is missing; call shape(rows, columns) before allocate()");
      }
      return shape;
    }

    private DType dtype() {
      return dtype == null ? GemmSpec.DEFAULT_DTYPE : dtype;
    }

    private long bytes() {
      try {
        long bytes = dtype().bytes();
        for (long size : shape()) {
          bytes = Math.multiplyExact(bytes, size);
        }
        // All ranks' parts form one view, so the sum of their bytes must be countable.
        var _ = Math.multiplyExact(bytes, (long) group.size());
        return bytes;
      } catch (ArithmeticException e) {
        throw new BraidException(
            "shape %s of %s on %d ranks must be less than 2^63 bytes; is it in elements?"
                .formatted(TensorView.text(shape()), dtype(), group.size()),
            e);
      }
    }
  }

  private static List<Long> boxed(long... sizes) {
    return LongStream.of(sizes).boxed().toList();
  }

  /// Returns this rank's part.
  public TensorView local() {
    checkOpen();
    return on(group.rank());
  }

  /// Returns a rank's part, as mapped into this rank.
  public TensorView on(int rank) {
    checkOpen();
    if (rank < 0 || rank >= group.size()) {
      throw new BraidException(
          "`%s` is on ranks 0..%d of group `%s` but was requested on %d"
              .formatted(name, group.size() - 1, group.name(), rank));
    }
    return view(shape, memory.on(rank));
  }

  /// Returns all parts as one view, whose first size is the number of ranks. Parts that are not
  /// contiguous are reached piece by piece.
  public TensorView all() {
    checkOpen();
    var whole = new ArrayList<Long>();
    whole.add((long) group.size());
    whole.addAll(shape);
    if (memory.whole().isPresent()) {
      return view(whole, memory.all());
    }
    var pieces = new ConcatenatedAccess(access(), memory.parts());
    return new TensorView(
        whole, dtype, List.of(pieces.whole()), memory.parts().getFirst(), this::ended, pieces);
  }

  /// Returns a view whose writes go to every rank's part and whose reads use this rank's. The host
  /// backend writes to the parts in order.
  public TensorView multicast() {
    checkOpen();
    // This rank's part comes first, since reads use the first.
    return new TensorView(
        shape,
        dtype,
        IntStream.range(0, group.size())
            .mapToObj(i -> memory.on((group.rank() + i) % group.size()))
            .toList(),
        this::ended,
        access());
  }

  private TensorView view(List<Long> sizes, MemorySegment place) {
    return new TensorView(sizes, dtype, List.of(place), this::ended, access());
  }

  private Access access() {
    return group.context().backend().access();
  }

  private String ended() {
    return group.isClosed()
        ? "symmetric tensor `%s` was closed with its group `%s`; get the group and allocate it again"
            .formatted(name, group.name())
        : "symmetric tensor `%s` is closed; allocate it again".formatted(name);
  }

  public String name() {
    return name;
  }

  ProcessGroup group() {
    return group;
  }

  /// Returns the identity that all ranks share for this tensor within the group.
  String identity() {
    return identity;
  }

  SymmetricMemory memory() {
    checkOpen();
    return memory;
  }

  /// Returns the tensor as collectives take it; always the same object.
  ReachableTensor shared() {
    return shared;
  }

  @Override
  public List<Long> shape() {
    return shape;
  }

  @Override
  public DType dtype() {
    return dtype;
  }

  /// Returns the kind of memory; never [MemoryKind#AUTO].
  public MemoryKind kind() {
    return kind;
  }

  synchronized void checkOpen() {
    if (closed) {
      throw new BraidException(ended());
    }
  }

  /// Frees the memory; views of it end. No rank waits for another. A rank that still reads this
  /// rank's part may continue: the memory is reused only when all ranks have closed the tensor.
  /// Close tensors in the same order on all ranks. Closing twice is harmless.
  @Override
  public synchronized void close() {
    if (!closed) {
      memory.close();
      closed = true;
      group.disown(this);
    }
  }

  @Override
  public String toString() {
    return "symmetric tensor `%s` %s %s %s on %s"
        .formatted(name, TensorView.text(shape), dtype, kind, group);
  }
}
