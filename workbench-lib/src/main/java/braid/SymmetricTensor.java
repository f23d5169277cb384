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

/// A tensor of the same shape on every rank of a group, each of them within reach of all:
///
/// ```java
/// var x = SymmetricTensor.on(group).shape(2048, 8192).dtype(BF16).allocate();
/// x.local(); x.on(3); x.all();      // mine, rank 3's, all as one contiguous view
/// ```
///
/// It begins as zeroes. Who reads another rank's part must know that it has been written: a barrier
/// or a pipeline's signals say so, the tensor does not.
public final class SymmetricTensor implements PipelineTensor, AutoCloseable {
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

  private SymmetricTensor(Builder how, String name, MemoryKind kind, SymmetricMemory memory) {
    this.group = how.group;
    this.name = name;
    this.shape = how.shape();
    this.dtype = how.dtype();
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

  /// Begins a tensor on that group; all its members must make it together.
  public static Builder on(ProcessGroup group) {
    group.checkMember();
    return new Builder(group);
  }

  /// Collects what a tensor is; each thing is said at most once.
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

    /// The sizes of one rank's part; required.
    public Builder shape(long... sizes) {
      once("shape", shape);
      if (sizes.length == 0) {
        throw new BraidException(
            "shape needs 1 or more sizes but has none; say shape(1) for one number");
      }
      if (Arrays.stream(sizes).anyMatch(size -> size < 1)) {
        throw new BraidException(
            "every size of shape must be 1 or more but it was %s"
                .formatted(Tensor.text(boxed(sizes))));
      }
      shape = boxed(sizes);
      return this;
    }

    /// [GemmSpec#DEFAULT_DTYPE] where it is not said.
    public Builder dtype(DType type) {
      once("dtype", dtype);
      dtype = type;
      return this;
    }

    /// What it is made of; where it is not said, `BRAID_SYMMETRIC_MEMORY` decides, else the
    /// backend.
    public Builder memory(MemoryKind what) {
      once("memory", kind);
      kind = what;
      return this;
    }

    /// How messages call it.
    public Builder name(String what) {
      once("name", name);
      if (!NAME.matcher(what).matches()) {
        throw new BraidException(
            "a tensor's name must be 1 to 64 printable characters but was `%s`; try `x`"
                .formatted(what));
      }
      name = what;
      return this;
    }

    /// Makes it, on all ranks of the group together. Memory comes from the group's pool: where a
    /// tensor of as many bytes has been closed, this waits in shared memory until all ranks have
    /// asked and have closed that one; else all ranks meet once. Ranks that ask for different
    /// tensors all get the error, and the next call works.
    public SymmetricTensor allocate() {
      group.checkMember();
      var context = group.context();
      var resolved = context.backend().resolve(kind == null ? context.memory() : kind);
      var called = name == null ? "tensor" : name;
      long bytes = bytes();
      var call =
          Call.of(
              "allocate `%s`".formatted(called),
              "%s %s %s".formatted(Tensor.text(shape()), dtype(), resolved));
      var memory = take(call, resolved, called, bytes);
      try {
        var tensor = new SymmetricTensor(this, called, resolved, memory);
        group.own(tensor);
        return tensor;
      } catch (BraidException e) {
        memory.close();
        throw e;
      }
    }

    private SymmetricMemory take(Call call, MemoryKind resolved, String called, long bytes) {
      boolean speaks = group.rank() == 0;
      try (var progress = Progress.of(ALLOCATING, 1, group.context().outbox(), speaks)) {
        progress.step(
            String.format(Locale.ROOT, "`%s`, %.1f GiB a rank", called, bytes / BYTES_PER_GIB));
        var memory = group.pool().take(call, resolved, bytes);
        progress.finished();
        return memory;
      }
    }

    private List<Long> shape() {
      if (shape == null) {
        throw new BraidException("shape is missing; say shape(rows, columns) before allocate()");
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
        // All ranks' parts are one view, so it is their sum that must be countable.
        var _ = Math.multiplyExact(bytes, (long) group.size());
        return bytes;
      } catch (ArithmeticException e) {
        throw new BraidException(
            "shape %s of %s on %d ranks must be less than 2^63 bytes; is it in elements?"
                .formatted(Tensor.text(shape()), dtype(), group.size()),
            e);
      }
    }

    private static void once(String what, @Nullable Object before) {
      if (before != null) {
        throw new BraidException("%s was said already: %s; say it once".formatted(what, before));
      }
    }
  }

  private static List<Long> boxed(long... sizes) {
    return LongStream.of(sizes).boxed().toList();
  }

  /// This rank's part.
  public Tensor local() {
    checkOpen();
    return on(group.rank());
  }

  /// That rank's part, as it is in this rank's reach.
  public Tensor on(int rank) {
    checkOpen();
    if (rank < 0 || rank >= group.size()) {
      throw new BraidException(
          "`%s` is on ranks 0..%d of group `%s` but was asked for on %d"
              .formatted(name, group.size() - 1, group.name(), rank));
    }
    return view(shape, memory.on(rank));
  }

  /// All parts as one: the shape with the ranks as its first size. Not every kind of memory has
  /// them side by side; where it has not, this says so.
  public Tensor all() {
    checkOpen();
    var whole = new ArrayList<Long>();
    whole.add((long) group.size());
    whole.addAll(shape);
    if (memory.whole().isPresent()) {
      return view(whole, memory.all());
    }
    var pieces = new ConcatenatedAccess(access(), memory.parts());
    return new Tensor(
        whole, dtype, List.of(pieces.whole()), memory.parts().getFirst(), this::ended, pieces);
  }

  /// A view whose writes go to every rank's part; reads are from mine. The host backend writes to
  /// one after the other.
  public Tensor multicast() {
    checkOpen();
    // Mine comes first, since the first is what is read.
    return new Tensor(
        shape,
        dtype,
        IntStream.range(0, group.size())
            .mapToObj(i -> memory.on((group.rank() + i) % group.size()))
            .toList(),
        this::ended,
        access());
  }

  private Tensor view(List<Long> sizes, MemorySegment place) {
    return new Tensor(sizes, dtype, List.of(place), this::ended, access());
  }

  private Access access() {
    return group.context().backend().access();
  }

  private String ended() {
    return group.isClosed()
        ? "symmetric tensor `%s` was closed with its group `%s`; ask for the group and allocate it again"
            .formatted(name, group.name())
        : "symmetric tensor `%s` is closed; allocate it again".formatted(name);
  }

  public String name() {
    return name;
  }

  ProcessGroup group() {
    return group;
  }

  /// By which ranks tell it from the group's others.
  String identity() {
    return identity;
  }

  SymmetricMemory memory() {
    checkOpen();
    return memory;
  }

  /// The tensor as collectives take it; always the same.
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

  /// What it is made of; never [MemoryKind#AUTO].
  public MemoryKind kind() {
    return kind;
  }

  synchronized void checkOpen() {
    if (closed) {
      throw new BraidException(ended());
    }
  }

  /// Gives its memory back; views of it end. No rank waits for another, and who still reads this
  /// rank's part goes on reading what is there: memory is used again when all ranks have closed it.
  /// Like allocating, closing is done in the same order on all ranks. Twice is harmless.
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
        .formatted(name, Tensor.text(shape), dtype, kind, group);
  }
}
