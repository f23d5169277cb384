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

/// Fastest algorithm of each problem, kept on disk: measuring at every start takes time and may
/// choose differently. There is one readable text file per problem, in one folder per setting. The
/// file contains every input of the choice, and its name is a hash of them. Several processes may
/// share a folder; files are replaced atomically.
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
  private final Consumer<String> warn;
  private final Set<String> warned = ConcurrentHashMap.newKeySet();

  /// Setting in which a choice is valid. An algorithm's serialized form can be read only by the
  /// version of cublasLt that wrote it.
  ///
  /// @param library version of cublasLt
  /// @param driver version of the driver
  /// @param candidates number of algorithms that were measured
  /// @param workspaceBytes largest workspace of each algorithm
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
          "workspace bytes: " + workspaceBytes,
          "parts of the depth: added in fp32");
    }
  }

  /// Fastest algorithm of a problem.
  ///
  /// @param algorithm its serialized form, see [Lt.Plan#algorithm()]
  /// @param nanos its measured time
  public record Kept(String algorithm, long nanos) {}

  /// @param warn receives each problem that costs time but stops nothing, once
  public AlgorithmCache(Path folder, Setting setting, Consumer<String> warn) {
    this.folder = folder.resolve(setting.folder());
    this.setting = setting;
    this.warn = warn;
  }

  /// Returns the stored choice; empty if none is stored or it cannot be read.
  public Optional<Kept> find(Problem problem) {
    var file = file(problem);
    try {
      var kept = parse(key(problem), new String(Files.readAllBytes(file), StandardCharsets.UTF_8));
      if (kept.isEmpty()) {
        warnOnce("the algorithm kept in %s is damaged; it is measured again".formatted(file));
      }
      return kept;
    } catch (NoSuchFileException e) {
      return Optional.empty();
    } catch (IOException e) {
      warnOnce(
          "the algorithm kept in %s cannot be read (%s); it is measured again".formatted(file, e));
      return Optional.empty();
    }
  }

  public void keep(Problem problem, Kept kept) {
    try {
      Files.createDirectories(folder);
      WholeFile.write(file(problem), text(key(problem), kept));
    } catch (IOException e) {
      warnOnce(
          "chosen algorithms cannot be kept in %s (%s) and are measured at every start; make it writable"
              .formatted(folder, e));
    }
  }

  /// Reports that a stored choice is not used.
  public void refuse(Problem problem, String reason) {
    warnOnce(
        "the algorithm kept in %s is not used: %s; it is measured again"
            .formatted(file(problem), reason));
  }

  /// File of a problem's choice.
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

  /// Every input of the choice, as text.
  private String key(Problem problem) {
    return String.join(
        "\n",
        TITLE,
        String.join("\n", setting.lines()),
        line("a", problem.a()),
        line("b", problem.b()),
        line("d", problem.d()),
        "bias: " + problem.bias(),
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

  private void warnOnce(String message) {
    if (warned.add(message)) {
      warn.accept(message);
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
