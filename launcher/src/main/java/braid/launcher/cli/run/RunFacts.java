package braid.launcher.cli.run;

import braid.launcher.cli.home.Env;
import braid.launcher.cli.home.Installation;
import braid.launcher.experiment.GitState;
import braid.launcher.experiment.Manifest;
import braid.launcher.experiment.Surroundings;
import braid.launcher.notebook.Notebook;
import braid.launcher.notebook.NotebookCell;
import braid.launcher.notebook.ParameterCell;
import braid.launcher.output.OutputLimit;
import braid.launcher.ranks.LocalRanks;
import braid.launcher.session.SessionOptions;
import braid.model.Link;
import braid.model.MemoryKind;
import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// First fields of a manifest: command, notebook, parameters, limits, and the surroundings.
public final class RunFacts {
  private static final String MEMORY = "BRAID_SYMMETRIC_MEMORY";

  private final JsonObject json = new JsonObject();

  /// @param command arguments of `braid`
  public RunFacts(List<String> command, Path directory) {
    var words = new JsonArray();
    command.forEach(words::add);
    json.add("command", words);
    json.addProperty("directory", directory.toString());
  }

  /// @param directory of the cells; null if it is that of the command
  public RunFacts workingDirectory(@Nullable Path directory) {
    if (directory != null) {
      json.addProperty("workingDirectory", directory.toAbsolutePath().normalize().toString());
    }
    return this;
  }

  public RunFacts repeating(String id) {
    json.addProperty("repeats", id);
    return this;
  }

  /// Names the run of the first start, with whose rounds those of this start are pooled.
  public RunFacts startOf(String id) {
    json.addProperty(Manifest.START_OF, id);
    return this;
  }

  /// @param file source file, whose repository has the revision
  public RunFacts notebook(Notebook notebook, Path file, Path output) {
    var path = file.toAbsolutePath().normalize();
    var about = new JsonObject();
    about.addProperty("name", String.valueOf(path.getFileName()));
    about.addProperty("path", path.toString());
    about.addProperty("sha256", digest(notebook));
    about.addProperty("output", output.toAbsolutePath().normalize().toString());
    json.add("notebook", about);
    json.add("parameters", ParameterCell.values(notebook));
    var folder = Optional.ofNullable(path.getParent()).orElse(path);
    json.add("git", GitState.of(folder, Optional.of(path)));
    return this;
  }

  /// Adds a plain program and the revision of its folder.
  public RunFacts program(Path file) {
    json.addProperty("program", String.valueOf(file.getFileName()));
    return git(file.toAbsolutePath().normalize().resolveSibling(""));
  }

  /// Adds the revision of a folder, for a session without a notebook.
  public RunFacts git(Path directory) {
    json.add("git", GitState.of(directory, Optional.empty()));
    return this;
  }

  /// @param environment relevant variables
  private RunFacts session(SessionOptions options, Map<String, String> environment) {
    var session = new JsonObject();
    session.addProperty("ranks", options.ranks());
    session.addProperty("backend", options.backend().kind().toString());
    session.addProperty("why", options.backend().why());
    if (options.starter() != LocalRanks.HERE) {
      session.addProperty("launcher", options.starter().description());
      var words = new JsonArray();
      options.starter().options().forEach(words::add);
      session.add("launcherOptions", words);
    }
    if (options.backend().sharesGpus()) {
      session.addProperty("sharedGpus", options.backend().why());
    }
    if (!options.backend().isCuda()) {
      session.addProperty("link", options.link().orElse(Link.DEFAULT.toString()));
    }
    if (!options.outputLimit().equals(OutputLimit.DEFAULT)) {
      session.addProperty("outputLimit", options.outputLimit().toString());
    }
    options
        .untilDecided()
        .ifPresent(limit -> session.addProperty("untilDecidedSeconds", limit.toSeconds()));
    if (!options.variables().isEmpty()) {
      var variables = new JsonObject();
      options.variables().forEach(variables::addProperty);
      session.add("variables", variables);
    }
    session.addProperty(
        "memory",
        options
            .memory()
            .map(MemoryKind::toString)
            .orElse(environment.getOrDefault(MEMORY, MemoryKind.AUTO.toString())));
    json.add("session", session);
    return this;
  }

  /// Adds the limits in seconds, as the user wrote them.
  public RunFacts limits(Optional<String> total, Optional<String> cell) {
    var limits = new JsonObject();
    total.ifPresent(seconds -> limits.addProperty("timeout", seconds));
    cell.ifPresent(seconds -> limits.addProperty("cellTimeout", seconds));
    json.add("limits", limits);
    return this;
  }

  /// Returns all facts, with the surroundings of a session that starts now.
  public JsonObject of(SessionOptions options, Env env) {
    var variables = env.thatMatter();
    return session(options, variables)
        .with(
            Surroundings.here(
                Installation.version(), variables, env.machine().gpus(), options.variables()));
  }

  private JsonObject with(JsonObject surroundings) {
    surroundings.asMap().forEach(json::add);
    return json;
  }

  /// Digest of the cells' sources; outputs and set parameters do not change it.
  public static String digest(Notebook notebook) {
    try {
      var digest = MessageDigest.getInstance("SHA-256");
      for (var cell : notebook.cells()) {
        if (cell.isCode() && !cell.hasTag(NotebookCell.INJECTED_PARAMETERS)) {
          digest.update(cell.source().getBytes(StandardCharsets.UTF_8));
          digest.update((byte) 0);
        }
      }
      return HexFormat.of().formatHex(digest.digest());
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every JDK has SHA-256", e);
    }
  }

  /// Returns the notebook without outputs of earlier runs.
  public static String source(Notebook notebook) {
    var copy = Notebook.parse(notebook.toJson(), notebook.name());
    copy.cells().stream().filter(NotebookCell::isCode).forEach(NotebookCell::clearOutputs);
    return copy.toJson();
  }
}
