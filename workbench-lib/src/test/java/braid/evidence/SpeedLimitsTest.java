package braid.evidence;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.LocalRanks;
import braid.Pipeline;
import braid.Tuner;
import braid.internal.report.value.Caveats;
import braid.model.AttentionSpec;
import braid.model.BraidException;
import braid.model.Configuration;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.Link;
import braid.model.Overlap;
import braid.model.Place;
import braid.model.Problem;
import braid.model.Profile;
import braid.model.Span;
import braid.model.Stage;
import braid.model.Tuning;
import braid.schedule.Schedule;
import braid.schedule.simulation.Machine;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Impossible numbers are planted and named; real ones pass.
class SpeedLimitsTest {
  private static final GemmSpec LAYER = GemmSpec.allGatherGemm(8192, 28672, 8192).dtype(DType.BF16);

  private static SequencedMap<String, String> columns(
      Problem problem, String backend, String device, String link) {
    var columns = new LinkedHashMap<>(problem.columns());
    columns.put("backend", backend);
    columns.put(Caveats.DEVICE, device);
    columns.put("link", link);
    return columns;
  }

  private static SequencedMap<String, String> onH200(Problem problem) {
    return columns(problem, "cuda", "NVIDIA H200", "NVLink");
  }

  private static Study<Overlap> study(
      SequencedMap<String, String> columns, double unfusedMillis, double overlapMillis) {
    return new Study<>(
        columns,
        4,
        1,
        Collections.nCopies(12, Math.round(1e6 * unfusedMillis)),
        Collections.nCopies(12, Math.round(1e6 * unfusedMillis)),
        List.of(
            new Study.Trial<>(
                Overlap.pipelined(4), Collections.nCopies(12, Math.round(1e6 * overlapMillis)))),
        Overlap.unfused());
  }

  @Test
  void aRateAboveTheDevicesPeakIsNamed() {
    // 2 · 8192 · 28672 · 8192 ÷ 4 operations in 0.1 ms.
    var study = study(onH200(LAYER), 0.1, 1.3);
    assertThat(study.faults())
        .containsExactly(
            "IMPOSSIBLE_RATE: unfused, all-gather → GEMM, 8192×28672×8192 bf16, 4 ranks in 100 µs"
                + " is 9,621 TFLOP/s per rank, above the H200's 989 TFLOP/s");
    assertThat(study.headline()).startsWith(study.faults().getFirst() + "; ");
    assertThat(study.finding()).isEqualTo(study.faults().getFirst());
    assertThat(study.doubts()).isEqualTo(study.faults());
    assertThat(study.isDecided()).isFalse();
    assertThat(Study.fromJson(study.toJson()).faults()).isEqualTo(study.faults());

    var both = study(onH200(LAYER), 0.1, 0.2);
    assertThat(both.headline()).contains("989 TFLOP/s (and 1 more); ");
    assertThat(both.doubts()).hasSize(2).allMatch(line -> line.startsWith("IMPOSSIBLE_RATE: "));
  }

  @Test
  void everyTypeHasItsOwnPeak() {
    // 989 TFLOP/s in bf16 is 0.973 ms; half of it in fp8, and 15 times in fp32.
    assertThat(study(onH200(LAYER), 1, 1).faults()).isEmpty();
    assertThat(study(onH200(LAYER), 0.85, 1).faults()).hasSize(1);
    assertThat(study(onH200(LAYER.dtype(DType.FP8_E4M3)), 0.5, 1).faults()).isEmpty();
    assertThat(study(onH200(LAYER.dtype(DType.FP8_E4M3)), 0.4, 1).faults()).hasSize(1);
    assertThat(study(onH200(LAYER.dtype(DType.FP32)), 10, 15).faults()).hasSize(1);
    for (var device : Map.of("NVIDIA B200", 0, "NVIDIA A100-SXM4-80GB", 2).entrySet()) {
      var columns = columns(LAYER, "cuda", device.getKey(), "NVLink");
      assertThat(study(columns, 1, 1).faults()).as(device.getKey()).hasSize(device.getValue());
    }
    // The fastest known GPU stands for an unknown one.
    assertThat(study(columns(LAYER, "cuda", "", "NVLink"), 0.5, 1).faults()).isEmpty();
    assertThat(study(columns(LAYER, "cuda", "", "NVLink"), 0.3, 1).faults()).hasSize(1);
  }

