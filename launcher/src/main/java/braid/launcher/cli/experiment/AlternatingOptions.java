package braid.launcher.cli.experiment;

import braid.launcher.ExitCode;
import braid.launcher.cli.home.Env;
import braid.launcher.cli.home.WorkingDirectory;
import braid.launcher.cli.run.NotebookQueue;
import braid.launcher.session.SessionOptions;
import braid.model.BraidException;
import braid.natives.load.Libraries;
import braid.natives.load.Libraries.Library;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Option;

/// Options by which a notebook runs in turns with two copies of a library, or with two values of a
/// variable, and the two are compared.
public final class AlternatingOptions {
  private static final String EXAMPLE = "nccl=/opt/nccl-2.28/lib,/opt/nccl-2.30/lib";

  /// Variables of a rank that its front sets.
  private static final Set<String> OF_THE_FRONT =
      Set.of(
          "RANK",
          "WORLD_SIZE",
          "LOCAL_RANK",
          "LOCAL_WORLD_SIZE",
          "MASTER_ADDR",
          "MASTER_PORT",
          "BRAID_TOKEN",
          "BRAID_BACKEND",
          "BRAID_LINK",
          "BRAID_RANKS",
          "BRAID_SHARE_GPUS",
          "BRAID_SYMMETRIC_MEMORY",
          "CUDA_VISIBLE_DEVICES");

  @Option(
      names = "--ab",
      paramLabel = "NAME=A,B",
      description =
          "Runs the notebook in turns with A and with B, on fresh ranks each time, and compares B"
              + " with A: of a library (nccl, cublas_lt, cudnn and others) two folders, in which alone"
              + " ranks search it; of a variable two values, such as NCCL_ALGO=Ring,Tree.")
  private @Nullable String ab;

  @Option(
      names = "--turns",
      paramLabel = "N",
      description = "With --ab: turns of each. Default: 3.")
  private @Nullable Integer turns;

  /// Runs the notebook once, with other options.
  public interface Run {
    ExitCode with(SessionOptions options, NotebookQueue.Ending<ExitCode> ending) throws IOException;
  }

  /// Returns true if the notebook is to run in turns.
  ///
  /// @param others options that have no effect then, and were given
  public boolean isGiven(List<String> others) {
    if (ab == null && turns != null) {
      throw new BraidException("--turns has no effect without --ab; add it");
    }
    if (ab != null && !others.isEmpty()) {
      throw new BraidException(
          "--ab compares runs of one notebook, each kept in the folder of its run, but has %s; leave it out"
              .formatted(String.join(", ", others)));
    }
    return ab != null;
  }

  /// Runs all turns and compares.
  public int run(SessionOptions options, Env env, Run run, CommandLine braid) throws IOException {
    var pair = Pair.parse(String.valueOf(ab));
    var a = options.variables(variables(pair.name(), pair.first(), env));
    var b = options.variables(variables(pair.name(), pair.second(), env));
    var err = braid.getErr();
    err.println("braid: A: " + words(pair.name(), a));
    err.println("braid: B: " + words(pair.name(), b));
    err.flush();
    var all =
        new Turns(
            ending -> run.with(a, ending),
            ending -> run.with(b, ending),
            turns == null ? Turns.DEFAULT : turns,
            err);
    var code = all.run();
    return code == ExitCode.OK
        ? braid.execute("compare", ids(all.first()), ids(all.second()))
        : code.code();
  }

  private static String ids(List<Path> runs) {
    return runs.stream()
        .map(run -> String.valueOf(run.getFileName()))
        .collect(Collectors.joining(","));
  }

  /// A library or a variable, and its two folders or values.
  private record Pair(String name, String first, String second) {
    static Pair parse(String text) {
      int equals = text.indexOf('=');
      var both = text.substring(equals + 1).split(",", -1);
      if (equals < 1 || both.length != 2 || both[0].equals(both[1])) {
        throw new BraidException(
            "--ab must be NAME=A,B with two different values but was %s; for example %s"
                .formatted(text, EXAMPLE));
      }
      return new Pair(text.substring(0, equals), both[0], both[1]);
    }
  }

  private static Optional<Library> library(String name) {
    return Library.named(name).filter(Library::canBeChosen);
  }

  /// Returns the variable of the ranks for a value.
  private static SortedMap<String, String> variables(String name, String value, Env env) {
    var library = library(name);
    if (library.isPresent()) {
      return new TreeMap<>(Map.of(Libraries.FOLDERS, folders(library.get(), value, env)));
    }
    if (!name.matches("[A-Z_][A-Z0-9_]*") || OF_THE_FRONT.contains(name)) {
      throw new BraidException(
          "--ab must name a library (%s) or a variable that ranks read but was %s; for example %s"
              .formatted(
                  Arrays.stream(Library.values())
                      .filter(Library::canBeChosen)
                      .map(Library::word)
                      .collect(Collectors.joining(", ")),
                  name,
                  EXAMPLE));
    }
    return new TreeMap<>(Map.of(name, value));
  }

  /// Returns the copy of the library with its version, or the variable with its value.
  private static String words(String name, SessionOptions side) {
    return library(name)
        .flatMap(
            library ->
                Libraries.foreseen(library, side.variables())
                    .map(copy -> library.title() + ", " + copy))
        .orElseGet(() -> name + "=" + side.variables().get(name));
  }

  /// Returns the value of the variable with the folder of a library, beside those of the
  /// environment.
  private static String folders(Library library, String folder, Env env) {
    var path = WorkingDirectory.resolve(folder).toAbsolutePath().normalize();
    var ours = library.word() + "=" + path;
    if (folder.isBlank()
        || Libraries.foreseen(library, Map.of(Libraries.FOLDERS, ours)).isEmpty()) {
      throw new BraidException(
          "%s must be in each folder of --ab but is not in %s; name the folder of its .so files"
              .formatted(library.title(), path));
    }
    var others = env.variables().getOrDefault(Libraries.FOLDERS, "");
    return others.isBlank() ? ours : others + "," + ours;
  }
}
