package braid.natives.cudnn;

import braid.natives.cuda.Gpu;
import braid.natives.cuda.GpuStream;
import braid.natives.cudnn.PackedAttentionChecks.Packed;
import java.util.Optional;
import java.util.SplittableRandom;

/// Random attention of short sequences, alone and packed, computed by cuDNN and compared with plain
/// loops. cuDNN has kernels of its own for few queries, and some of them return wrong numbers
/// without an error; `Cudnn` asks only for what this sweep has found right.
public final class AttentionSweep {
  private static final int[] HEAD_SIZES = {8, 16, 24, 32, 48, 64, 80, 96, 128, 128, 192, 256};
  private static final int[] GROUPS = {1, 2, 3, 4, 6, 8};
  private static final int MOST_KV_HEADS = 3;
  private static final int MOST_SEQUENCES = 6;
  private static final int FEW_ROWS = 8;
  private static final int MOST_ROWS = 64;

  private final Cudnn cudnn;
  private final AttentionChecks alone;
  private final PackedAttentionChecks packed;

  AttentionSweep(Gpu gpu, Cudnn cudnn, GpuStream stream) {
    this.cudnn = cudnn;
    this.alone = new AttentionChecks(gpu, cudnn, stream);
    this.packed = new PackedAttentionChecks(cudnn, stream, new CheckedMemory(gpu, stream));
  }

  /// A problem and what was found in a direction.
  ///
  /// @param wrong first wrong number; empty if all are right or cuDNN is not asked
  record Case(Packed packed, String direction, boolean isAsked, Optional<String> wrong) {
    @Override
    public String toString() {
      return "%s %s%s".formatted(direction, packed, wrong.map(why -> ": " + why).orElse(""));
    }
  }

  /// Draws a problem and runs it in a direction, forward or backward.
  Case next(SplittableRandom random) {
    var drawn = draw(random);
    boolean backward = random.nextInt(3) == 0;
    boolean one = drawn.sizes().length == 1;
    var problem = one ? drawn.of() : drawn.all();
    var refused = backward ? cudnn.cannotBackward(problem, false) : cudnn.cannot(problem);
    var direction = backward ? "backward" : "forward";
    if (refused.isPresent()) {
      return new Case(drawn, direction, false, Optional.empty());
    }
    var wrong =
        !one
            ? packed.check(drawn, backward)
            : backward ? alone.backward(problem, false) : alone.forward(problem);
    return new Case(drawn, direction, true, wrong);
  }

  private static Packed draw(SplittableRandom random) {
    int count = random.nextInt(3) == 0 ? 1 : 2 + random.nextInt(MOST_SEQUENCES - 1);
    boolean causal = random.nextInt(4) > 0;
    boolean sameKeys = (causal && count > 1) || random.nextInt(3) > 0;
    int most = random.nextBoolean() ? FEW_ROWS : MOST_ROWS;
    most = random.nextInt(6) == 0 ? 1 : most;
    var sizes = new int[count][];
    for (int i = 0; i < count; i++) {
      int rows = 1 + random.nextInt(most);
      int keys = sameKeys ? rows : 1 + random.nextInt(MOST_ROWS);
      int gap = random.nextInt(4) == 0 ? random.nextInt(4) : 0;
      sizes[i] = new int[] {rows, keys, gap, gap};
    }
    int kvHeads = 1 + random.nextInt(MOST_KV_HEADS);
    int rows = sizes[0][0];
    int keys = sizes[0][1];
    int window = causal && random.nextInt(4) == 0 ? 1 + random.nextInt(keys) : 0;
    int shift = count == 1 && causal ? random.nextInt(keys) : 0;
    var problem =
        AttentionChecks.problem(
            random.nextBoolean() ? AttentionProblem.Type.BF16 : AttentionProblem.Type.FP16,
            kvHeads * GROUPS[random.nextInt(GROUPS.length)],
            kvHeads,
            HEAD_SIZES[random.nextInt(HEAD_SIZES.length)],
            rows,
            keys,
            causal,
            shift,
            window);
    return new Packed(problem, sizes);
  }

  /// Runs cases on device 0 and prints each of them. Exits with 1 if one is wrong.
  ///
  /// @param args seconds, and the seed
  public static void main(String[] args) {
    long seconds = Long.parseLong(args[0]);
    var random = new SplittableRandom(Long.parseLong(args[1]));
    long begun = System.nanoTime();
    boolean right = true;
    try (var gpu = Gpu.open(0, "sweep");
        var cudnn = Cudnn.open(gpu);
        var stream = gpu.stream(gpu.leastPriority())) {
      System.out.printf("%s, cuDNN %s%n", gpu.where(), cudnn.version());
      var sweep = new AttentionSweep(gpu, cudnn, stream);
      while (System.nanoTime() - begun < seconds * 1_000_000_000L) {
        var found = sweep.next(random);
        right &= found.wrong().isEmpty();
        System.out.printf(
            "%s %s%n",
            !found.isAsked() ? "not-asked" : found.wrong().isEmpty() ? "right" : "WRONG", found);
      }
    }
    if (!right) {
      System.exit(1);
    }
  }
}
