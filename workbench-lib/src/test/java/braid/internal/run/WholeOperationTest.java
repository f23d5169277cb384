package braid.internal.run;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.internal.backend.Signals;
import braid.internal.backend.Stream;
import braid.internal.resource.SymmetricMemory;
import braid.internal.work.Operand;
import braid.internal.work.Work;
import braid.model.BraidException;
import braid.model.Collective;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.Overlap;
import braid.model.Scales;
import braid.model.Transport;
import braid.schedule.Buffer;
import braid.schedule.Lane;
import braid.schedule.Part;
import braid.schedule.Region;
import braid.schedule.Schedule;
import braid.schedule.Step;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// A library that multiplies too runs the multiplication and the collective as one call.
class WholeOperationTest {
  private static final Overlap BY_LIBRARY = Overlap.pipelined(1).over(Transport.CUBLASMP);

  private static final GemmSpec GATHERING = GemmSpec.allGatherGemm(24, 16, 8).dtype(DType.BF16);
  private static final GemmSpec SCATTERING =
      GemmSpec.gemmReduceScatter(24, 16, 8).dtype(DType.BF16);
  private static final GemmSpec REDUCING =
      GemmSpec.gemmAllReduce(24, 16, 8).dtype(DType.BF16).transposedWeight();

  /// Notes what one rank enqueues, in order.
  private static final class Log implements Executor.Resources, AutoCloseable {
    final List<String> lines = new ArrayList<>();
    final List<WholeOperation> operations = new ArrayList<>();
    private final Schedule schedule;
    private final Map<Lane, Stream> lanes = new HashMap<>();
    private final IdentityHashMap<Stream, String> names = new IdentityHashMap<>();
    private final Arena arena = Arena.ofConfined();

    Log(Schedule schedule) {
      this.schedule = schedule;
      for (var lane : schedule.lanes()) {
        var stream = stream(lane);
        lanes.put(lane, stream);
        names.put(stream, lane.name());
      }
    }

    private Stream stream(Lane lane) {
      return (Stream)
          Proxy.newProxyInstance(
              Stream.class.getClassLoader(),
              new Class<?>[] {Stream.class},
              (_, method, _) -> {
                lines.add(lane.name() + " " + method.getName());
                return null;
              });
    }

    @Override
    public MemorySegment memory(Buffer buffer, int rank) {
      return arena.allocate(buffer.bytes(rank));
    }

    @Override
    public Map<Lane, Stream> lanes() {
      return lanes;
    }

    @Override
    public Signals signals() {
      int words = Executor.words(schedule);
      long bytes = Signals.bytes(words);
      var memory = SymmetricMemory.sideBySide(arena.allocate(2 * bytes), bytes, () -> {});
      return new Signals(memory, List.of(0, 1), 0, words);
    }

    @Override
    public Operand operand(Region weight) {
      throw new IllegalStateException("the library takes the weight itself: " + weight);
    }

    @Override
    public void call(Step.LibraryCall call, Stream stream, Work work) {
      lines.add("collective");
    }

    @Override
    public void call(WholeOperation operation, Stream stream, Work work) {
      lines.add(names.get(stream) + " whole");
      operations.add(operation);
    }

    @Override
    public void close() {
      arena.close();
    }
  }

