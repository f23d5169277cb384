package braid.launcher.experiment;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/// Revision of a notebook's repository, and its uncommitted changes.
public final class GitState {
  /// Limits the delay of a run by a repository on a slow disk.
  private static final int PATIENCE_SECONDS = 5;

  private static final int CHANGES_NAMED = 20;
  private static final int REVISION_SHOWN = 12;

  private GitState() {}

  /// Returns revision and changes. Untracked files are not changes, since outputs lie everywhere;
  /// an untracked notebook is.
  ///
  /// @param directory a folder of the repository
  public static JsonObject of(Path directory, Optional<Path> notebook) {
    var json = new JsonObject();
    try {
      json.addProperty("revision", git(directory, "rev-parse", "HEAD").strip());
      var changes = new LinkedHashSet<String>();
      git(directory, "status", "--porcelain", "--untracked-files=no").lines().forEach(changes::add);
      if (notebook.isPresent()) {
        git(directory, "status", "--porcelain", "--", notebook.get().toString())
            .lines()
            .forEach(changes::add);
      }
      json.addProperty("dirty", !changes.isEmpty());
      if (!changes.isEmpty()) {
        var named = new JsonArray();
        changes.stream().limit(CHANGES_NAMED).forEach(named::add);
        if (changes.size() > CHANGES_NAMED) {
          named.add("and %d more".formatted(changes.size() - CHANGES_NAMED));
        }
        json.add("changes", named);
      }
      return json;
    } catch (IOException e) {
      var none = new JsonObject();
      none.addProperty("none", String.valueOf(e.getMessage()));
      return none;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      var none = new JsonObject();
      none.addProperty("none", "git was not waited for");
      return none;
    }
  }

  /// Returns the short revision of a repository, with a note on changes; empty if git has none.
  public static Optional<String> revision(Path directory) {
    var state = of(directory, Optional.empty());
    if (!state.has("revision")) {
      return Optional.empty();
    }
    var revision = state.get("revision").getAsString();
    return Optional.of(
        revision.substring(0, Math.min(REVISION_SHOWN, revision.length()))
            + (state.get("dirty").getAsBoolean() ? ", with changes" : ""));
  }

  private static String git(Path directory, String... arguments)
      throws IOException, InterruptedException {
    // A repository's configuration may name a program for this, which git would run.
    var command =
        new ArrayList<>(List.of("git", "--no-optional-locks", "-c", "core.fsmonitor=false"));
    command.addAll(List.of(arguments));
    var process =
        new ProcessBuilder(command)
            .directory(directory.toFile())
            .redirectErrorStream(true)
            .redirectInput(ProcessBuilder.Redirect.from(Path.of("/dev/null").toFile()))
            .start();
    // Ends a git that hangs, and so the read below.
    var end =
        Thread.ofVirtual()
            .start(
                () -> {
                  try {
                    if (!process.waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
                      process.destroyForcibly();
                    }
                  } catch (InterruptedException e) {
                    Thread.currentThread().interrupt(); // it ended in time
                  }
                });
    var said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    int code = process.waitFor();
    end.interrupt();
    if (code != 0) {
      throw new IOException(
          said.lines()
              .findFirst()
              .map(line -> line.replaceFirst("^fatal: ", ""))
              .orElse("git ended with code " + code));
    }
    return said;
  }
}
