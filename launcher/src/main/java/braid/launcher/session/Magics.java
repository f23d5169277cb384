package braid.launcher.session;

import braid.MimeBundle;
import braid.launcher.cell.Cell;
import braid.launcher.compile.CellCompiler.Piece;
import braid.launcher.output.CellRun;
import braid.launcher.output.ResultMerger;
import braid.launcher.ranks.RankEvent.Channel;
import braid.launcher.ranks.RankProcess;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.Collectors;

/// What a line that begins with `%` does.
final class Magics {
  static final String HELP =
      """
      %%rank 0,2      run this cell on some ranks only (all of them load it)
      %%front         run this cell in the front, where `profiles` holds what the ranks measured
      %%time          say how long this cell ran; %time CODE times one line
      %ranks          each rank: pid, state, memory, what it waits for
      %restart        end all ranks and start new ones
      %jars PATH...   add jars or folders to the class path of the compiler and of every rank
      %who            what the cells have declared
      %help           this text
      A result is shown where the last line has no semicolon.
      """;

  private final Session session;
  private final Gathered gathered;
  private final FrontScope front;

  Magics(Session session, Gathered gathered) {
    this.session = session;
    this.gathered = gathered;
    front = new FrontScope(gathered);
  }

  FrontScope front() {
    return front;
  }

  Optional<MimeBundle> line(Piece.Magic magic, Cell cell, CellRun run)
      throws MagicError, CellFailed {
    var words = magic.line().substring(1).split("\\s+", 2);
    var rest = words.length > 1 ? words[1].strip() : "";
    switch (words[0]) {
      case "help" -> run.text(Channel.STDOUT, HELP);
      case "ranks" -> {
        return Optional.of(ranks());
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
      case "who" -> who(run);
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
      default ->
          throw new MagicError(
              "unknown magic %" + words[0] + "; there are %ranks %restart %jars %who %time %help");
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
    for (var name : rest.split("\\s+", -1)) {
      var path = Path.of(name).toAbsolutePath();
      if (!Files.exists(path)) {
        throw new MagicError("%jars: no such file: " + path);
      }
      session.compiler().shell().addToClasspath(path.toString());
      gathered.added(path);
    }
  }

  private void who(CellRun run) {
    var shell = session.compiler().shell();
    var variables =
        shell.variables().map(v -> v.typeName() + " " + v.name()).collect(Collectors.joining("\n"));
    var methods =
        shell.methods().map(m -> m.signature() + " " + m.name()).collect(Collectors.joining("\n"));
    var types = shell.types().map(t -> t.name()).collect(Collectors.joining("\n"));
    run.text(Channel.STDOUT, (variables + "\n" + methods + "\n" + types).strip() + "\n");
  }

  private MimeBundle ranks() {
    var text = new StringBuilder("rank     pid  state     memory   heartbeat  waits for\n");
    var html =
        new StringBuilder(
            "<table><thead><tr><th>rank</th><th>pid</th><th>state</th><th>memory</th>"
                + "<th>heartbeat</th><th>waits for</th></tr></thead><tbody>");
    for (var rank : session.ranks().all()) {
      var beat = rank.heartbeat();
      var state = rank.death().map(d -> d.cause()).orElse("alive");
      var memory = beat.map(b -> "%d MiB".formatted(b.pong().residentBytes() >> 20)).orElse("?");
      var ago = beat.map(Magics::ago).orElse("none yet");
      var waits = beat.map(b -> String.join("; ", b.pong().waits())).orElse("");
      text.append(
          "%4d %7d  %-8s %7s  %10s  %s\n"
              .formatted(rank.rank(), rank.pid(), state, memory, ago, waits));
      html.append(
          "<tr><td>%d</td><td>%d</td><td>%s</td><td>%s</td><td>%s</td><td>%s</td></tr>"
              .formatted(rank.rank(), rank.pid(), state, memory, ago, ResultMerger.escape(waits)));
    }
    var backend = "backend " + session.backend();
    return MimeBundle.text(text + backend)
        .with(
            MimeBundle.HTML, html + "</tbody></table><p>" + ResultMerger.escape(backend) + "</p>");
  }

  private static String ago(RankProcess.Heartbeat beat) {
    return String.format(Locale.ROOT, "%.1f s ago", (System.nanoTime() - beat.heardNanos()) / 1e9);
  }
}
