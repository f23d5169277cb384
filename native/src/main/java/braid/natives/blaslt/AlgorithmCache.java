package braid.natives.blaslt;

import braid.natives.WholeFile;
import braid.natives.blaslt.Lt.Layout;
import braid.natives.blaslt.Lt.Problem;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import java.util.regex.Pattern;

/// Which algorithm was the fastest for a problem, on disk, since measuring costs every start time
/// and may choose differently. A file a problem, for people to read, in a folder for each setting.
/// All that the choice depends on stands in the file and makes its name. Several processes may
/// share a folder; a file is there whole or not at all.
public final class AlgorithmCache {
  private static final String TITLE =
      "the fastest of cublasLt's algorithms; measured again where this file is gone";
  private static final Pattern FOUND =
      Pattern.compile(
          "nanoseconds: (\\d{1,18})\nalgorithm: ([0-9a-f]{%d})\n"
              .formatted(Lt.ALGORITHM_HEX_DIGITS));
  private static final String SUM = "sha256: ";
  private static final int DIGITS_OF_NAME = 16;

  private final Path folder;
  private final Setting setting;
  private final Consumer<String> say;
  private final Set<String> said = ConcurrentHashMap.newKeySet();

  /// Where a choice holds: cublasLt's description of an algorithm is its very version's own.
  ///
  /// @param library cublasLt's version
  /// @param driver the driver's
  /// @param candidates how many algorithms were measured
  /// @param workspaceBytes how much each of them might take
  public record Setting(
      String gpu,
      int architecture,
      int multiprocessors,
      String library,
      int driver,
      int candidates,
      long workspaceBytes) {
    String folder() {
      return "%s-sm_%s-cublasLt-%s-driver-%s"
          .formatted(gpu, "" + architecture, library, "" + driver)
          .replaceAll("[^A-Za-z0-9._-]+", "_");
    }

    private List<String> lines() {
      return List.of(
          "gpu: " + gpu,
          "architecture: " + architecture,
          "multiprocessors: " + multiprocessors,
          "cublasLt: " + library,
          "driver: " + driver,
          "candidates: " + candidates,
          "workspace bytes: " + workspaceBytes);
    }
  }

  /// What was found.
  ///
  /// @param algorithm as [Lt.Plan#algorithm()] gives it
  /// @param nanos how long it took
  public record Kept(String algorithm, long nanos) {}

  /// `say` hears, once, of what does not stop anybody but costs time.
  public AlgorithmCache(Path folder, Setting setting, Consumer<String> say) {
    this.folder = folder.resolve(setting.folder());
    this.setting = setting;
    this.say = say;
  }

  /// What was kept for it; empty where nothing was, or nothing that can be read.
  public Optional<Kept> find(Problem problem) {
    var file = file(problem);
    try {
      var kept = parse(key(problem), new String(Files.readAllBytes(file), StandardCharsets.UTF_8));
      if (kept.isEmpty()) {
        sayOnce("the algorithm kept in %s is damaged; it is measured again".formatted(file));
      }
      return kept;
    } catch (NoSuchFileException e) {
      return Optional.empty();
    } catch (IOException e) {
      sayOnce(
          "the algorithm kept in %s cannot be read (%s); it is measured again".formatted(file, e));
      return Optional.empty();
    }
  }

  public void keep(Problem problem, Kept kept) {
    try {
      Files.createDirectories(folder);
      WholeFile.write(file(problem), text(key(problem), kept));
    } catch (IOException e) {
      sayOnce(
          "chosen algorithms cannot be kept in %s (%s) and are measured at every start; make it writable"
              .formatted(folder, e));
    }
  }

  /// Says that what was found is not used after all.
  public void refuse(Problem problem, String why) {
    sayOnce(
        "the algorithm kept in %s is not used: %s; it is measured again"
            .formatted(file(problem), why));
  }

  /// Where a problem's is kept.
  Path file(Problem problem) {
    var d = problem.d();
    var hash = HexFormat.of().formatHex(sha256(key(problem))).substring(0, DIGITS_OF_NAME);
    return folder.resolve(
        String.join(
            "-",
            problem.a().type().name(),
            d.rows() + "x" + d.columns() + "x" + problem.a().columns(),
            hash + ".txt"));
  }

  /// All that the choice depends on.
  private String key(Problem problem) {
    return String.join(
        "\n",
        TITLE,
        String.join("\n", setting.lines()),
        line("a", problem.a()),
        line("b", problem.b()),
        line("d", problem.d()),
        "bias: " + problem.bias(),
        "gelu: " + problem.gelu(),
        "pre-activation's stride: " + problem.auxStride(),
        "multiprocessors to plan for: " + problem.smTarget(),
        "batch: " + problem.batch(),
        "batch stride of a: " + problem.batchStrideA(),
        "batch stride of b: " + problem.batchStrideB(),
        "batch stride of d: " + problem.batchStrideD(),
        "");
  }

  private static String line(String name, Layout layout) {
    return name
        + String.join(
            " ",
            ":",
            layout.type().name(),
            layout.rows() + " x " + layout.columns(),
            layout.transposed() ? "by columns" : "by rows",
            layout.stride() + " apart",
            "at multiples of " + layout.alignmentBytes());
  }

  private static String text(String key, Kept kept) {
    var all = key + "nanoseconds: " + kept.nanos() + "\nalgorithm: " + kept.algorithm() + "\n";
    return all + sum(all);
  }

  private static String sum(String text) {
    return SUM + HexFormat.of().formatHex(sha256(text)) + "\n";
  }

  private static Optional<Kept> parse(String key, String text) {
    int end = text.lastIndexOf(SUM);
    if (!text.startsWith(key) || end < key.length()) {
      return Optional.empty();
    }
    var all = text.substring(0, end);
    var found = FOUND.matcher(text.substring(key.length(), end));
    return found.matches() && text.equals(all + sum(all))
        ? Optional.of(new Kept(found.group(2), Long.parseLong(found.group(1))))
        : Optional.empty();
  }

  private void sayOnce(String what) {
    if (said.add(what)) {
      say.accept(what);
    }
  }

  private static byte[] sha256(String text) {
    try {
      return MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8));
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every JDK has SHA-256", e);
    }
  }
}
