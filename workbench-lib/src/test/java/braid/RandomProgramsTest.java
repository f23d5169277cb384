package braid;

import static org.assertj.core.api.Assertions.assertThat;

import braid.internal.selftest.CaseContext;
import braid.internal.selftest.CollectiveCase;
import braid.internal.selftest.PipelineCase;
import braid.internal.selftest.Program;
import braid.internal.selftest.Programs;
import braid.internal.selftest.RefusedCase;
import braid.internal.selftest.Sweep;
import braid.internal.selftest.ViewCase;
import braid.model.ChunkOrder;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.MemoryKind;
import braid.model.Priority;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Programs drawn from a seed, on 1 to 5 ranks, compared with plain loops. A failure prints the
/// seed of its program, which runs alone with `-Dbraid.seed=SEED -Dbraid.programs=1`.
class RandomProgramsTest {
  private static final int PROGRAMS_PER_RANK_COUNT =
      Integer.getInteger("braid.programs", Sweep.times(25, 100));
  private static final int ON_PROCESSES = Sweep.times(5, 20);

  private static long seed() {
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
        program.check(CaseContext.of(world, MemoryKind.AUTO));
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
    long seed = seed();
    LocalRanks.run(ranks, world -> hold(world, seed, PROGRAMS_PER_RANK_COUNT));
    System.out.printf(
        "%d random programs on %d ranks, seed %d%n", PROGRAMS_PER_RANK_COUNT, ranks, seed);
  }

  /// Fewer programs: processes are slower, and run the same code.
  @ParameterizedTest
  @ValueSource(ints = {2, 3})
  void onRanksThatAreProcesses(int ranks) throws Exception {
    var seed = Long.toString(seed());
    var count = Integer.toString(ON_PROCESSES);
    var more = Map.of("BRAID_LINK", "unlimited", "BRAID_TIMEOUT_SECONDS", "60");
    for (var ended : ProcessRanks.run(ranks, more, OnRank.class, seed, count)) {
      assertThat(ended.exitCode()).as("rank %d: %s", ended.rank(), ended.output()).isZero();
      assertThat(ended.output()).endsWith("ran " + ON_PROCESSES + " programs\n");
    }
  }

  /// Runs on each process.
  static final class OnRank {
    private OnRank() {}

    public static void main(String[] seedAndCount) {
      try (var world = ProcessGroup.world()) {
        hold(world, Long.parseLong(seedAndCount[0]), Integer.parseInt(seedAndCount[1]));
        System.out.println("ran " + seedAndCount[1] + " programs");
      }
    }
  }

  @Test
  void aSeedDecidesAllOfAProgram() {
    assertThat(drawn(3, 42, 20)).isEqualTo(drawn(3, 42, 20));
    assertThat(drawn(3, 42, 20)).isNotEqualTo(drawn(3, 62, 20));
    // The seed that a failure prints draws the failing program alone.
    assertThat(drawn(3, 42 + 7, 1)).containsExactly(drawn(3, 42, 20).get(7));
  }

  /// Every method, route, type, option and mistake occurs, in every group of ranks.
  @Test
  void programsAreOfEverything() {
    var parts = drawn(4, 1, 500).stream().flatMap(each -> each.parts().stream()).toList();
    var pipelines =
        parts.stream().map(Program.Part::tested).flatMap(only(PipelineCase.class)).toList();
    var supported = Capabilities.host().stream().filter(Capabilities.Row::supported).toList();
    assertThat(pipelines)
        .extracting(each -> each.what() + each.method() + each.over())
        .containsAll(
            supported.stream()
                .map(row -> "" + row.pattern() + row.method() + row.transport())
                .toList());
    assertThat(pipelines).extracting(PipelineCase::dtype).contains(DType.values());
    assertThat(pipelines)
        .flatExtracting(each -> each.spec().features())
        .contains(GemmSpec.Feature.values());
    assertThat(pipelines).extracting(each -> each.tuning().order()).contains(ChunkOrder.values());
    assertThat(pipelines).extracting(each -> each.tuning().priority()).contains(Priority.values());
    assertThat(pipelines).anyMatch(each -> each.tuning().replayed());
    assertThat(pipelines).anyMatch(each -> each.tuning().symmetricOutput());
    assertThat(pipelines).anyMatch(each -> each.tuning().boundaries().size() > 2);
    assertThat(pipelines).anyMatch(each -> each.tuning().streams() > 1);
    assertThat(pipelines).anyMatch(each -> each.factor() > 1);
    assertThat(pipelines).extracting(each -> each.spec().m()).contains(1, 7, 13, 97);
    var collectives =
        parts.stream().map(Program.Part::tested).flatMap(only(CollectiveCase.class)).toList();
    assertThat(collectives)
        .extracting(CollectiveCase::operation)
        .contains(CollectiveCase.Operation.values());
    assertThat(collectives)
        .extracting(CollectiveCase::route)
        .contains(
            CollectiveCase.Route.COPY_ENGINE,
            CollectiveCase.Route.ONE_WORKER,
            CollectiveCase.Route.TWO_WORKERS,
            CollectiveCase.Route.PUSHING);
    assertThat(parts.stream().map(Program.Part::tested).flatMap(only(ViewCase.class))).isNotEmpty();
    assertThat(parts.stream().map(Program.Part::tested).flatMap(only(RefusedCase.class)))
        .extracting(RefusedCase::mistake)
        .containsAll(RefusedCase.possible());
    assertThat(parts.stream().collect(Collectors.groupingBy(Program.Part::ranks)))
        .as("groups of ranks")
        .hasSize(15);
  }

  private static <T> Function<Object, Stream<T>> only(Class<T> type) {
    return each -> type.isInstance(each) ? Stream.of(type.cast(each)) : Stream.empty();
  }
}