  @Test
  void attentionAndItsGradientsHaveRatesToo() {
    // 4 · 32768² ÷ 2 pairs · 32 heads · 128 ÷ 4 ranks: 2.2 TFLOP, 2.2 ms at 989 TFLOP/s.
    var attention = AttentionSpec.of(32768, 32, 128).causal().dtype(DType.BF16);
    assertThat(study(onH200(attention), 3, 2.5).faults()).isEmpty();
    assertThat(study(onH200(attention), 3, 1).faults().getFirst()).startsWith("IMPOSSIBLE_RATE: ");
    assertThat(study(onH200(attention.backward()), 7, 6).faults()).isEmpty();
    assertThat(study(onH200(attention.backward()), 7, 3).faults()).hasSize(1);
    assertThat(study(onH200(attention.window(1024)), 3, 1).faults()).isEmpty();
    // Eight times as many keys: 15 times as many pairs.
    var chunk = attention.keys(8 * 32768);
    assertThat(study(onH200(chunk), 50, 40).faults()).isEmpty();
    assertThat(study(onH200(chunk), 50, 20).faults()).hasSize(1);
    // The lengths of packed sequences are unknown, and so are the operations.
    var packed = attention.packed(0, 16384, 32768);
    assertThat(study(onH200(packed), 0.001, 0.001).faults()).isEmpty();
  }

  @Test
  void bytesFasterThanTheLinkAreNamed() {
    // 3/4 of 1024 · 1024 · 4 bytes at 0.25 GB/s take 12.6 ms.
    var spec = GemmSpec.allGatherGemm(1024, 64, 1024);
    var columns = columns(spec, "host", "Some CPU, 4 cores", "0.25GB/s,20us");
    assertThat(study(columns, 14, 12.6).faults()).isEmpty();
    assertThat(study(columns, 14, 6).faults())
        .containsExactly(
            "IMPOSSIBLE_BANDWIDTH: pipelined, 4 splits, all-gather → GEMM, 1024×64×1024 fp32, 4"
                + " ranks in 6.00 ms receives 524 MB/s per rank, above the link's 250 MB/s");
    columns.put("link", "unlimited");
    assertThat(study(columns, 14, 6).faults()).isEmpty();
    // 384 GFLOP/s a core at most.
    var large = GemmSpec.allGatherGemm(4096, 4096, 4096);
    var host = columns(large, "host", "Some CPU, 4 cores", "unlimited");
    assertThat(study(host, 100, 90).faults()).isEmpty();
    assertThat(study(host, 100, 50).faults()).singleElement().asString().contains("4 cores");
  }

  @Test
  void evidenceWithoutAKnownMachineOrProblemHasNoLimits() {
    assertThat(study(LAYER.columns(), 0.001, 0.001).faults()).isEmpty();
    var steps = new LinkedHashMap<>(Map.of("steps", "backward", "backend", "cuda"));
    assertThat(study(steps, 0.001, 0.001).faults()).isEmpty();
    var broken = onH200(LAYER);
    broken.put("m", "many");
    assertThat(study(broken, 0.001, 0.001).faults()).isEmpty();
    var simulated = onH200(LAYER);
    simulated.put("backend", "simulated");
    assertThat(study(simulated, 0.001, 0.001).faults()).isEmpty();
    var shared = onH200(LAYER);
    Caveats.put(4, shared);
    assertThat(study(shared, 0.001, 0.001).faults()).isEmpty();
  }

