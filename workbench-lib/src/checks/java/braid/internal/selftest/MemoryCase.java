package braid.internal.selftest;

import braid.Capabilities;
import braid.SymmetricTensor;
import braid.TensorView;
import braid.internal.context.RankContext;
import braid.internal.rank.Closing;
import braid.model.BraidException;
import braid.model.DType;
import braid.model.MemoryKind;
import braid.natives.kernels.Integers;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// Symmetric tensors smaller than the allocation unit of a memory kind (2 MiB on a GPU): every view
/// holds exactly the tensor's numbers, without gaps between ranks' parts, and a write to one tensor
/// changes no other. Tensors of every other kind that the ranks have are open beside them.
public record MemoryCase(DType dtype, int rows, int columns) implements TabledCase {
  private static final int SEED = 1000;

  /// Number in the tensors of other kinds.
  private static final float OTHER_KIND = 3;

  private static final String SEPARATOR = ",";

  /// Returns cases in every type, from one number to more than a page.
  public static List<MemoryCase> table() {
    return Arrays.stream(DType.values())
        .flatMap(
            dtype ->
                Stream.of(
                    new MemoryCase(dtype, 1, 1),
                    new MemoryCase(dtype, 3, 1),
                    new MemoryCase(dtype, 7, 5),
                    new MemoryCase(dtype, 33, 127),
                    new MemoryCase(dtype, 1, 8191)))
        .toList();
  }

  /// Returns one case per type.
  public static List<MemoryCase> quick() {
    return table().stream().filter(each -> each.rows == 7).toList();
  }

  @Override
  public boolean readsOthers() {
    return true;
  }

  @Override
  public String text() {
    return "symmetric tensor,%s,%d,%d".formatted(dtype.name(), rows, columns);
  }

  @Override
  public String what() {
    return "symmetric tensor";
  }

  @Override
  public Opened open(CaseContext context, Findings findings) {
    return new Opened() {
      @Override
      public void round(int round, Findings found) {
        check(context, found);
      }

      @Override
      public void close() {}
    };
  }

  private void check(CaseContext context, Findings findings) {
    var group = context.group();
    int ranks = group.size();
    int elements = rows * columns;
    try (var before = allocate(context);
        var x = allocate(context);
        var after = allocate(context);
        var others = others(context)) {
      same(context, findings, "a new tensor", new float[elements], x.local());
      before.local().fill(1);
      after.local().fill(2);
      others.tensors().forEach(other -> other.local().fill(OTHER_KIND));
      x.local().fillIntegers(SEED + group.rank());
      group.barrier();
      var all = new float[ranks * elements];
      for (int rank = 0; rank < ranks; rank++) {
        var part = Integers.first(SEED + rank, elements);
        System.arraycopy(part, 0, all, rank * elements, elements);
        same(context, findings, "on(" + rank + ")", part, x.on(rank));
      }
      same(context, findings, "all()", all, x.all());
      for (int rank = 0; rank < ranks; rank++) {
        same(
            context,
            findings,
            "all(), rows of rank " + rank,
            Arrays.copyOfRange(all, rank * elements, (rank + 1) * elements),
            x.all().rows(rank, 1));
      }
      same(
          context,
          findings,
          "the last row",
          Arrays.copyOfRange(
              all, (group.rank() + 1) * elements - columns, (group.rank() + 1) * elements),
          x.local().rows(rows - 1, 1));
      group.barrier();
      if (group.rank() == ranks - 1) {
        x.multicast().fillIntegers(SEED + ranks);
      }
      group.barrier();
      context.alteration().accept(x.local());
      same(context, findings, "a multicast", Integers.first(SEED + ranks, elements), x.local());
      same(context, findings, "the tensor before", filled(elements, 1), before.local());
      same(context, findings, "the tensor after", filled(elements, 2), after.local());
      for (var other : others.tensors()) {
        for (int rank = 0; rank < ranks; rank++) {
          same(
              context,
              findings,
              "on(%d) of a tensor in memory %s".formatted(rank, other.kind()),
              filled(elements, OTHER_KIND),
              other.on(rank));
        }
      }
      group.barrier();
    }
  }

  /// Tensors in several kinds of memory.
  private record Others(List<SymmetricTensor> tensors) implements AutoCloseable {
    @Override
    public void close() {
      Closing.all(new ArrayDeque<AutoCloseable>(tensors)::poll);
    }
  }

  /// Allocates a tensor in each other kind of memory that all ranks have.
  private Others others(CaseContext context) {
    var missing =
        context.group().gather(missingKinds()).stream()
            .flatMap(names -> Stream.of(names.split(SEPARATOR, -1)))
            .collect(Collectors.toSet());
    var tensors = new ArrayList<SymmetricTensor>();
    try {
      for (var kind : Capabilities.kinds()) {
        if (kind != context.kind() && !missing.contains(kind.toString())) {
          tensors.add(allocate(context, kind));
        }
      }
    } catch (RuntimeException | Error e) {
      Closing.after(e, new Others(tensors));
      throw e;
    }
    return new Others(tensors);
  }

  private static String missingKinds() {
    var backend = RankContext.current().backend();
    return Capabilities.kinds().stream()
        .filter(
            kind -> {
              try {
                return backend.resolve(kind) != kind;
              } catch (BraidException _) {
                return true; // The self-test has a row with the reason.
              }
            })
        .map(MemoryKind::toString)
        .collect(Collectors.joining(SEPARATOR));
  }

  private void same(
      CaseContext context, Findings findings, String view, float[] wanted, TensorView got) {
    findings.same(
        "%s %s on rank %s: %s".formatted(dtype, got.shape(), context.group().place(), view),
        wanted,
        got.toFloats());
  }

  private static float[] filled(int elements, float value) {
    var values = new float[elements];
    Arrays.fill(values, value);
    return values;
  }

  private SymmetricTensor allocate(CaseContext context) {
    return allocate(context, context.kind());
  }

  private SymmetricTensor allocate(CaseContext context, MemoryKind kind) {
    return SymmetricTensor.on(context.group())
        .shape(rows, columns)
        .dtype(dtype)
        .memory(kind)
        .allocate();
  }
}
