package braid.launcher.cli.experiment;

import braid.launcher.Counted;
import braid.launcher.cli.run.RunSummary;
import braid.launcher.cli.run.VisibleText;
import braid.launcher.experiment.Experiments;
import braid.launcher.experiment.Experiments.Found;
import braid.launcher.experiment.Manifest;
import braid.launcher.experiment.Manifest.Measured;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import java.nio.file.Path;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/// `braid runs`: lists stored runs, or prints the manifest of one.
@Command(
    name = "runs",
    description = "Lists the runs that are kept under runs/, or shows the manifest of one.",
    mixinStandardHelpOptions = true,
    subcommands = PruneCommand.class,
    exitCodeList = {" 0:fine", " 2:there is no such run"},
    footer = {
      "  braid runs",
      "  braid runs 0a1b2c",
      "  braid runs latest",
      "  braid runs --notebook tune.ipynb",
      "  braid runs 0a1b2c --json | jq .gpus",
      "  braid runs prune --keep 20",
    })
public final class RunsCommand implements Callable<Integer> {
  private static final DateTimeFormatter WHEN =
      DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm:ss").withZone(ZoneId.systemDefault());

  @Parameters(
      arity = "0..1",
      paramLabel = "RUN",
      description =
          "Its id, a unique beginning or the six characters at the end of it, a path, latest or"
              + " previous.")
  private String name = "";

  @Option(
      names = "--notebook",
      paramLabel = "NAME",
      description = "Lists only the runs of that notebook.")
  private @Nullable String notebook;

  @Option(names = "--json", description = "Prints whole manifests as JSON.")
  private boolean json;

  @Spec private CommandSpec spec = CommandSpec.create();

  @Override
  public Integer call() {
    var out = spec.commandLine().getOut();
    var experiments = new Experiments(Path.of("").toAbsolutePath().resolve("runs"));
    if (!name.isEmpty()) {
      var manifest = experiments.find(name).manifest();
      out.print(json ? manifest.toJson() : manifest + "\n");
    } else if (json) {
      var all = new JsonArray();
      runs(experiments).forEach(run -> all.add(run.json()));
      out.println(new GsonBuilder().setPrettyPrinting().disableHtmlEscaping().create().toJson(all));
    } else {
      list(experiments).forEach(out::println);
    }
    out.flush();
    return 0;
  }

  private List<Manifest> runs(Experiments experiments) {
    return experiments.list().stream()
        .map(Found::manifest)
        .filter(run -> notebook == null || run.isOf(notebook))
        .toList();
  }

  private List<String> list(Experiments experiments) {
    var runs = runs(experiments);
    if (runs.isEmpty()) {
      return List.of(
          "no runs%s in %s; braid run keeps them there"
              .formatted(notebook == null ? "" : " of " + notebook, experiments.runs()));
    }
    var rows = new ArrayList<List<String>>();
    rows.add(List.of("run", "started", "took", "notebook", "parameters", "state", "headline"));
    for (var run : runs) {
      rows.add(row(run).stream().map(VisibleText::line).toList());
    }
    return aligned(rows);
  }

  private static List<String> row(Manifest run) {
    var given =
        run.given().entrySet().stream()
            .map(each -> each.getKey() + "=" + each.getValue().replaceAll("new \\w+(\\[])+ ?", ""))
            .collect(Collectors.joining(" "));
    return List.of(
        run.id(),
        WHEN.format(run.started()),
        run.duration().map(RunSummary::time).orElse("-"),
        run.notebook(),
        given.isEmpty() ? "-" : given,
        state(run),
        headline(run));
  }

  /// Returns the headline of the first study up to its interval, or the number of profiles.
  private static String headline(Manifest run) {
    var studies = run.measured().stream().filter(Measured::isStudy).toList();
    if (studies.isEmpty()) {
      return run.data().isEmpty() ? "-" : Counted.of(run.data().size(), "profile");
    }
    // The interval and the remarks follow.
    var first = studies.getFirst().headline().split(" \\(|;", 2)[0];
    return studies.size() == 1 ? first : "%s (+%d more)".formatted(first, studies.size() - 1);
  }

  private static String state(Manifest run) {
    var state = run.state();
    var code = run.text("exitCode").filter(each -> state == Manifest.State.FAILED);
    return state.word() + code.map(each -> " (exit code " + each + ")").orElse("");
  }

  private static List<String> aligned(List<List<String>> rows) {
    var lines = new ArrayList<String>();
    for (var row : rows) {
      var line = new StringBuilder();
      for (int column = 0; column < row.size(); column++) {
        int index = column;
        int width = rows.stream().mapToInt(each -> each.get(index).length()).max().orElse(0);
        line.append(row.get(column)).repeat(' ', width + 2 - row.get(column).length());
      }
      lines.add(line.toString().stripTrailing());
    }
    return lines;
  }
}