  /// The largest rates of published and own measurements on H100 and H200, in milliseconds.
  @Test
  void realTimesOfGpusPass() throws Exception {
    int rows = 0;
    for (var line : Files.readAllLines(Path.of("../docs/results/gpu/bench_2.md"))) {
      var cells = line.split(" *\\| *", -1);
      if (cells.length < 5 || !cells[4].matches("[0-9.]+") || cells[3].contains("alone")) {
        continue;
      }
      var words = cells[1].replace("×", "").split(" +", -1);
      int last = words.length;
      int m = Integer.parseInt(words[last - 3]);
      int n = Integer.parseInt(words[last - 2]);
      int k = Integer.parseInt(words[last - 1]);
      var spec =
          cells[1].startsWith("all-gather GEMM")
              ? GemmSpec.allGatherGemm(m, n, k)
              : cells[1].startsWith("GEMM reduce-scatter")
                  ? GemmSpec.gemmReduceScatter(m, n, k)
                  : cells[1].startsWith("GEMM all-reduce")
                      ? GemmSpec.gemmAllReduce(m, n, k)
                      : GemmSpec.besideAllGather(m, n, k, 64L << 20);
      var limits =
          SpeedLimits.of(
              cells[1],
              List.of(spec.dtype(DType.BF16)),
              2,
              Map.of("backend", "cuda", Caveats.DEVICE, "NVIDIA H100 80GB HBM3"));
      double nanos = 1e6 * Double.parseDouble(cells[4]);
      assertThat(limits.fault(cells[3], nanos)).as(line).isEmpty();
      // And the limits are not too wide to find anything.
      boolean isLarge = m == 8192 && cells[2].equals("Braid");
      assertThat(limits.fault(cells[3], isLarge ? nanos / 2 : 1e-3 * nanos)).as(line).isPresent();
      rows++;
    }
    assertThat(rows).isGreaterThan(40);
  }

  /// Every method moves the least bytes, and none much more than twice as many.
  @Test
  void everyMethodMovesTheBytesOfTheLimits() {
    var machine = Machine.h200x8();
    for (var spec :
        List.of(
            GemmSpec.allGatherGemm(1024, 512, 256),
            GemmSpec.gemmReduceScatter(1024, 512, 256).dtype(DType.BF16),
            GemmSpec.gemmAllReduce(1024, 512, 256),
            GemmSpec.besideAllGather(512, 512, 512, 1 << 16),
            GemmSpec.besideReduceScatter(512, 512, 512, 1 << 16).dtype(DType.FP8_E4M3))) {
      for (var tuning : tunings(spec)) {
        var set = Schedule.of(spec, tuning, 4).simulate(machine, 2);
        var real = relabelled(set, onH200(spec), 1);
        assertThat(real.faults()).as("%s: %s", spec, tuning).isEmpty();
        assertThat(relabelled(set, onH200(spec), 0.45).faults())
            .as("%s: %s", spec, tuning)
            .anyMatch(line -> line.startsWith("MISSING_BYTES: "));
      }
    }
  }

  private static List<Overlap> tunings(GemmSpec spec) {
    var tunings = new ArrayList<>(List.of(Overlap.unfused(), Overlap.pipelined(2)));
    tunings.addAll(List.of(Overlap.direct(2), Overlap.ring(1)));
    if (spec.pattern() == GemmSpec.Pattern.ALL_GATHER_GEMM) {
      tunings.add(Overlap.doubling(1));
    }
    return tunings;
  }

  /// Returns profiles as a machine would have measured them, with a share of the copies' bytes.
  private static ProfileSet relabelled(
      ProfileSet set, SequencedMap<String, String> columns, double share) {
    return ProfileSet.of(
        set.profiles().stream()
            .map(
                each ->
                    new Profile(
                        new Place(each.place().rank(), set.ranks()),
                        columns,
                        each.iterationNanos(),
                        each.spans().stream().map(span -> with(span, share)).toList(),
                        each.clockErrorNanos()))
            .toList());
  }

  private static Span with(Span span, double share) {
    return span.stage() == Stage.COPY
        ? new Span(
            span.iteration(),
            span.chunk(),
            span.stage(),
            span.stream(),
            span.startNanos(),
            span.endNanos(),
            (long) (share * span.bytes()),
            span.flops())
        : span;
  }

  /// Measured on ranks of this machine, with a link that decides the time.
  @Test
  void realTimesOfTheHostPass() {
    var found = new ConcurrentLinkedQueue<Evidence>();
    LocalRanks.run(
        2,
        world -> {
          world.playLink(Link.parse("20MB/s,10us"));
          for (var spec :
              List.of(
                  GemmSpec.allGatherGemm(256, 64, 128),
                  GemmSpec.gemmReduceScatter(128, 128, 64),
                  GemmSpec.gemmAllReduce(128, 128, 64))) {
            var study =
                Tuner.on(world)
                    .gemm(spec)
                    .overlaps(tunings(spec).stream().skip(1).toArray(Tuning[]::new))
                    .repeats(6)
                    .run();
            found.add(study);
            for (var tuning : tunings(spec)) {
              try (var pipe = Pipeline.on(world).gemm(spec).overlap(tuning).build()) {
                var profile = pipe.profile(3);
                assertThat(profile.configuration()).containsKey(Caveats.DEVICE);
              }
            }
          }
        });
    assertThat(found).isNotEmpty().allSatisfy(each -> assertThat(each.faults()).isEmpty());
    var study = (Study<?>) found.element();
    assertThat(study.setting()).doesNotContain("cores");
    // Half of the time would be impossible: the limit is near.
    assertThat(faster(study, 4).faults())
        .anyMatch(line -> line.startsWith("IMPOSSIBLE_BANDWIDTH: "));
  }

