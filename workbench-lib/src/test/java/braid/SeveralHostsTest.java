package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.internal.selftest.AttentionCase;
import braid.internal.selftest.CaseContext;
import braid.internal.selftest.CollectiveCase;
import braid.internal.selftest.PipelineCase;
import braid.internal.selftest.PipelineCases;
import braid.internal.selftest.Programs;
import braid.internal.selftest.Sweep;
import braid.model.AttentionSpec;
import braid.model.ContextParallel;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Pattern;
import braid.model.Host;
import braid.model.MemoryKind;
import braid.model.Method;
import braid.model.Overlap;
import braid.model.Tuning;
import braid.schedule.Schedule;
import braid.selftest.SelfTest;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Ranks of several hosts: threads whose hosts are named, so that UCX carries everything between
/// them that they do not share.
///
/// Isolated, since OpenBLAS has one number of threads per process, on which bits depend.
@Isolated
@Tag("F8")
class SeveralHostsTest {
  /// Programs per division of ranks into hosts.
  private static final int PROGRAMS = Sweep.times(4, 25);

  private static final Map<String, String> LIMITS =
      Map.of("BRAID_LINK", "unlimited", "BRAID_TIMEOUT_SECONDS", "60");

  private static final List<String> TWO = List.of("a", "a", "b", "b");
  private static final List<String> MIXED = List.of("b", "a", "b", "a");

  /// Hosts of 1 to 5 ranks, as letters.
  private static List<String> hosts(String letters) {
    return List.of(letters.split(""));
  }

  @BeforeAll
  static void needsUcx() {
    Ucx.need();
  }

  @Test
  void tensorsOfOtherHostsAreReadAndWritten() {
    LocalRanks.run(
        MIXED,
        world -> {
          try (var x = SymmetricTensor.on(world).shape(5, 3).dtype(DType.FP32).allocate()) {
            x.local().fillIntegers(world.rank());
            world.barrier();
            for (int rank = 0; rank < world.size(); rank++) {
              var wanted = new float[15];
              try (var same = LocalTensor.on(world).shape(5, 3).dtype(DType.FP32).allocate()) {
                same.view().fillIntegers(rank);
                wanted = same.view().toFloats();
              }
              assertThat(x.on(rank).toFloats()).containsExactly(wanted);
              assertThat(x.on(rank).get(4, 2)).isEqualTo(wanted[14]);
            }
            world.barrier();
            x.on((world.rank() + 1) % world.size()).set(world.rank() + 10, 2, 1);
            world.barrier();
            assertThat(x.local().get(2, 1)).isEqualTo((world.rank() + 3) % 4 + 10);
            assertThat(x.all().toFloats()).hasSize(60);
            world.barrier();
          }
        });
  }

  @Test
  void aGroupListsItsHostsAndItsLocalRanks() {
    LocalRanks.run(
        MIXED,
        world -> {
          assertThat(world.hosts())
              .containsExactly(new Host("b", List.of(0, 2)), new Host("a", List.of(1, 3)));
          assertThat(world.local().members())
              .isEqualTo(world.rank() % 2 == 0 ? List.of(0, 2) : List.of(1, 3));
          assertThat(world.subset("some", 1, 2).hosts())
              .containsExactly(new Host("b", List.of(1)), new Host("a", List.of(0)));
        });
    LocalRanks.run(
        3,
        world -> {
          assertThat(world.hosts()).hasSize(1);
          assertThat(world.local().size()).isEqualTo(3);
        });
  }

  @ParameterizedTest
  @ValueSource(strings = {"aabb", "abab", "abbbb", "ab", "abc"})
  void everyPipelineIsRightOverSeveralHosts(String letters) {
    var hosts = hosts(letters);
    var cases = Sweep.oneOf(48, PipelineCases.table(Capabilities.host(), hosts.size()));
    LocalRanks.run(hosts, world -> cases.forEach(each -> Contract.hold(each, world)));
  }

