package braid.notebooks;

import braid.launcher.FrontJvm;
import braid.launcher.cell.Cell;
import braid.launcher.cell.CellOutput;
import braid.launcher.cell.Outcome;
import braid.launcher.cli.Braid;
import braid.launcher.session.Session;
import braid.launcher.session.SessionOptions;
import braid.model.BackendKind;
import braid.model.MimeBundle;
import java.io.IOException;
import java.io.StringReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import javax.xml.parsers.DocumentBuilderFactory;
import org.jspecify.annotations.Nullable;
import org.xml.sax.InputSource;
import picocli.CommandLine.ParameterException;

/// Runs the fenced blocks of a page in their order, in the current directory: `java` as cells of
/// one session, `sh` by bash. The process ends with 1 at the first block that fails, after a line
/// with page, line and reason. `text` is not run.
///
/// A comment on the line before a fence can say `<!-- needs: REASON -->`: a shell block is then
/// only parsed, by bash and by the options of `braid`. A Java block always runs. After `<!-- file:
/// NAME -->` a block is saved as that file.
public final class PageBlocks {
  private static final int RANKS = 2;

  /// Only guards against hanging.
  private static final int LIMIT_SECONDS = 900;

  /// Sizes of the pages' problems, and smaller ones that have the same divisors.
  private static final Map<String, String> SMALLER =
      Map.of("3840", "1280", "2304", "288", "640", "160", "4096", "512");

  private static final Pattern FENCE = Pattern.compile("\\s*```(\\w*)\\s*");
  private static final Pattern MARKER = Pattern.compile("\\s*<!-- (needs|file): (.+?) -->\\s*");

  /// Set in the environment of a command that is only parsed: file for its arguments.
  private static final String PARSED = "PARSED_ARGUMENTS";

  /// A block and the line of its fence, from 1.
  record Block(
      int line, String language, Optional<String> needs, Optional<String> file, String text) {}

  private PageBlocks() {}

  static List<Block> of(Path page) throws IOException {
    var blocks = new ArrayList<Block>();
    var lines = Files.readAllLines(page);
    for (int i = 0; i < lines.size(); i++) {
      var fence = FENCE.matcher(lines.get(i));
      if (!fence.matches()) {
        continue;
      }
      int end = i + 1;
      while (!lines.get(end).strip().equals("```")) {
        end++;
      }
      var marker = MARKER.matcher(i == 0 ? "" : lines.get(i - 1));
      var kind = marker.matches() ? marker.group(1) : "";
      blocks.add(
          new Block(
              i + 1,
              fence.group(1),
              kind.equals("needs") ? Optional.of(marker.group(2)) : Optional.empty(),
              kind.equals("file") ? Optional.of(marker.group(2)) : Optional.empty(),
              String.join("\n", lines.subList(i + 1, end))));
      i = end;
    }
    return blocks;
  }

  private static String smaller(String text) {
    return Pattern.compile("\\b(" + String.join("|", SMALLER.keySet()) + ")\\b")
        .matcher(text)
        .replaceAll(size -> Objects.requireNonNull(SMALLER.get(size.group())));
  }

  /// Takes the page, its name for messages, and `small` for smaller problems.
  public static void main(String[] arguments) throws Exception {
    writeCommand();
    int failed = 0;
    @Nullable Session session = null;
    boolean small = List.of(arguments).contains("small");
    for (var block : of(Path.of(arguments[0]))) {
      var code = small ? smaller(block.text()) : block.text();
      var place = arguments[1] + ":" + block.line();
      long start = System.nanoTime();
      Optional<String> trouble;
      if (block.file().isPresent()) {
        Files.writeString(Path.of(block.file().get()), code + "\n");
        trouble = Optional.empty();
      } else if (block.language().equals("java")) {
        if (session == null) {
          session =
              Session.start(
                  new SessionOptions(
                      RANKS, BackendKind.HOST, Optional.empty(), Path.of("").toAbsolutePath()));
        }
        trouble =
            block.needs().isPresent()
                ? Optional.of("a Java block must run everywhere but needs " + block.needs().get())
                : cell(session, place, code);
      } else {
        trouble =
            switch (block.language()) {
              case "sh" ->
                  block.needs().isPresent() ? parse(block.text()) : shell(block.text(), false);
              case "xml" -> xml(block.text());
              case "text" -> Optional.empty();
              default -> Optional.of("a fence must say java, sh, xml or text");
            };
      }
      if (!block.language().equals("text")) {
        System.out.printf(
            "%s: %s%s in %.1f s%n",
            place,
            block.language(),
            trouble.isPresent()
                ? " FAILED"
                : block.needs().map(needs -> " only parsed: needs " + needs).orElse(" ran"),
            (System.nanoTime() - start) / 1e9);
      }
      if (trouble.isPresent()) {
        System.out.println(place + ": " + trouble.get());
        failed++;
      }
    }
    if (session != null) {
      session.close();
    }
    System.exit(failed == 0 ? 0 : 1);
  }

