package braid.launcher.cli.experiment;

import braid.launcher.ExitCode;
import braid.launcher.cli.home.Env;
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
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Option;

/// Options by which a notebook runs in turns with two copies of a library, or with two values of a
/// variable, and the two are compared.
public final class AlternatingOptions {
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
    var values = new String[2];
    var name = parse(values);
    var library = Library.named(name).filter(Library::canBeChosen);
    if (library.isEmpty() && (!name.matches("[A-Z_][A-Z0-9_]*") || OF_THE_FRONT.contains(name))) {
      throw new BraidException(
          "--ab must name a library (%s) or a variable that ranks read but was %s; for example nccl=/opt/nccl-2.28/lib,/opt/nccl-2.30/lib"
              .formatted(
                  Arrays.stream(Library.values())
                      .filter(Library::canBeChosen)
                      .map(Library::word)
                      .collect(Collectors.joining(", ")),
                  name));
    }
    var err = braid.getErr();
    var sides = new SessionOptions[2];
    for (int i = 0; i < 2; i++) {
      var side = i == 0 ? "A" : "B";
      var variable = library.isPresent() ? Libraries.FOLDERS : name;
      var value = library.isPresent() ? folders(library.get(), values[i], env) : values[i];
      sides[i] = options.variables(new TreeMap<>(Map.of(variable, value)));
      var copy = library.flatMap(each -> Libraries.foreseen(each, Map.of(variable, value)));
      err.println(
          "braid: %s: %s"
              .formatted(
                  side,
                  library.isPresent()
                      ? library.get().title() + ", " + copy.orElseThrow()
                      : variable + "=" + value));
    }
    err.flush();
    var all =
        new Turns(
            ending -> run.with(sides[0], ending),
            ending -> run.with(sides[1], ending),
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

  private String parse(String[] values) {
    var text = String.valueOf(ab);
    int equals = text.indexOf('=');
    var both = text.substring(equals + 1).split(",", -1);
    if (equals < 1 || both.length != 2 || both[0].equals(both[1])) {
      throw new BraidException(
          "--ab must be NAME=A,B with two different values but was %s; for example nccl=/opt/nccl-2.28/lib,/opt/nccl-2.30/lib"
              .formatted(text));
    }
    values[0] = both[0];
    values[1] = both[1];
    return text.substring(0, equals);
  }

  /// Returns the value of the variable with the folder of a library, beside those of the
  /// environment.
  private static String folders(Library library, String folder, Env env) {
    var path = Path.of(folder).toAbsolutePath().normalize();
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
