package braid.internal.selftest;

import static org.assertj.core.api.Assertions.assertThat;

import braid.Capabilities;
import braid.internal.cuda.GpuRecording;
import braid.internal.selftest.CommunicationCase.Rule;
import braid.model.Activity;
import braid.model.BackendKind;
import braid.model.CollectiveWay;
import braid.model.MemoryKind;
import braid.model.Span;
import braid.model.Stage;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

class CommunicationCaseTest {
  private static final Activity COPY =
      new Activity(Activity.Kind.COPY, "copy engine (channel 16)", 10, 20, 64);
  private static final Activity FILL = new Activity(Activity.Kind.FILL, "fill: SMs", 20, 21, 4);
  private static final Activity KERNEL =
      new Activity(Activity.Kind.KERNEL, "braid_copy_tma <<<24>>>", 12, 13, 0);

  private static Span step(Stage stage, Activity... activities) {
    return new Span(0, 0, stage, "comm", 10, 30, 64, 0, List.of(activities), "step");
  }

  private static GpuRecording recorded(Span... steps) {
    return new GpuRecording(List.of(steps), List.of(), 0);
  }

  @Test
  void copiesAndFillsAreNoKernels() {
    var recorded = recorded(step(Stage.COPY, COPY, FILL), step(Stage.COPY, COPY));
    assertThat(CommunicationCase.fault(Rule.NO_KERNEL, recorded)).isEmpty();
    assertThat(CommunicationCase.text(recorded))
        .isEqualTo("copy engine (channel 16) ×2, fill: SMs ×1");
  }

  /// Also if the step is mostly a copy.
  @Test
  void c2AKernelAmongCopiesBreaksTheRule() {
    var planted = recorded(step(Stage.COPY, COPY), step(Stage.COPY, COPY, KERNEL, COPY));
    assertThat(CommunicationCase.fault(Rule.NO_KERNEL, planted))
        .hasValue("no kernel may run between ranks but these did: braid_copy_tma <<<24>>> ×1");
  }

  @Test
  void c2AKernelOfNoStepBreaksTheRule() {
    var planted = new GpuRecording(List.of(step(Stage.COPY, COPY)), List.of(COPY, KERNEL), 0);
    assertThat(CommunicationCase.fault(Rule.NO_KERNEL, planted))
        .hasValue(
            "no kernel may run between ranks but these did: braid_copy_tma <<<24>>> of no step ×1");
    assertThat(CommunicationCase.text(planted))
        .isEqualTo(
            "braid_copy_tma <<<24>>> of no step ×1, copy engine (channel 16) ×1,"
                + " copy engine (channel 16) of no step ×1");
  }

  @Test
  void kernelsThatComputeAreAllowed() {
    var recorded =
        recorded(
            step(Stage.COPY, COPY),
            step(Stage.GEMM, KERNEL),
            step(Stage.REDUCE, KERNEL),
            step(Stage.LOCAL, KERNEL));
    assertThat(CommunicationCase.fault(Rule.NO_KERNEL, recorded)).isEmpty();
    assertThat(CommunicationCase.text(recorded)).isEqualTo("copy engine (channel 16) ×1");
  }

  @Test
  void aRecordingThatMayLackKernelsProvesNothing() {
    assertThat(CommunicationCase.fault(Rule.NO_KERNEL, recorded(step(Stage.GEMM, KERNEL))))
        .hasValue("communication must have activities but none was recorded");
    var incomplete = new GpuRecording(List.of(step(Stage.COPY, COPY)), List.of(), 2);
    for (var rule : Rule.values()) {
      assertThat(CommunicationCase.fault(rule, incomplete))
          .hasValue("every activity must be recorded but CUPTI lost 2; run the self-test again");
    }
  }

  @Test
  void aWayByKernelsMustShowAKernel() {
    assertThat(CommunicationCase.fault(Rule.KERNEL, recorded(step(Stage.COPY, KERNEL)))).isEmpty();
    assertThat(CommunicationCase.fault(Rule.KERNEL, recorded(step(Stage.COPY, COPY))))
        .hasValue("a kernel must be recorded but only these ran: copy engine (channel 16) ×1");
  }

  @Test
  void f9KernelsAreNamedWithTheirGrids() {
    assertThat(CommunicationCase.text(recorded(step(Stage.COPY, KERNEL, KERNEL))))
        .isEqualTo("braid_copy_tma <<<24>>> ×2");
  }

  @Test
  void ranksWithEqualUnitsShareTheText() {
    assertThat(CommunicationCase.units(List.of("a", "a"))).isEqualTo("a");
    assertThat(CommunicationCase.units(List.of("a", "b", "a")))
        .isEqualTo("ranks 0, 2: a; rank 1: b");
  }

  @Test
  void c2BothCopyEngineWaysMayRunNoKernel() {
    var cases =
        CommunicationCase.of(
            Capabilities.of(BackendKind.CUDA).stream()
                .filter(row -> row.kind() == MemoryKind.NCCL)
                .toList(),
            Capabilities.collectivesOf(BackendKind.CUDA).stream()
                .filter(row -> row.kind() == MemoryKind.NCCL)
                .toList(),
            2);
    assertThat(cases.stream().filter(each -> each.rule() == Rule.NO_KERNEL))
        .extracting(each -> each.what() + " over " + each.way())
        .containsExactly(
            "units-of-collectives over copy_engine",
            "units-of-collectives over pushing",
            "units-of-collectives over nccl_copy_engine",
            "units-of-pipelines over copy_engine",
            "units-of-pipelines over nccl_copy_engine");
    assertThat(cases.stream().filter(each -> each.rule() == Rule.KERNEL))
        .extracting(CommunicationCase::way)
        .containsExactly(
            CollectiveWay.WORKERS,
            CollectiveWay.ONE_KERNEL,
            CollectiveWay.NCCL_KERNELS,
            CollectiveWay.NCCL_SYMMETRIC,
            CollectiveWay.WORKERS,
            CollectiveWay.ONE_KERNEL,
            CollectiveWay.NCCL_KERNELS,
            CollectiveWay.NCCL_SYMMETRIC);
    assertThat(cases)
        .allMatch(each -> each.collectives().isEmpty() == each.ofPipelines())
        .allMatch(each -> each.pipelines().isEmpty() != each.ofPipelines());
    assertThat(Arrays.stream(CollectiveWay.values()))
        .as("NVSHMEM needs its own memory")
        .filteredOn(way -> cases.stream().noneMatch(each -> each.way() == way))
        .containsExactly(CollectiveWay.NVSHMEM_PUTS);
  }

  @Test
  void theHostAndOneRankSayWhyNothingIsRecorded() {
    assertThat(CommunicationCase.missing(BackendKind.HOST, 4).orElseThrow())
        .startsWith("only a GPU records")
        .endsWith("; run with --backend cuda");
    assertThat(CommunicationCase.missing(BackendKind.CUDA, 1))
        .hasValue("one rank has nothing to communicate; run with -n 2 or more");
  }
}
