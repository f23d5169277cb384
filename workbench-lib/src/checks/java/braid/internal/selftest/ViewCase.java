package braid.internal.selftest;

import braid.LocalTensor;
import braid.SymmetricTensor;
import braid.TensorView;
import braid.model.DType;
import braid.natives.kernels.Integers;
import java.util.Arrays;
import java.util.SplittableRandom;

/// Reads and writes through views of a symmetric tensor: rows of rows, other ranks' parts, all
/// parts as one, multicast. Every rank keeps the expected numbers of all parts in plain arrays.
///
/// @param rows rows of one rank's part
/// @param seed seed that determines the views, the same on all ranks
public record ViewCase(DType dtype, int rows, int columns, long seed) implements Case {
  private static final int WRITES_PER_ROUND = 4;

  @Override
  public boolean readsOthers() {
    return true;
  }

  @Override
  public String text() {
    return "VIEWS,%s,%d,%d,%d".formatted(dtype.name(), rows, columns, seed);
  }

  @Override
  public Opened open(CaseContext context, Findings findings) {
    var group = context.group();
    var tensor =
        SymmetricTensor.on(group)
            .shape(rows, columns)
            .dtype(dtype)
            .memory(context.kind())
            .name("views")
            .allocate();
    return new Running(this, context, tensor);
  }

  private static final class Running implements Opened {
    private final ViewCase tested;
    private final CaseContext context;
    private final SymmetricTensor tensor;

    /// Expected numbers by rank. Pooled memory must be zero again after any earlier use.
    private final float[][] parts;

    Running(ViewCase tested, CaseContext context, SymmetricTensor tensor) {
      this.tested = tested;
      this.context = context;
      this.tensor = tensor;
      this.parts = new float[context.group().size()][tested.rows * tested.columns];
    }

    @Override
    public void round(int round, Findings findings) {
      var random = new SplittableRandom(tested.seed + round);
      for (int write = 0; write < WRITES_PER_ROUND; write++) {
        compare("round %d, write %d".formatted(round, write), random, findings);
        context.group().barrier();
        write(random);
        context.group().barrier();
      }
      compare("round %d, at the end".formatted(round), random, findings);
      context.group().barrier();
    }

    private void write(SplittableRandom random) {
      int shift = random.nextInt(size());
      var range = slice(random);
      long seed = random.nextInt(1 << 20);
      switch (random.nextInt(6)) {
        case 0 -> fillParts(seed);
        case 1 -> writeToPeers(shift, range, random.nextInt(range.count()), seed);
        case 2 -> writeThroughAll(shift, range, seed);
        case 3 -> multicast(shift, range, seed);
        case 4 -> setOne(shift, range.start(), random.nextInt(tested.columns), seed);
        default -> fetchFromPeers(shift, range);
      }
    }

    private int size() {
      return context.group().size();
    }

    private int me() {
      return context.group().rank();
    }

    private int to(int rank, int shift) {
      return (rank + shift) % size();
    }

    private record RowRange(int start, int count) {}

    private RowRange slice(SplittableRandom random) {
      int start = random.nextInt(tested.rows);
      return new RowRange(start, 1 + random.nextInt(tested.rows - start));
    }

    private void fillParts(long seed) {
      tensor.local().fillIntegers(seed + me());
      for (int rank = 0; rank < size(); rank++) {
        put(rank, 0, Integers.first(seed + rank, tested.rows * tested.columns));
      }
    }

    /// Writes rows of another rank, on every rank, through rows of rows.
    private void writeToPeers(int shift, RowRange range, int skipped, long seed) {
      int count = range.count() - skipped;
      tensor
          .on(to(me(), shift))
          .rows(range.start(), range.count())
          .rows(skipped, count)
          .copyFrom(Integers.first(seed + me(), count * tested.columns));
      for (int rank = 0; rank < size(); rank++) {
        put(
            to(rank, shift),
            range.start() + skipped,
            Integers.first(seed + rank, count * tested.columns));
      }
    }

    /// Overwrites another rank's part, on every rank, through the view of all parts.
    private void writeThroughAll(int shift, RowRange range, long seed) {
      float mine = value(seed + me());
      tensor.all().rows(to(me(), shift), 1).fill(mine);
      tensor.all().set(-mine, to(me(), shift), range.start(), 0);
      for (int rank = 0; rank < size(); rank++) {
        float value = value(seed + rank);
        int other = to(rank, shift);
        Arrays.fill(parts[other], value);
        parts[other][range.start() * tested.columns] = -value;
      }
    }

    private void multicast(int root, RowRange range, long seed) {
      if (me() == root) {
        tensor.multicast().rows(range.start(), range.count()).fill(value(seed));
      }
      for (var part : parts) {
        Arrays.fill(
            part,
            range.start() * tested.columns,
            (range.start() + range.count()) * tested.columns,
            value(seed));
      }
    }

    private void setOne(int shift, int row, int column, long seed) {
      tensor.on(to(me(), shift)).set(value(seed + me()), row, column);
      for (int rank = 0; rank < size(); rank++) {
        parts[to(rank, shift)][row * tested.columns + column] = value(seed + rank);
      }
    }

    /// Copies rows of another rank, on every rank, by way of a rank-local tensor.
    private void fetchFromPeers(int shift, RowRange range) {
      try (var mine =
          LocalTensor.on(context.group())
              .shape(range.count(), tested.columns)
              .dtype(tested.dtype)
              .allocate()) {
        mine.view().copyFrom(tensor.on(to(me(), shift)).rows(range.start(), range.count()));
        context.group().barrier();
        tensor.local().rows(range.start(), range.count()).copyFrom(mine.view());
      }
      var before = new float[size()][];
      for (int rank = 0; rank < size(); rank++) {
        before[rank] = part(rank, range);
      }
      for (int rank = 0; rank < size(); rank++) {
        put(rank, range.start(), before[to(rank, shift)]);
      }
    }

    private void put(int rank, int row, float[] values) {
      System.arraycopy(values, 0, parts[rank], row * tested.columns, values.length);
    }

    private float[] part(int rank, RowRange range) {
      return Arrays.copyOfRange(
          parts[rank],
          range.start() * tested.columns,
          (range.start() + range.count()) * tested.columns);
    }

    private static float value(long seed) {
      return 1 + Math.floorMod(seed, 3);
    }

    private void compare(String when, SplittableRandom random, Findings findings) {
      int other = random.nextInt(size());
      var range = slice(random);
      int column = random.nextInt(tested.columns);
      var name = "%s on rank %s, %s: ".formatted(tested.text(), context.group().place(), when);
      context.alteration().accept(tensor.local());
      same(name + "my part", parts[me()], tensor.local(), findings);
      same(
          name
              + "rows %d..%d of rank %d"
                  .formatted(range.start(), range.start() + range.count(), other),
          part(other, range),
          tensor.on(other).rows(range.start(), range.count()),
          findings);
      findings.same(
          name + "number %d, %d of rank %d".formatted(range.start(), column, other),
          new float[] {parts[other][range.start() * tested.columns + column]},
          new float[] {tensor.all().get(other, range.start(), column)});
      var all = new float[size() * tested.rows * tested.columns];
      for (int rank = 0; rank < size(); rank++) {
        System.arraycopy(
            parts[rank], 0, all, rank * tested.rows * tested.columns, parts[rank].length);
      }
      same(name + "all parts", all, tensor.all(), findings);
    }

    private static void same(String subject, float[] wanted, TensorView got, Findings findings) {
      findings.same(subject, wanted, got.toFloats());
    }

    @Override
    public void close() {
      tensor.close();
    }
  }
}