  @Test
  void groupsAreTheRanksOfAHostByDefault() {
    var spec = GemmSpec.gemmReduceScatter(24, 16, 8);
    LocalRanks.run(
        TWO,
        world -> {
          try (var pipe = Pipeline.on(world).gemm(spec).overlap(Overlap.twoLevel()).build()) {
            assertThat(pipe.schedule()).isEqualTo(Schedule.of(spec, Overlap.twoLevel(2), 4));
            pipe.verify();
          }
        });
    LocalRanks.run(
        MIXED,
        world ->
            assertThatThrownBy(
                    () -> Pipeline.on(world).gemm(spec).overlap(Overlap.twoLevel()).build())
                .hasMessage(
                    "twoLevel() needs hosts with the same number of consecutive ranks, 2 or more,"
                        + " but group `world` has [b [0, 2], a [1, 3]]; try twoLevel(n) with groups"
                        + " of your own, or direct()"));
  }

  /// On one host every size of a group is tried if it is asked for, and none otherwise.
  @Test
  void aSearchTriesGroupsOfTheRanksOfAHost() {
    var spec = GemmSpec.allGatherGemm(24, 16, 8);
    LocalRanks.run(TWO, world -> assertThat(groupSizes(world, spec)).containsOnly(2));
    LocalRanks.run(MIXED, world -> assertThat(groupSizes(world, spec)).isEmpty());
    LocalRanks.run(
        8,
        world -> {
          assertThat(groupSizes(world, spec)).isEmpty();
          var asked = new Grid(world, null);
          asked.methods(List.of(Method.TWO_LEVEL));
          assertThat(groupSizes(asked.all(spec))).containsExactlyInAnyOrder(2, 4);
        });
  }

  private static Set<Integer> groupSizes(ProcessGroup world, GemmSpec spec) {
    var grid = new Grid(world, null);
    grid.whole();
    return groupSizes(grid.all(spec));
  }

  private static Set<Integer> groupSizes(List<Tuning> tunings) {
    return tunings.stream()
        .map(Overlap.class::cast)
        .filter(overlap -> overlap.method() == Method.TWO_LEVEL)
        .map(Overlap::groupRanks)
        .collect(Collectors.toSet());
  }

  @ParameterizedTest
  @ValueSource(strings = {"aabb", "abab", "aabbcc"})
  void twoLevelsAreRightOverSeveralHosts(String letters) {
    var hosts = hosts(letters);
    var rows =
        Capabilities.host().stream().filter(row -> row.method() == Method.TWO_LEVEL).toList();
    var cases = Sweep.oneOf(6, PipelineCases.table(rows, hosts.size()));
    LocalRanks.run(hosts, world -> cases.forEach(each -> Contract.hold(each, world)));
  }

  @Test
  void everyFeatureAndOptionIsRightOverSeveralHosts() {
    var cases = Sweep.oneOf(12, PipelineCases.featuresAndOptions(Capabilities.host(), 3));
    LocalRanks.run(hosts("aab"), world -> cases.forEach(each -> Contract.hold(each, world)));
  }

  @ParameterizedTest
  @ValueSource(strings = {"aabb", "abab", "abaac", "ab"})
  void everyCollectiveIsRightOverSeveralHosts(String letters) {
    var all = CollectiveCase.supported(CollectiveCase.table(), Capabilities.hostCollectives());
    var cases = Sweep.oneOf(8, all);
    LocalRanks.run(hosts(letters), world -> cases.forEach(each -> Contract.hold(each, world)));
  }

  @ParameterizedTest
  @ValueSource(strings = {"aabb", "abc"})
  void everyAttentionIsRightOverSeveralHosts(String letters) {
    var hosts = hosts(letters);
    var types = List.of(DType.FP32, DType.BF16);
    var cases = Sweep.oneOf(4, AttentionCase.quick(types, hosts.size(), System.nanoTime()));
    LocalRanks.run(hosts, world -> cases.forEach(each -> Contract.hold(each, world)));
  }

  @ParameterizedTest
  @ValueSource(strings = {"a", "ab", "aab", "abba", "abcab"})
  void randomProgramsAreRightOverSeveralHosts(String letters) {
    var hosts = hosts(letters);
    var programs =
        new Programs(
            hosts.size(),
            Capabilities.host(),
            Capabilities.hostCollectives(),
            Arrays.asList(DType.values()));
    long seed = Long.getLong("braid.seed", System.nanoTime());
    LocalRanks.run(
        hosts,
        world -> {
          for (int i = 0; i < PROGRAMS; i++) {
            var program = programs.draw(seed + i);
            try {
              program.check(CaseContext.of(world, MemoryKind.AUTO));
            } catch (RuntimeException | Error e) {
              throw new AssertionError(
                  "-Dbraid.seed=%d, rank %s: %s".formatted(seed + i, world.place(), program.text()),
                  e);
            }
          }
        });
  }