  /// The command of the checkout: the classes under test. A comparison may find a difference.
  private static void writeCommand() throws IOException {
    var java =
        FrontJvm.command().stream().map(word -> "'" + word + "'").collect(Collectors.joining(" "));
    var text =
        """
        #!/bin/bash
        if [ -n "${PARSED_ARGUMENTS:-}" ]; then
          printf '%%s\\0' "$@" >>"$PARSED_ARGUMENTS"
          printf '\\0' >>"$PARSED_ARGUMENTS"
          exit 0
        fi
        %s braid.launcher.cli.Braid "$@"
        code=$?
        [ "$1" = compare ] && [ $code -gt 2 ] && exit 0
        exit $code
        """
            .formatted(java);
    Files.writeString(Path.of("braid"), text);
    if (!Path.of("braid").toFile().setExecutable(true)) {
      throw new IOException("braid cannot be made executable");
    }
  }

  private static Optional<String> cell(Session session, String place, String text)
      throws Exception {
    var printed = new Printed();
    var running = session.begin(new Cell(place, text), printed);
    Outcome outcome;
    try {
      outcome = running.outcome().get(LIMIT_SECONDS, TimeUnit.SECONDS);
    } catch (TimeoutException e) {
      running.interrupt();
      return Optional.of("did not end in " + LIMIT_SECONDS + " s; it printed:\n" + printed);
    }
    if (printed.toString().contains("not usable until this is declared")) {
      return Optional.of(printed.toString());
    }
    return outcome
        .failure()
        .map(failure -> String.join("\n", failure.traceback()) + "\n" + printed);
  }

  /// Text of a cell; output arrives on other threads.
  private static final class Printed implements CellOutput {
    private final StringBuilder text = new StringBuilder();

    @Override
    public synchronized void stdout(String more) {
      text.append(more);
    }

    @Override
    public void stderr(String more) {
      stdout(more);
    }

    @Override
    public synchronized String toString() {
      return text.toString();
    }

    @Override
    public void display(MimeBundle bundle, String displayId) {}

    @Override
    public void update(MimeBundle bundle, String displayId) {}

    @Override
    public String readLine(String prompt) throws IOException {
      throw new IOException("a page's block has no user");
    }
  }

  private static Optional<String> shell(String text, boolean parsedOnly) throws Exception {
    var log = Files.createTempFile("page", ".log");
    var builder =
        new ProcessBuilder("bash", parsedOnly ? "-ne" : "-e")
            .redirectErrorStream(true)
            .redirectOutput(log.toFile());
    var process = builder.start();
    try (var input = process.outputWriter()) {
      input.write(text + "\n");
    }
    var said = "; it printed:\n";
    if (!process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS)) {
      process.descendants().forEach(ProcessHandle::destroy);
      process.destroy();
      return Optional.of("did not end in " + LIMIT_SECONDS + " s" + said + Files.readString(log));
    }
    return process.exitValue() == 0
        ? Optional.empty()
        : Optional.of("exit code " + process.exitValue() + said + Files.readString(log));
  }

  /// Checks the syntax of all lines, and the options of commands that begin with `./braid`.
  private static Optional<String> parse(String text) throws Exception {
    var trouble = shell(text, true);
    if (trouble.isPresent()) {
      return trouble;
    }
    var arguments = Files.createTempFile("page", ".arguments");
    var commands =
        text.replace("\\\n", " ")
            .lines()
            .filter(line -> line.matches("(\\./|\\S+/bin/)?braid .*"))
            .map(line -> line.replaceFirst("\\S+", "./braid"))
            .collect(Collectors.joining("\n"));
    var ran = shell("export " + PARSED + "=" + arguments + "\n" + commands, false);
    if (ran.isPresent()) {
      return ran;
    }
    for (var command : Files.readString(arguments).split("\0\0", -1)) {
      if (!command.isEmpty()) {
        var line = Braid.commandLine();
        try {
          line.parseArgs(command.split("\0", -1));
        } catch (ParameterException e) {
          return Optional.of("%s: %s".formatted(command.replace('\0', ' '), e.getMessage()));
        }
      }
    }
    return Optional.empty();
  }

  private static Optional<String> xml(String text) throws Exception {
    DocumentBuilderFactory.newInstance()
        .newDocumentBuilder()
        .parse(new InputSource(new StringReader(text)));
    return Optional.empty();
  }
}
