package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.internal.remote.Hosts;
import braid.internal.selftest.CaseContext;
import braid.internal.selftest.MemoryCase;
import braid.model.BackendKind;
import braid.model.BraidException;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.MemoryKind;
import braid.model.Method;
import braid.model.Overlap;
import braid.model.Transport;
import braid.model.Tuning;
import braid.natives.load.Feature;
import braid.selftest.SelfTest;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/// Versions that features need (F5), hosts that memory spans (F8), and memory in small pieces, as
/// far as the host backend can show it (F11). On a GPU the self-test runs the last case in every
/// kind of memory.
class SeedsFTest {
  @ParameterizedTest
  @EnumSource(DType.class)
  void f11AnAllocationBelowTheGranularityHasEveryViewWithoutGaps(DType dtype) {
    for (int ranks = 1; ranks <= 4; ranks++) {
      LocalRanks.run(
          ranks,
          world -> {
            for (var kind : Capabilities.kinds()) {
              if (kind == MemoryKind.NATIVE) {
                for (var each : MemoryCase.table()) {
                  if (each.dtype() == dtype) {
                    each.check(CaseContext.of(world, kind));
                  }
                }
              } else {
                // The host refuses unavailable kinds by name.
                assertThat(Capabilities.hostCollectives())
                    .filteredOn(row -> row.kind() == kind)
                    .noneMatch(Capabilities.CollectiveRow::supported);
              }
            }
          });
    }
  }

  @Test
  void f10ATunerMeasuresOverNcclIfTheNamedLibraryLacksAMethod() {
    LocalRanks.run(
        2,
        world -> {
          var beside = GemmSpec.besideAllGather(8, 8, 8, 64);
          assertThat(tried(world, beside, Transport.CUBLASMP, Method.BULK))
              .containsExactly(Overlap.bulk().over(Transport.NCCL_KERNELS));
          var reduced = GemmSpec.gemmReduceScatter(8, 8, 8);
          assertThat(tried(world, reduced, Transport.NCCL_SYMMETRIC, Method.PIPELINED))
              .containsExactly(Overlap.pipelined(2).over(Transport.NCCL_KERNELS));
          // No library has a ring.
          assertThat(tried(world, reduced, Transport.NCCL_SYMMETRIC, Method.RING))
              .containsExactly(Overlap.ring(2).over(Transport.NCCL_SYMMETRIC));
          var notes = new ArrayList<String>();
          var grid = grid(world, Transport.CUBLASMP, Method.BULK, Method.PIPELINED);
          var line = "cublasmp has no bulk of gemm-beside-all-gather, so it runs over nccl_kernels";
          assertThat(grid.replacements(beside)).containsExactly(line);
          // A host has no library. The refusal says why it is about one that nobody named.
          assertThatThrownBy(() -> grid.possible(beside, true, notes))
              .hasMessage(
                  line
                      + ": nccl_kernels needs the cuda backend but the backend is host; use"
                      + " over(COPY_ENGINE)");
        });
  }

  private static List<Tuning> tried(
      ProcessGroup world, GemmSpec spec, Transport library, Method method) {
    return grid(world, library, method).all(spec);
  }

  private static Grid grid(ProcessGroup world, Transport library, Method... methods) {
    var grid = new Grid(world, null);
    grid.transports(List.of(library));
    grid.methods(List.of(methods));
    if (!List.of(methods).equals(List.of(Method.BULK))) {
      grid.splits(List.of(2), false);
    }
    return grid;
  }

  @ParameterizedTest
  @CsvSource({"1,FP32", "3,BF16", "5,FP16", "1023,FP32", "4097,FP8_E4M3"})
  void f11PartsLieSideBySideInTheWhole(long elements, DType dtype) {
    LocalRanks.run(
        3,
        world -> {
          try (var x = SymmetricTensor.on(world).shape(elements).dtype(dtype).allocate()) {
            long bytes = elements * dtype.bytes();
            var all = x.all().segment();
            assertThat(all.byteSize()).isEqualTo(3 * bytes);
            for (int rank = 0; rank < 3; rank++) {
              assertThat(x.on(rank).segment().byteSize()).isEqualTo(bytes);
              assertThat(x.on(rank).segment().address()).isEqualTo(all.address() + rank * bytes);
            }
          }
        });
  }

  @Test
  void f11TheSelfTestHasARowForEachKindOfMemoryOrTheReasonWhyNot() {
    var finds = new AtomicInteger();
    LocalRanks.run(
        2,
        world -> {
          var report = SelfTest.on(world).quick().dtypes(DType.BF16).run();
          for (var kind : Capabilities.kinds()) {
            var rows =
                report.rows().stream()
                    .filter(row -> row.configuration().memory().equals(kind.toString()))
                    .filter(
                        row ->
                            row.outcome() == SelfTest.Outcome.NOT_AVAILABLE
                                ? row.configuration().subject().equals(SelfTest.Configuration.ANY)
                                    && !row.said().isEmpty()
                                : row.configuration().subject().equals("symmetric tensor"))
                    .toList();
            assertThat(rows).as(kind.toString()).hasSize(1);
            finds.incrementAndGet();
          }
        });
    assertThat(finds).hasValue(2 * Capabilities.kinds().size());
  }

  @Test
  void f5AVersionBelowTheSmallestIsRefusedWithBothVersions() {
    for (var feature : Feature.values()) {
      assertThat(feature.refusal("0.1")).contains("needs %s, found 0.1".formatted(feature.needs()));
      assertThat(feature.refusal(feature.minimum())).isEmpty();
    }
  }

  @Test
  void f8EveryKindOfMemoryNamesItsSpan() {
    assertThat(Capabilities.kinds())
        .allMatch(
            kind ->
                kind.span(BackendKind.CUDA)
                    == (kind == MemoryKind.NATIVE
                        ? MemoryKind.Span.BOTH
                        : MemoryKind.Span.ONE_HOST));
    assertThat(MemoryKind.NATIVE.span(BackendKind.HOST)).isEqualTo(MemoryKind.Span.BOTH);
    assertThat(MemoryKind.Span.ONE_HOST.covers(1)).isTrue();
    assertThat(MemoryKind.Span.ONE_HOST.covers(2)).isFalse();
    assertThat(MemoryKind.Span.SEVERAL_HOSTS.covers(1)).isFalse();
    assertThat(MemoryKind.Span.SEVERAL_HOSTS.covers(2)).isTrue();
    assertThat(MemoryKind.Span.BOTH.covers(1)).isTrue();
    assertThat(MemoryKind.Span.BOTH.covers(3)).isTrue();
  }

  @Test
  void f8MemoryBeyondItsSpanIsRefused() {
    var hosts = new Hosts(List.of("a", "b", "c"), List.of(0, 0, 1, 1, 2, 2));
    hosts.requireSpan(MemoryKind.IPC, BackendKind.CUDA, List.of(2, 3));
    hosts.requireSpan(MemoryKind.NATIVE, BackendKind.HOST, List.of(0, 1, 2, 5));
    hosts.requireSpan(MemoryKind.NATIVE, BackendKind.CUDA, List.of(0, 1, 2, 5));
    assertThatThrownBy(
            () -> hosts.requireSpan(MemoryKind.NCCL, BackendKind.CUDA, List.of(0, 1, 2, 5)))
        .isInstanceOf(BraidException.class)
        .hasMessage(
            "memory kind nccl spans one host but ranks [0, 1, 2, 5] are on 3 hosts; make a group of the ranks of one host: world.local()");
  }
}