  @Test
  void theSelfTestFindsNoFaultOverSeveralHosts() {
    LocalRanks.run(
        hosts("aab"),
        world -> {
          var report = SelfTest.on(world).quick().dtypes(DType.BF16).run();
          assertThat(report.rows())
              .noneMatch(
                  row ->
                      row.outcome() == SelfTest.Outcome.WRONG
                          || row.outcome() == SelfTest.Outcome.NOT_RUN);
        });
  }

  /// Sums of real numbers depend on their order, so equal bits show equal pipelines.
  @Test
  void f8RealNumbersHaveTheSameBitsOnAnyHosts() {
    var alone = bits(List.of("a", "a", "a", "a"));
    assertThat(bits(List.of("a", "b", "c", "d"))).isEqualTo(alone);
    assertThat(bits(TWO)).isEqualTo(alone);
    assertThat(bits(MIXED)).isEqualTo(alone);
  }

  /// Returns the outputs of every method over every transport, by problem and rank.
  private static Map<String, List<Integer>> bits(List<String> hosts) {
    var all = new ConcurrentSkipListMap<String, List<Integer>>();
    LocalRanks.run(
        hosts,
        world -> {
          for (var row : Capabilities.host()) {
            if (row.supported() && !row.pattern().beside()) {
              var overlap =
                  PipelineCases.tuning(
                          row.method(), row.method() == Method.PIPELINED ? 3 : 1, hosts.size())
                      .over(row.transport());
              var spec = spec(row.pattern()).dtype(DType.FP32);
              try (var pipe = Pipeline.on(world).gemm(spec).overlap(overlap).build()) {
                fill(world, pipe.input(), pipe.weight());
                keep(world, pipe, all);
              }
            }
          }
          for (var method :
              List.of(
                  ContextParallel.ring(),
                  ContextParallel.allGatherKv(),
                  ContextParallel.ulysses(),
                  ContextParallel.unfused())) {
            var spec = AttentionSpec.of(53, 4, 8).causal().dtype(DType.FP32);
            try (var pipe = Pipeline.on(world).attention(spec).overlap(method).build()) {
              fill(world, pipe.query(), pipe.key(), pipe.value());
              keep(world, pipe, all);
            }
          }
        });
    return all;
  }

  private static GemmSpec spec(Pattern pattern) {
    return switch (pattern) {
      case ALL_GATHER_GEMM -> GemmSpec.allGatherGemm(37, 24, 19);
      case GEMM_REDUCE_SCATTER -> GemmSpec.gemmReduceScatter(37, 24, 19);
      default -> GemmSpec.gemmAllReduce(37, 24, 19);
    };
  }

  private static void fill(ProcessGroup world, TensorView... views) {
    var random = new SplittableRandom(world.rank());
    for (var view : views) {
      var values = new float[(int) view.elements()];
      for (int i = 0; i < values.length; i++) {
        values[i] = (float) random.nextDouble(-1, 1);
      }
      view.copyFrom(values);
    }
  }

  private static void keep(ProcessGroup world, Pipeline pipe, Map<String, List<Integer>> all) {
    pipe.run();
    pipe.run();
    var output = pipe.output().toFloats();
    var bits =
        IntStream.range(0, output.length)
            .mapToObj(i -> Float.floatToRawIntBits(output[i]))
            .toList();
    all.put("%s %s on rank %d".formatted(pipe.problem(), pipe.tuning(), world.rank()), bits);
  }

  @Test
  void ranksAsProcessesReachOtherHosts() throws Exception {
    var cases =
        Sweep.oneOf(60, PipelineCases.table(Capabilities.host(), 3)).stream()
            .map(PipelineCase::text)
            .toArray(String[]::new);
    var ranks =
        ProcessRanks.run(hosts("aba"), LIMITS, ProcessRanksPipelineTest.OnRank.class, cases);
    for (var ended : ranks) {
      assertThat(ended.exitCode()).as("rank %d: %s", ended.rank(), ended.output()).isZero();
      assertThat(ended.output()).endsWith("checked " + cases.length + " cases\n");
    }
  }

