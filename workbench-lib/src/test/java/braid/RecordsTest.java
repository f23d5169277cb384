package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.AttentionSpec;
import braid.model.BraidException;
import braid.model.ChunkOrder;
import braid.model.ContextParallel;
import braid.model.DType;
import braid.model.Fused;
import braid.model.GemmSpec;
import braid.model.Link;
import braid.model.MemoryKind;
import braid.model.Method;
import braid.model.Overlap;
import braid.model.Packing;
import braid.model.Priority;
import braid.model.TokenLayout;
import braid.model.Transport;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Problems, tunings, links and types: their text and their rules.
class RecordsTest {
  @Test
  void defaultsAreThoseThatAreDocumented() {
    // A changed default changes every user's timings: change this test with it, and the changelog.
    assertThat(Overlap.defaults())
        .isEqualTo(
            new Overlap(
                Method.PIPELINED,
                0,
                4,
                List.of(),
                1,
                ChunkOrder.NEXT_FIRST,
                Transport.COPY_ENGINE,
                0,
                Priority.COMMUNICATION,
                false,
                false));
    assertThat(Overlap.direct()).hasToString("direct, 1 split");
    assertThat(Overlap.ring()).hasToString("ring, 1 split");
    assertThat(Overlap.doubling()).hasToString("doubling, 1 split");
    assertThat(Overlap.twoLevel()).hasToString("two-level, 1 split");
    assertThat(Overlap.twoLevel(4)).hasToString("two-level with 4 ranks per group, 1 split");
    assertThat(Overlap.bulk()).hasToString("bulk");
    assertThat(Overlap.pipelined(2).over(Transport.WORKERS).workers()).isEqualTo(1);
    assertThat(ContextParallel.ring()).hasToString("ring, 1 split");
    assertThat(ContextParallel.ring().columns()).containsOnlyKeys("method", "splits");
    assertThat(ContextParallel.ring().neighborToNeighbor().splits(2).replay())
        .isNotEqualTo(ContextParallel.ring().splits(2).replay())
        .hasToString("ring, 2 splits, neighbor to neighbor, replayed")
        .extracting(ContextParallel::columns)
        .isEqualTo(
            Map.of(
                "method", "ring",
                "exchange", "neighbor to neighbor",
                "splits", "2",
                "replayed", "true"));
    assertThat(ContextParallel.twoLevel(2).splits(3).streams(2).over(Transport.WORKERS).replay())
        .hasToString(
            "two-level with 2 ranks per all-to-all, 3 splits, 2 streams, over workers, 1 worker, replayed");
    var backward = AttentionSpec.of(8, 4, 16).backward();
    assertThat(backward.deterministic())
        .isNotEqualTo(backward)
        .hasToString("deterministic " + backward);
    assertThat(backward.columns()).doesNotContainKey("deterministic");
    assertThat(backward.deterministic().columns()).containsEntry("deterministic", "true");
    assertThat(ContextParallel.allGatherKv())
        .isEqualTo(
            new ContextParallel(
                ContextParallel.Method.ALL_GATHER_KV,
                0,
                false,
                1,
                1,
                Transport.COPY_ENGINE,
                0,
                false));
    assertThat(AttentionSpec.of(8, 4, 16))
        .isEqualTo(
            new AttentionSpec(
                8,
                4,
                4,
                16,
                false,
                0,
                TokenLayout.CONTIGUOUS,
                0.25f,
                DType.FP32,
                Packing.single(8),
                Fused.NONE,
                false));
    assertThat(GemmSpec.DEFAULT_DTYPE).isEqualTo(DType.FP32);
    assertThat(Link.DEFAULT).isEqualTo(Link.parse("0.25GB/s,20us"));
  }

  /// A kernel adds at most 16 parts: more ranks are refused before any of them computes.
  @Test
  void sumsOfMoreRanksThanAKernelAddsAreRefused() {
    var cuda = new CollectiveRules(true);
    var host = new CollectiveRules(false);
    for (var pattern : GemmSpec.Pattern.values()) {
      boolean sums =
          List.of("gemm-reduce-scatter", "gemm-all-reduce", "gemm-beside-reduce-scatter")
              .contains(pattern.toString());
      for (var method : Method.values()) {
        Feasibility.checkSum(host, pattern, Overlap.of(method, 1), 1000);
        Feasibility.checkSum(cuda, pattern, Overlap.of(method, 1), 16);
        if (sums && method != Method.RING) {
          assertThatThrownBy(() -> Feasibility.checkSum(cuda, pattern, Overlap.of(method, 1), 17))
              .isInstanceOf(BraidException.class)
              .hasMessage(
                  "%s of %s: sums on GPUs must be of at most 16 ranks but the group has 17; try ring()",
                  method, pattern);
        } else {
          Feasibility.checkSum(cuda, pattern, Overlap.of(method, 1), 17);
        }
      }
    }
    assertThat(cuda.unaddable(16)).isEmpty();
    assertThat(cuda.unaddable(17)).contains("at most 16 ranks but the group has 17");
    assertThat(host.unaddable(17)).isEmpty();
  }