  private static Study<?> faster(Study<?> study, long factor) {
    var trials = new ArrayList<Study.Trial<Configuration>>();
    study
        .trials()
        .forEach(
            trial ->
                trials.add(
                    new Study.Trial<>(trial.configuration(), divided(trial.nanos(), factor))));
    return new Study<Configuration>(
        study.problem(),
        study.ranks(),
        study.seed(),
        divided(study.unfusedFirst(), factor),
        divided(study.unfusedAgain(), factor),
        trials,
        study.reference());
  }

  private static List<Long> divided(List<Long> nanos, long divisor) {
    return nanos.stream().map(n -> n / divisor).toList();
  }

  @Test
  void importedEvidenceIsNamedWhenItIsLoaded(@TempDir Path folder) throws Exception {
    var runs = Runs.in(folder);
    var saved = runs.save(study(onH200(LAYER), 1.4, 1.3));
    assertThat(runs.load(saved.id()).faults()).isEmpty();
    var file = saved.directory().resolve("study.json");
    Files.writeString(file, Files.readString(file).replace("1300000", "130000"));
    var loaded = runs.load(saved.id());
    assertThat(loaded.faults()).singleElement().asString().startsWith("IMPOSSIBLE_RATE: pipelined");
    assertThat(loaded.headline()).startsWith("IMPOSSIBLE_RATE: pipelined");
  }

  @Test
  void aCollectiveThatMovedTooLittleIsNamed() {
    var columns = new LinkedHashMap<String, String>();
    columns.put("pattern", "all-gather");
    columns.put("shape", "1024x256 to 4096x256");
    columns.put("dtype", "bf16");
    columns.put("backend", "cuda");
    columns.put(Caveats.DEVICE, "NVIDIA H200");
    // Each of 4 ranks receives 3 parts of 512 KiB.
    assertThat(profile(columns, 3 * 524_288, 100_000).faults()).isEmpty();
    assertThat(profile(columns, 2 * 524_288, 100_000).faults())
        .containsExactly(
            "MISSING_BYTES: all-gather, 1024x256 to 4096x256 bf16, 4 ranks moved 1,048,576 bytes per rank, below the"
                + " 1,572,864 that every algorithm needs");
    assertThat(profile(columns, 3 * 524_288, 2_000).headline())
        .startsWith("IMPOSSIBLE_BANDWIDTH: ");
    columns.put("pattern", "all-gather + all-reduce");
    assertThat(profile(columns, 1, 100).faults()).isEmpty();
  }

  private static ProfileSet profile(SequencedMap<String, String> columns, long bytes, long nanos) {
    var profiles = new ArrayList<Profile>();
    for (int rank = 0; rank < 4; rank++) {
      var span = new Span(0, 0, Stage.COPY, "copy", 0, nanos, bytes, 0);
      profiles.add(new Profile(new Place(rank, 4), columns, List.of(nanos), List.of(span), 0));
    }
    return ProfileSet.of(profiles);
  }

  @Test
  void impossibleTimesDecideNothing() {
    var setting = new LinkedHashMap<>(Map.of(Decision.PROBLEM, LAYER.toString()));
    assertThatThrownBy(
            () ->
                new Decision(
                    setting, new LinkedHashMap<>(), Instant.EPOCH, study(onH200(LAYER), 1.4, 0.1)))
        .isInstanceOf(BraidException.class)
        .hasMessageStartingWith("IMPOSSIBLE_RATE: pipelined, 4 splits, ")
        .hasMessageEndingWith(
            ": nothing is decided by impossible times; check what was measured, and measure again");
  }
}
