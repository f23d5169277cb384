package braid.launcher.bench;

import braid.launcher.ExitCode;
import braid.launcher.cell.Cell;
import braid.launcher.session.Session;
import braid.launcher.session.SessionOptions;
import braid.model.BackendKind;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Optional;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/// The process timed by `braid bench front`. Prints `ready` when the ranks are ready, and `first`
/// with the first cell's result. Then idles until stdin is closed, so that its memory use can be
/// measured.
@Command(
    name = "start-probe",
    hidden = true,
    description = "The process that braid bench front times.")
final class StartProbe implements Callable<Integer> {
  static final String READY = "ready";
  static final String FIRST = "first ";

  @Option(names = "--ranks", required = true, description = "Number of ranks.")
  private int ranks;

  @Option(names = "--home", required = true, description = "A directory for its files.")
  private Path home = Path.of(".");

  @Spec private CommandSpec spec = CommandSpec.create();

  @Override
  public Integer call() throws IOException {
    try (var session =
        Session.start(new SessionOptions(ranks, BackendKind.HOST, Optional.empty(), home))) {
      print(READY);
      var outcome = session.run(new Cell("cell 1", "1 + 1"), new CapturedOutput());
      print(FIRST + outcome.result().map(result -> result.text()).orElse(outcome.toString()));
      while (System.in.read() >= 0) {
        // idle
      }
    }
    return ExitCode.OK.code();
  }

  private void print(String line) {
    var out = spec.commandLine().getOut();
    out.println(line);
    out.flush();
  }
}
