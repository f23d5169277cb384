package braid.launcher.session;

import braid.launcher.cell.Cell;
import braid.launcher.cell.MagicName;
import braid.launcher.compile.CellCompiler.Piece;
import braid.launcher.output.CellRun;
import braid.launcher.ranks.RankEvent.Channel;
import braid.launcher.session.magic.DeclarationTable;
import braid.launcher.session.magic.MavenJars;
import braid.launcher.session.magic.RankTable;
import braid.model.BraidException;
import braid.model.MimeBundle;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.zip.ZipFile;

/// Runs magic lines, which begin with `%`.
final class Magics {
  /// Maven's program on PATH.
  private static final String MAVEN = "mvn";

  /// Larger than any cell: the compiler needs a multiple of it.
  private static final int MAX_LOADED_BYTES = 16 << 20;

  private final Session session;
  private final FrontScope front;
  private final ArrayDeque<Path> loading = new ArrayDeque<>();

  Magics(Session session, GatheredEvidence evidence) {
    this.session = session;
    front =
        new FrontScope(evidence, session::isInterrupted, name -> session.compiler().declares(name));
  }

  FrontScope front() {
    return front;
  }

  Optional<MimeBundle> line(Piece.Magic magic, Cell cell, CellRun run)
      throws MagicError, CellFailed {
    var words = magic.line().substring(1).split("\\s+", 2);
    var rest = words.length > 1 ? words[1].strip() : "";
    switch (words[0]) {
      case "help" -> run.text(Channel.STDOUT, MagicName.help());
      case "ranks" -> {
        return Optional.of(RankTable.of(session.ranks().all(), session.backend()));
      }
      case "load" -> {
        return load(rest, run);
      }
      case "maven" -> maven(rest, run);
      case "output" -> output(rest, run);
      case "output-limit" -> {
        if (!rest.isEmpty()) {
          session.limit(CellHeader.outputLimit(rest), run);
        }
        run.text(Channel.STDOUT, "output limit is " + session.limit() + " per cell\n");
      }
      case "restart" -> {
        long start = System.nanoTime();
        session.restart();
        run.text(
            Channel.STDOUT,
            "%d new ranks, ready in %.2f s\n"
                .formatted(session.size(), (System.nanoTime() - start) / 1e9));
      }
      case "jars" -> jars(rest);
      case "who" -> run.text(Channel.STDOUT, DeclarationTable.in(session.compiler().shell()));
      case "time" -> {
        if (rest.isEmpty()) {
          throw new MagicError("%time wants code on the same line; %%time times a whole cell");
        }
        long start = session.ranNanos();
        var before = "\n".repeat(magic.firstLine() - 1);
        var result = session.runPieces(new Cell(cell.name(), before + rest), run);
        run.text(Channel.STDOUT, time(session.ranNanos() - start));
        return result;
      }
      default -> throw MagicError.unknown("%" + words[0], magic.line());
    }
    return Optional.empty();
  }

  static String time(long nanos) {
    return nanos < 1_000_000_000
        ? "ran for %.1f ms on the slowest rank%n".formatted(nanos / 1e6)
        : "ran for %.2f s on the slowest rank%n".formatted(nanos / 1e9);
  }

  private void jars(String rest) throws MagicError {
    if (rest.isEmpty()) {
      throw new MagicError("%jars wants paths of jars or folders of classes");
    }
    var paths =
        Arrays.stream(rest.split("\\s+", -1)).map(name -> Path.of(name).toAbsolutePath()).toList();
    for (var path : paths) {
      requireClasses(path);
    }
    add(paths);
  }

  private void add(List<Path> paths) {
    paths.forEach(session::addToClassPath);
  }

  /// Checks for jars or folders of classes: the compiler accepts any path, and then fails at every
  /// cell.
  private static void requireClasses(Path path) throws MagicError {
    if (Files.isDirectory(path)) {
      return;
    }
    var mistake = "%jars must be given jars or folders of classes but " + path;
    requireRegular("%jars", path, mistake);
    try (var jar = new ZipFile(path.toFile())) {
      if (jar.stream().noneMatch(entry -> entry.getName().endsWith(".class"))) {
        throw new MagicError(mistake + " holds no class");
      }
    } catch (IOException e) {
      throw new MagicError(mistake + " is not a zip: " + e.getMessage());
    }
  }

  /// Checks for a regular file: reading anything else may never end, and no interrupt would stop
  /// it.
  private static void requireRegular(String magic, Path path, String mistake) throws MagicError {
    if (!Files.exists(path)) {
      throw new MagicError(magic + ": no such file: " + path);
    }
    if (!Files.isRegularFile(path)) {
      throw new MagicError(
          mistake
              + (Files.isDirectory(path) ? " is a directory" : " is a device, a pipe or a socket"));
    }
  }

  private void maven(String rest, CellRun run) throws MagicError {
    try {
      var wanted = rest.isEmpty() ? List.<String>of() : List.of(rest.split("\\s+", -1));
      var jars = MavenJars.of(MAVEN, wanted, session::isInterrupted);
      add(jars);
      var names = jars.stream().map(jar -> jar.getFileName().toString());
      run.text(Channel.STDOUT, "added " + names.collect(Collectors.joining(", ")) + "\n");
    } catch (BraidException e) {
      throw new MagicError(String.valueOf(e.getMessage()));
    }
  }

  private void output(String rest, CellRun run) throws MagicError {
    if (!rest.isEmpty()) {
      session.output(CellHeader.outputMode(rest), run);
    }
    run.text(Channel.STDOUT, "output is " + session.output() + "\n");
  }

  /// Runs a file as a cell named after it, so that failures show file and line.
  private Optional<MimeBundle> load(String name, CellRun run) throws MagicError, CellFailed {
    if (name.isEmpty()) {
      throw new MagicError("%load wants a .java or .jsh file");
    }
    var path = Path.of(name).toAbsolutePath().normalize();
    if (loading.contains(path)) {
      throw new MagicError("%load: " + path.getFileName() + " loads itself");
    }
    requireRegular("%load", path, "%load must be given a file of Java but " + path);
    loading.push(path);
    try {
      long bytes = Files.size(path);
      if (bytes > MAX_LOADED_BYTES) {
        throw new MagicError(
            "%%load must be given a file of at most %d MiB but %s has %d MiB"
                .formatted(MAX_LOADED_BYTES >> 20, path, bytes >> 20));
      }
      return session.runPieces(
          new Cell(path.getFileName().toString(), Files.readString(path)), run);
    } catch (IOException e) {
      throw new MagicError("%load: " + path + " cannot be read as text: " + e);
    } finally {
      loading.pop();
    }
  }
}
