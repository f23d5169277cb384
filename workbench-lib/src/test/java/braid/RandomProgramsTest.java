package braid;

import braid.internal.selftest.Program;
import braid.internal.selftest.Programs;
import braid.internal.selftest.Trial;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Programs that a seed decides, on 1 to 5 ranks, held to plain loops. A failure gives the seed of
/// its program, which runs alone with `-Dbraid.seed=SEED -Dbraid.programs=1`.
@Timeout(180)
class RandomProgramsTest {
  private static final int PROGRAMS_PER_RANK_COUNT = Integer.getInteger("braid.programs", 100);
  private static final int ON_PROCESSES = 20;

  private static long seed(int ranks) {
    return Long.getLong("braid.seed", ThreadLocalRandom.current().nextInt(1_000_000_000));
  }

  private static Programs programs(int ranks) {
    return new Programs(
        ranks, Capabilities.host(), Capabilities.hostCollectives(), Arrays.asList(DType.values()));
  }

  private static List<Program> drawn(int ranks, long seed, int count) {
    var programs = programs(ranks);
    return IntStream.range(0, count).mapToObj(i -> programs.draw(seed + i)).toList();
  }

  private static void hold(ProcessGroup world, long seed, int count) {
    for (int i = 0; i < count; i++) {
      var program = programs(world.size()).draw(seed + i);
      try {
        program.check(Trial.of(world, MemoryKind.AUTO));
      } catch (RuntimeException | Error e) {
        throw new AssertionError(
            "-Dbraid.seed=%d -Dbraid.programs=1, rank %s: %s%n%s"
                .formatted(seed + i, world.place(), e.getMessage(), program.text()),
            e);
      }
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4, 5})
  void onRanksThatAreThreads(int ranks) {
    long seed = seed(ranks);
    LocalRanks.run(ranks, world -> hold(world, seed, PROGRAMS_PER_RANK_COUNT));
    System.out.printf(
        "%d random programs on %d ranks, seed %d%n", PROGRAMS_PER_RANK_COUNT, ranks, seed);
  }
}