  @Test
  void problemAndTuningPrintThemselvesAndGoIntoTables() {
    var spec = GemmSpec.allGatherGemm(8192, 28672, 8192).dtype(DType.BF16);
    assertThat(spec).hasToString("all-gather-gemm m=8192 n=28672 k=8192 bf16");
    assertThat(spec.columns().toString())
        .isEqualTo("{pattern=all-gather-gemm, m=8192, n=28672, k=8192, dtype=bf16}");
    var mixed = spec.input(DType.FP8_E5M2).weight(DType.FP8_E4M3);
    assertThat(mixed)
        .hasToString("all-gather-gemm m=8192 n=28672 k=8192 fp8_e5m2 x fp8_e4m3 to bf16");
    assertThat(mixed.columns())
        .containsEntry("dtype", "fp8_e5m2")
        .containsEntry("weight", "fp8_e4m3")
        .containsEntry("output", "bf16");
    var tuning = Overlap.pipelined(4).streams(2).over(Transport.COPY_ENGINE);
    assertThat(tuning).hasToString("pipelined, 4 splits, 2 streams");
    assertThat(tuning.columns().toString())
        .isEqualTo("{method=pipelined, splits=4, streams=2, transport=copy_engine}");
    assertThat(Overlap.unfused()).hasToString("unfused");
  }

  @Test
  void impossibleValuesAreRefused() {
    assertThatThrownBy(() -> GemmSpec.allGatherGemm(0, 1, 1))
        .hasMessage("m must be 1 or more but was 0; give the size of the whole problem");
    assertThatThrownBy(() -> Overlap.pipelined(0))
        .hasMessage("splits must be 1 or more but was 0; try 4 splits");
    assertThatThrownBy(() -> Overlap.pipelined(4).streams(17))
        .hasMessage("streams must be 1..16 but was 17; try streams(2)");
    assertThatThrownBy(() -> Overlap.unfused().streams(2))
        .hasMessageStartingWith("unfused has 1 split and 1 stream but was given 1 and 2");
    assertThatThrownBy(() -> MemoryKind.parse("gpu"))
        .hasMessage("a memory kind must be one of auto, native, ipc, nccl, nvshmem but was gpu");
    assertThatThrownBy(() -> DType.parse("fp64"))
        .hasMessage("dtype must be one of fp32, tf32, bf16, fp16, fp8_e4m3, fp8_e5m2 but was fp64");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          0.3GB/s,20us | 300000000 | 20000
          2GB/s        | 2000000000 | 0
          1.5 TB/s, 2 us | 1500000000000 | 2000
          350MB/s,1ms  | 350000000 | 1000000
          10KB/s,5ns   | 10000 | 5
          1Gb/s        | 125000000 | 0
          400Gbps,1us  | 50000000000 | 1000
          800 Kb/s     | 100000 | 0
          2.4Tbps      | 300000000000 | 0
          8Mb/s, 2s    | 1000000 | 2000000000
          1KiB/s       | 1024 | 0
          1.5MiB/s     | 1572864 | 0
          1GiB/s,0.5us | 1073741824 | 500
          1TiB/s       | 1099511627776 | 0
          .25GB/s,1.5\u00b5s | 250000000 | 1500
          0.1GB/s,3\u03bcs | 100000000 | 3000
          0.000001KB/s | 0.001 | 0
          16bps        | 2 | 0
          """)
  void linksAreParsedAsTheyPrint(String text, double bandwidth, long latency) {
    var link = Link.parse(text);
    assertThat(link).isEqualTo(new Link(bandwidth, latency));
    assertThat(Link.parse(link.toString())).isEqualTo(link);
  }

  @Test
  void anUnlimitedLinkTakesNoTime() {
    assertThat(Link.parse("unlimited")).isEqualTo(Link.UNLIMITED).hasToString("unlimited");
    assertThat(Link.UNLIMITED.nanos(1L << 40)).isZero();
    assertThat(Link.parse("1GB/s,3us").nanos(1000)).isEqualTo(4000);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "fast",
        "1GB",
        "0GB/s",
        "1..2GB/s",
        "1GB/s,-3us",
        "1GB/s,3",
        "1gb/s",
        "1Gb",
        "1GBps",
        "1GBPS",
        "1GBit/s",
        "1Gib/s",
        "1kB/s",
        "1iB/s",
        "1GB/S",
        "1GB/s,20US",
        "1GB/s,20Ms",
        "1GB/s,20m",
        "1GB/s 20us",
        "1GB/s,20us,",
        "1GB/s,99999999999999999999s",
        "1e3GB/s"
      })
  void linksThatMakeNoSenseAreRefused(String text) {
    assertThatThrownBy(() -> Link.parse(text))
        .isInstanceOf(BraidException.class)
        .hasMessageContaining("for example 0.25GB/s");
  }

  @ParameterizedTest
  @CsvSource({
    "1, 1",
    "256, 256",
    "257, 256",
    "259, 260",
    "-257, -256",
    "3.39e38, 3.3895314e38",
    "3.4e38, Infinity",
    "Infinity, Infinity",
    "0, 0"
  })
  void bf16RoundsToNearestTiesToEven(float value, float rounded) {
    assertThat(DType.BF16.round(value)).isEqualTo(rounded);
  }

  @Test
  void aNanStaysOne() {
    assertThat(DType.BF16.round(Float.intBitsToFloat(0x7f800001))).isNaN();
    assertThat(DType.FP16.round(Float.NaN)).isNaN();
    assertThat(DType.FP16.round(2049)).isEqualTo(2048);
  }
}