  private static WholeOperation only(Schedule schedule, int rank) {
    return WholeOperation.of(schedule.steps(rank)).orElseThrow();
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 4, 8})
  void eachRankGivesItsPartAndReceivesItsOutput(int ranks) {
    for (var spec : List.of(GATHERING, SCATTERING, REDUCING)) {
      var schedule = Schedule.of(spec, BY_LIBRARY, ranks);
      assertThat(schedule.findings()).isEmpty();
      for (int rank = 0; rank < ranks; rank++) {
        var operation = only(schedule, rank);
        var input = schedule.port(Part.INPUT.port()).orElseThrow().on(rank);
        var output = schedule.port(Part.OUTPUT.port()).orElseThrow().on(rank);
        assertThat(operation.input()).as("%s, rank %d", spec, rank).isEqualTo(input);
        assertThat(operation.output()).as("%s, rank %d", spec, rank).isEqualTo(output);
      }
    }
  }

  private record Expected(
      GemmSpec spec, Class<? extends Step> last, Collective collective, String lane) {}

  @Test
  void theLaterStepRunsBothOnce() {
    for (var expected :
        List.of(
            new Expected(GATHERING, Step.Gemm.class, Collective.ALL_GATHER, "gemm-0"),
            new Expected(SCATTERING, Step.LibraryCall.class, Collective.REDUCE_SCATTER, "comm"),
            new Expected(REDUCING, Step.LibraryCall.class, Collective.ALL_REDUCE, "comm"))) {
      var schedule = Schedule.of(expected.spec(), BY_LIBRARY, 2);
      var operation = only(schedule, 0);
      assertThat(operation.last()).isInstanceOf(expected.last());
      assertThat(operation.call().collective()).isEqualTo(expected.collective());
      try (var log = new Log(schedule)) {
        new Executor(unprepared(schedule), 0, log, Scales.NONE, () -> "test").layOut();
        assertThat(log.operations).containsExactly(operation);
        var whole = expected.lane() + " whole";
        assertThat(log.lines)
            .doesNotContain("collective")
            .noneMatch(line -> line.endsWith(" gemm"))
            .containsOnlyOnce(whole);
        // All ranks have arrived before the call.
        assertThat(log.lines.subList(0, log.lines.indexOf(whole)))
            .contains("comm raise", "comm await");
      }
    }
  }

  private static Schedule unprepared(Schedule schedule) {
    var result = schedule;
    for (int rank = 0; rank < schedule.ranks(); rank++) {
      result =
          result.with(
              rank,
              schedule.steps(rank).stream()
                  .filter(step -> !(step instanceof Step.Prepare))
                  .toList());
    }
    return result;
  }

  @Test
  void workersReachTheCall() {
    var schedule = Schedule.of(SCATTERING, BY_LIBRARY.workers(8), 2);
    assertThat(only(schedule, 1).call().lane().workers()).isEqualTo(8);
    assertThatThrownBy(() -> BY_LIBRARY.workers(129))
        .isInstanceOf(BraidException.class)
        .hasMessage("workers must be 0..128 but was 129; try workers(0)");
  }

  @Test
  void otherLibrariesRunTheCollectiveAlone() {
    var schedule = Schedule.of(SCATTERING, Overlap.pipelined(1).over(Transport.NCCL_KERNELS), 2);
    assertThat(WholeOperation.of(schedule.steps(0))).isEmpty();
  }

  private static void refused(String message, GemmSpec spec, Overlap tuning, int ranks) {
    assertThatThrownBy(() -> Schedule.of(spec, tuning, ranks))
        .isInstanceOf(BraidException.class)
        .hasMessage(message);
  }

  @Test
  void unsupportedProblemsAreRefused() {
    refused(
        "cublasmp runs the whole operation in one call, so splits and streams must be 1 but were 2 and 1; take pipelined(1)",
        GATHERING,
        Overlap.pipelined(2).streams(1).over(Transport.CUBLASMP),
        2);
    refused(
        "cublasmp takes no replay(), since no graph is known to record its calls; leave replay() out",
        GATHERING,
        BY_LIBRARY.replay(),
        2);
    refused(
        "cublasmp writes each rank's output itself, so symmetric memory has no effect; leave outputInSymmetricMemory() out",
        GATHERING,
        BY_LIBRARY.outputInSymmetricMemory(),
        2);
    refused(
        "cublasmp takes a transposed weight and no other option but was given bias, gelu; take over(COPY_ENGINE)",
        GATHERING.bias().gelu(),
        BY_LIBRARY,
        2);
    refused(
        "the weight of an all-reduce over cublasmp must be transposed; call transposedWeight(), or take over(COPY_ENGINE)",
        GemmSpec.gemmAllReduce(24, 16, 8).dtype(DType.BF16),
        BY_LIBRARY,
        2);
    refused(
        "over cublasmp input, weight and output must have one type of fp32, bf16 and fp16 but had bf16, bf16 and fp32; take over(COPY_ENGINE)",
        SCATTERING.output(DType.FP32),
        BY_LIBRARY,
        2);
    refused(
        "n must be a multiple of the 3 ranks over cublasmp, which takes equal parts, but was 16; try 18, or over(COPY_ENGINE)",
        GATHERING,
        BY_LIBRARY,
        3);
    refused(
        "k must be a multiple of the 3 ranks over cublasmp, which takes equal parts, but was 8; try 9, or over(COPY_ENGINE)",
        SCATTERING,
        BY_LIBRARY,
        3);
    refused(
        "m must be a multiple of the 5 ranks over cublasmp, which takes equal parts, but was 24; try 25, or over(COPY_ENGINE)",
        SCATTERING,
        BY_LIBRARY,
        5);
    refused(
        "unfused of gemm-reduce-scatter does not exist over cublasmp: it overlaps in its own way, in one call; take pipelined(1)",
        SCATTERING,
        Overlap.unfused().over(Transport.CUBLASMP),
        2);
    refused(
        "bulk of gemm-beside-all-gather does not exist over cublasmp: it multiplies and exchanges the same data in one call; take over(NCCL_KERNELS)",
        GemmSpec.besideAllGather(24, 16, 8, 48),
        Overlap.bulk().over(Transport.CUBLASMP),
        2);
  }
}