  @Test
  void aKilledRankOfAnotherHostIsNamed() throws Exception {
    var ranks = ProcessRanks.run(hosts("aab"), LIMITS, DiesAfterward.class);
    assertThat(ranks.get(2).exitCode()).isEqualTo(DiesAfterward.CODE);
    for (var survivor : ranks.subList(0, 2)) {
      assertThat(survivor.output())
          .containsAnyOf("rank 2 on host b does not answer", "rank 2 disconnected");
    }
  }

  @Test
  void withoutUcxEveryRankNamesTheLibrary() throws Exception {
    var variables = new HashMap<>(LIMITS);
    variables.put("BRAID_WITHOUT", "ucx");
    for (var ended :
        ProcessRanks.run(
            hosts("ab"),
            variables,
            ProcessRanksPipelineTest.OnRank.class,
            PipelineCases.table(Capabilities.host(), 2).getFirst().text())) {
      assertThat(ended.exitCode()).isNotZero();
      assertThat(ended.output())
          .contains("needs UCX between hosts a, b but rank 0 on a has none: UCX is hidden by");
    }
  }

  /// Runs a pipeline for ever; rank 2 ends in its middle.
  static final class DiesAfterward {
    static final int CODE = 137;

    private DiesAfterward() {}

    public static void main(String[] arguments) {
      try (var world = ProcessGroup.world();
          var pipe =
              Pipeline.on(world)
                  .gemm(GemmSpec.allGatherGemm(96, 64, 64))
                  .overlap(Overlap.direct())
                  .build()) {
        for (int i = 0; ; i++) {
          pipe.run();
          if (i == 3 && world.rank() == 2) {
            Runtime.getRuntime().halt(CODE);
          }
        }
      } catch (RuntimeException e) {
        System.out.println(e.getMessage());
        System.exit(1);
      }
    }
  }

  @Test
  void profilesAndStudiesNameTheHosts() {
    var spec = GemmSpec.allGatherGemm(96, 24, 16);
    LocalRanks.run(
        TWO,
        world -> {
          var host = Optional.of(world.rank() < 2 ? "a" : "b");
          try (var pipe = Pipeline.on(world).gemm(spec).overlap(Overlap.ring()).build()) {
            var profile = pipe.profile(2);
            assertThat(profile.host()).isEqualTo(host);
            assertThat(profile.configuration()).containsEntry("hosts", "2");
          }
          var study = Tuner.on(world).gemm(spec).splits(1).budget(Duration.ZERO).run();
          assertThat(study.problem()).containsEntry("hosts", "2");
          assertThat(study.setting()).contains("4 ranks, 2 hosts");
          var local = world.local();
          try (var pipe = Pipeline.on(local).gemm(spec).overlap(Overlap.ring()).build()) {
            var profile = pipe.profile(2);
            assertThat(profile.host()).isEmpty();
            assertThat(profile.configuration()).doesNotContainKey("hosts");
          }
        });
  }

  @Test
  void pooledMemoryIsCleanOverSeveralHosts() {
    LocalRanks.run(
        TWO,
        world -> {
          for (int i = 0; i < 5; i++) {
            try (var x = SymmetricTensor.on(world).shape(64).dtype(DType.FP32).allocate()) {
              assertThat(x.local().toFloats()).containsOnly(0);
              world.barrier();
              x.on((world.rank() + 2) % 4).fill(7);
              world.barrier();
              assertThat(x.local().toFloats()).containsOnly(7);
            }
          }
          assertThat(world.counters().get("buffers allocated")).isEqualTo(1);
        });
  }

  @Test
  void memoryOfAnotherHostIsNotReadDirectly() {
    LocalRanks.run(
        hosts("ab"),
        world -> {
          try (var x = SymmetricTensor.on(world).shape(4).dtype(DType.FP32).allocate()) {
            assertThat(x.local().segment().byteSize()).isEqualTo(16);
            assertThatThrownBy(() -> x.on(1 - world.rank()).segment())
                .hasMessageContaining("the host cannot read the memory");
          }
        });
  }
}
