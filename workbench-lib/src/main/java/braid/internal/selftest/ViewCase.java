package braid.internal.selftest;

import braid.LocalTensor;
import braid.SymmetricTensor;
import braid.Tensor;
import braid.model.DType;
import braid.natives.kernels.Integers;
import java.util.Arrays;
import java.util.SplittableRandom;

/// Reads and writes through views of a symmetric tensor: rows of rows, other ranks' parts, all
/// parts as one, multicast. Every rank keeps what all parts must hold in plain arrays.
///
/// @param rows of one rank's part
/// @param seed decides which views are used, the same on all ranks
public record ViewCase(DType dtype, int rows, int columns, long seed) implements Case {
  private static final int WRITES_PER_ROUND = 4;

  @Override
  public String text() {
    return "VIEWS,%s,%d,%d,%d".formatted(dtype.name(), rows, columns, seed);
  }

  @Override
  public Opened open(CaseGroup trial, Findings findings) {
    var group = trial.group();
    var tensor =
        SymmetricTensor.on(group)
            .shape(rows, columns)
            .dtype(dtype)
            .memory(trial.kind())
            .name("views")
            .allocate();
    return new Running(this, trial, tensor);
  }

  private static final class Running implements Opened {
    private final ViewCase of;
    private final CaseGroup trial;
    private final SymmetricTensor tensor;

    /// By rank. Pooled memory must be zero again, however it was used before.
    private final float[][] parts;

    Running(ViewCase of, CaseGroup trial, SymmetricTensor tensor) {
      this.of = of;
      this.trial = trial;
      this.tensor = tensor;
      this.parts = new float[trial.group().size()][of.rows * of.columns];
    }

    @Override
    public void round(int round, Findings findings) {
      var random = new SplittableRandom(of.seed + round);
      for (int write = 0; write < WRITES_PER_ROUND; write++) {
        compare("round %d, write %d".formatted(round, write), random, findings);
        trial.group().barrier();
        write(random);
        trial.group().barrier();
      }
      compare("round %d, at the end".formatted(round), random, findings);
      trial.group().barrier();
    }

    private void write(SplittableRandom random) {
      int shift = random.nextInt(size());
      var some = slice(random);
      long seed = random.nextInt(1 << 20);
      switch (random.nextInt(6)) {
        case 0 -> fillParts(seed);
        case 1 -> writeToPeers(shift, some, random.nextInt(some.count()), seed);
        case 2 -> writeThroughAll(shift, some, seed);
        case 3 -> multicast(shift, some, seed);
        case 4 -> setOne(shift, some.start(), random.nextInt(of.columns), seed);
        default -> fetchFromPeers(shift, some);
      }
    }

    private int size() {
      return trial.group().size();
    }

    private int me() {
      return trial.group().rank();
    }

    private int to(int rank, int shift) {
      return (rank + shift) % size();
    }

    private record Some(int start, int count) {}

    private Some slice(SplittableRandom random) {
      int start = random.nextInt(of.rows);
      return new Some(start, 1 + random.nextInt(of.rows - start));
    }

    private void fillParts(long seed) {
      tensor.local().fillIntegers(seed + me());
      for (int rank = 0; rank < size(); rank++) {
        put(rank, 0, Integers.first(seed + rank, of.rows * of.columns));
      }
    }

    /// Every rank writes rows of another, through rows of rows.
    private void writeToPeers(int shift, Some some, int skipped, long seed) {
      int count = some.count() - skipped;
      tensor
          .on(to(me(), shift))
          .rows(some.start(), some.count())
          .rows(skipped, count)
          .copyFrom(Integers.first(seed + me(), count * of.columns));
      for (int rank = 0; rank < size(); rank++) {
        put(
            to(rank, shift),
            some.start() + skipped,
            Integers.first(seed + rank, count * of.columns));
      }
    }

    /// Every rank overwrites another's part, found in the view of all.
    private void writeThroughAll(int shift, Some some, long seed) {
      float mine = value(seed + me());
      tensor.all().rows(to(me(), shift), 1).fill(mine);
      tensor.all().set(-mine, to(me(), shift), some.start(), 0);
      for (int rank = 0; rank < size(); rank++) {
        float value = value(seed + rank);
        int other = to(rank, shift);
        Arrays.fill(parts[other], value);
        parts[other][some.start() * of.columns] = -value;
      }
    }

    private void multicast(int root, Some some, long seed) {
      if (me() == root) {
        tensor.multicast().rows(some.start(), some.count()).fill(value(seed));
      }
      for (var part : parts) {
        Arrays.fill(
            part,
            some.start() * of.columns,
            (some.start() + some.count()) * of.columns,
            value(seed));
      }
    }

    private void setOne(int shift, int row, int column, long seed) {
      tensor.on(to(me(), shift)).set(value(seed + me()), row, column);
      for (int rank = 0; rank < size(); rank++) {
        parts[to(rank, shift)][row * of.columns + column] = value(seed + rank);
      }
    }

    /// Every rank takes another's rows, by way of a tensor of its own.
    private void fetchFromPeers(int shift, Some some) {
      try (var mine =
          LocalTensor.on(trial.group())
              .shape(some.count(), of.columns)
              .dtype(of.dtype)
              .allocate()) {
        mine.view().copyFrom(tensor.on(to(me(), shift)).rows(some.start(), some.count()));
        trial.group().barrier();
        tensor.local().rows(some.start(), some.count()).copyFrom(mine.view());
      }
      var before = new float[size()][];
      for (int rank = 0; rank < size(); rank++) {
        before[rank] = part(rank, some);
      }
      for (int rank = 0; rank < size(); rank++) {
        put(rank, some.start(), before[to(rank, shift)]);
      }
    }

    private void put(int rank, int row, float[] values) {
      System.arraycopy(values, 0, parts[rank], row * of.columns, values.length);
    }

    private float[] part(int rank, Some some) {
      return Arrays.copyOfRange(
          parts[rank], some.start() * of.columns, (some.start() + some.count()) * of.columns);
    }

    private static float value(long seed) {
      return 1 + Math.floorMod(seed, 3);
    }

    private void compare(String when, SplittableRandom random, Findings findings) {
      int other = random.nextInt(size());
      var some = slice(random);
      int column = random.nextInt(of.columns);
      var as = "%s on rank %s, %s: ".formatted(of.text(), trial.group().place(), when);
      trial.handled().accept(tensor.local());
      same(as + "my part", parts[me()], tensor.local(), findings);
      same(
          as + "rows %d..%d of rank %d".formatted(some.start(), some.start() + some.count(), other),
          part(other, some),
          tensor.on(other).rows(some.start(), some.count()),
          findings);
      findings.same(
          as + "number %d, %d of rank %d".formatted(some.start(), column, other),
          new float[] {parts[other][some.start() * of.columns + column]},
          new float[] {tensor.all().get(other, some.start(), column)});
      var all = new float[size() * of.rows * of.columns];
      for (int rank = 0; rank < size(); rank++) {
        System.arraycopy(parts[rank], 0, all, rank * of.rows * of.columns, parts[rank].length);
      }
      same(as + "all parts", all, tensor.all(), findings);
    }

    private static void same(String of, float[] wanted, Tensor got, Findings findings) {
      findings.same(of, wanted, got.toFloats());
    }

    @Override
    public void close() {
      tensor.close();
    }
  }
}
