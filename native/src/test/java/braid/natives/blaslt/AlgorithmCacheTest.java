package braid.natives.blaslt;

import static org.assertj.core.api.Assertions.assertThat;

import braid.natives.blaslt.AlgorithmCache.Kept;
import braid.natives.blaslt.AlgorithmCache.Setting;
import braid.natives.blaslt.Lt.Layout;
import braid.natives.blaslt.Lt.Problem;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class AlgorithmCacheTest {
  private static final Setting H200 =
      new Setting("NVIDIA H200", 90, 132, "130100 13.1.0.3", 13000, 8, Lt.WORKSPACE_BYTES);
  private static final Layout A = new Layout(Lt.Type.BF16, 64, 32, 32, false);
  private static final Layout B = new Layout(Lt.Type.BF16, 32, 128, 32, true);
  private static final Layout D = new Layout(Lt.Type.BF16, 64, 128, 128, false);
  private static final Problem PROBLEM = new Problem(A, B, D, false, 0, 1, 0, 0, 0);
  private static final Kept FIRST = kept('7', 1_579_000);

  @TempDir private Path folder;
  private final ConcurrentLinkedQueue<String> warnings = new ConcurrentLinkedQueue<>();

  private static Kept kept(char digit, long nanos) {
    return new Kept(String.valueOf(digit).repeat(Lt.ALGORITHM_HEX_DIGITS), nanos);
  }

  private AlgorithmCache cache() {
    return cache(folder, H200);
  }

  private AlgorithmCache cache(Path folder, Setting setting) {
    return new AlgorithmCache(folder, setting, warnings::add);
  }

  private List<Path> files() throws IOException {
    try (var all = Files.walk(folder)) {
      return all.filter(Files::isRegularFile).toList();
    }
  }

  @Test
  void aProcessFindsTheAlgorithmsOfAnother() throws IOException {
    assertThat(cache().find(PROBLEM)).isEmpty();
    cache().keep(PROBLEM, FIRST);
    assertThat(cache().find(PROBLEM)).contains(FIRST);
    cache().keep(PROBLEM, kept('a', 1_400_000));
    assertThat(cache().find(PROBLEM)).contains(kept('a', 1_400_000));
    assertThat(files()).containsExactly(cache().file(PROBLEM));
    assertThat(warnings).isEmpty();
  }

  @Test
  void aFileNamesItsDevice() throws IOException {
    cache().keep(PROBLEM, FIRST);
    var file = cache().file(PROBLEM);
    assertThat(folder.relativize(file).toString())
        .matches(
            "NVIDIA_H200-sm_90-cublasLt-130100_13\\.1\\.0\\.3-driver-13000/"
                + "BF16-64x128x32-[0-9a-f]{16}\\.txt");
    assertThat(Files.readString(file))
        .contains("\ngpu: NVIDIA H200\n", "\nb: BF16 32 x 128 by columns 32 apart", "\nbatch: 1\n")
        .contains("\nnanoseconds: 1579000\nalgorithm: 7777");
  }

  /// Problems that differ from the first one in a single component.
  private static List<Problem> others() {
    return List.of(
        new Problem(new Layout(Lt.Type.FP16, 64, 32, 32, false), B, D, false, 0, 1, 0, 0, 0),
        new Problem(new Layout(Lt.Type.BF16, 65, 32, 32, false), B, D, false, 0, 1, 0, 0, 0),
        new Problem(new Layout(Lt.Type.BF16, 64, 33, 32, false), B, D, false, 0, 1, 0, 0, 0),
        new Problem(new Layout(Lt.Type.BF16, 64, 32, 40, false), B, D, false, 0, 1, 0, 0, 0),
        new Problem(new Layout(Lt.Type.BF16, 64, 32, 32, true), B, D, false, 0, 1, 0, 0, 0),
        new Problem(new Layout(Lt.Type.BF16, 64, 32, 32, false, 2), B, D, false, 0, 1, 0, 0, 0),
        new Problem(A, D, D, false, 0, 1, 0, 0, 0),
        new Problem(A, B, A, false, 0, 1, 0, 0, 0),
        new Problem(A, B, D, true, 0, 1, 0, 0, 0),
        new Problem(A, B, D, false, 1, 1, 0, 0, 0),
        new Problem(A, B, D, false, 0, 2, 0, 0, 0),
        new Problem(A, B, D, false, 0, 1, 1, 0, 0),
        new Problem(A, B, D, false, 0, 1, 0, 1, 0),
        new Problem(A, B, D, false, 0, 1, 0, 0, 1));
  }

  @Test
  void everyOtherProblemIsAnother() {
    var components = Problem.class.getRecordComponents().length;
    var ofALayout = Layout.class.getRecordComponents().length;
    // One per component of a problem, and one per component of a layout.
    assertThat(others()).doesNotHaveDuplicates().hasSize(components - 1 + ofALayout);
    cache().keep(PROBLEM, FIRST);
    var places =
        Stream.concat(Stream.of(PROBLEM), others().stream()).map(cache()::file).distinct().toList();
    assertThat(places).hasSize(1 + others().size());
    assertThat(others()).allMatch(other -> cache().find(other).isEmpty());
    assertThat(warnings).isEmpty();
  }

  @Test
  void everyOtherSettingIsAnother() {
    cache().keep(PROBLEM, FIRST);
    var others =
        List.of(
            new Setting("NVIDIA H100", 90, 132, "130100 13.1.0.3", 13000, 8, 1 << 20),
            new Setting("NVIDIA H200", 100, 132, "130100 13.1.0.3", 13000, 8, 1 << 20),
            new Setting("NVIDIA H200", 90, 66, "130100 13.1.0.3", 13000, 8, 1 << 20),
            new Setting("NVIDIA H200", 90, 132, "130100 13.1.0.4", 13000, 8, 1 << 20),
            new Setting("NVIDIA H200", 90, 132, "130100 13.1.0.3", 13010, 8, 1 << 20),
            new Setting("NVIDIA H200", 90, 132, "130100 13.1.0.3", 13000, 9, 1 << 20),
            new Setting("NVIDIA H200", 90, 132, "130100 13.1.0.3", 13000, 8, 1 << 20));
    assertThat(others).allMatch(other -> cache(folder, other).find(PROBLEM).isEmpty());
    assertThat(others.stream().map(other -> cache(folder, other).file(PROBLEM)).distinct())
        .hasSize(others.size());
    assertThat(warnings).isEmpty();
  }

  @Test
  void aDamagedFileIsReportedOnceAndReplaced() throws IOException {
    cache().keep(PROBLEM, FIRST);
    var file = cache().file(PROBLEM);
    var whole = Files.readString(file);
    var ofAnother = whole.replace("64 x 32", "64 x 64");
    for (var damaged :
        List.of(
            "",
            "nonsense",
            whole.substring(0, whole.length() / 2),
            whole + "more\n",
            whole.replace("77", "78"),
            whole.replace("1579000", "1579001"),
            whole.replaceAll("sha256.*\n", ""),
            ofAnother)) {
      warnings.clear();
      Files.writeString(file, damaged);
      var cache = cache();
      assertThat(cache.find(PROBLEM)).isEmpty();
      assertThat(cache.find(PROBLEM)).isEmpty();
      assertThat(warnings)
          .containsExactly("the algorithm kept in " + file + " is damaged; it is measured again");
      cache.keep(PROBLEM, FIRST);
      assertThat(cache.find(PROBLEM)).contains(FIRST);
    }
    Files.write(file, new byte[] {(byte) 0xff, (byte) 0xfe, 0});
    assertThat(cache().find(PROBLEM)).isEmpty();
    assertThat(Files.writeString(file, whole, StandardCharsets.UTF_8)).isEqualTo(file);
    assertThat(cache().find(PROBLEM)).contains(FIRST);
  }

  @Test
  void aReaderFindsOneOfSeveralWritersWhole()
      throws IOException, InterruptedException, ExecutionException {
    var written = List.of(kept('1', 1), kept('2', 2));
    cache().keep(PROBLEM, written.getFirst());
    try (var writers = Executors.newFixedThreadPool(written.size())) {
      var done = new ArrayList<Future<?>>();
      for (var each : written) {
        done.add(
            writers.submit(
                () -> {
                  var own = cache();
                  for (int i = 0; i < 200; i++) {
                    own.keep(PROBLEM, each);
                    assertThat(own.find(PROBLEM)).isPresent().get().isIn(written);
                  }
                }));
      }
      for (var each : done) {
        each.get();
      }
    }
    assertThat(files()).containsExactly(cache().file(PROBLEM));
    assertThat(warnings).isEmpty();
  }

  @Test
  void aCacheThatCannotBeWrittenIsReportedOnce() throws IOException {
    var noFolder = Files.writeString(folder.resolve("file"), "");
    var cache = cache(noFolder, H200);
    cache.keep(PROBLEM, FIRST);
    cache.keep(others().getFirst(), FIRST);
    assertThat(warnings).hasSize(1);
    assertThat(warnings.element())
        .startsWith("chosen algorithms cannot be kept in " + noFolder)
        .endsWith("and are measured at every start; make it writable");
  }

  @Test
  void aRefusedAlgorithmIsReportedOnceWithItsReason() {
    var cache = cache();
    cache.keep(PROBLEM, FIRST);
    cache.refuse(PROBLEM, "cublasLt does not take it");
    cache.refuse(PROBLEM, "cublasLt does not take it");
    assertThat(warnings)
        .containsExactly(
            "the algorithm kept in %s is not used: cublasLt does not take it; it is measured again"
                .formatted(cache.file(PROBLEM)));
  }
}
