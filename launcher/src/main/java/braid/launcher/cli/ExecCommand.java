package braid.launcher.cli;

import braid.launcher.ExitCode;
import braid.launcher.cell.Cell;
import braid.launcher.cell.CellFailure;
import braid.launcher.cell.CellOutput;
import braid.launcher.cli.home.Env;
import braid.launcher.cli.home.RankOptions;
import braid.launcher.cli.home.WorkOptions;
import braid.launcher.cli.home.WorkingDirectory;
import braid.launcher.cli.run.RunFacts;
import braid.launcher.cli.run.SignalledSession;
import braid.launcher.compile.Program;
import braid.launcher.experiment.Experiment;
import braid.launcher.notebook.run.CellAttempt;
import braid.launcher.notebook.run.StopRequest;
import braid.launcher.notebook.run.TimeLimits;
import braid.launcher.session.Session;
import braid.model.BraidException;
import braid.model.MimeBundle;
import com.google.gson.JsonPrimitive;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.nio.charset.Charset;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/// `braid exec`: runs a plain Java program on all ranks.
@Command(
    name = "exec",
    description =
        "Compiles a Java program and calls its main method on all ranks, each a process;"
            + " ProcessGroup.world() is the group of the ranks.",
    mixinStandardHelpOptions = true,
    exitCodeList = {
      " 0:main returned on every rank",
      " 1:main failed on a rank",
      " 2:a mistake in the options, or the program does not compile; nothing was run",
      " 3:a result is not the unfused reference's",
      " 4:a time limit",
      " 130:Ctrl-C",
      " 138:a rank died",
      " 143:SIGTERM",
    },
    footer = {
      "  braid exec Overlap.java -n 4",
      "  braid exec -n 2 --link 1GB/s,20us --timeout 60 Overlap.java 3840 -- --verbose",
      "  braid exec Overlap.java --class-path build/classes:lib/model.jar",
    })
final class ExecCommand implements Callable<Integer> {
  @Parameters(
      index = "0",
      paramLabel = "PROGRAM.java",
      description =
          "The source file, whose first class has the main method. Classes of other files are found"
              + " by their packages.")
  private Path program = Path.of("");

  @Parameters(
      index = "1..*",
      arity = "0..*",
      paramLabel = "ARGUMENT",
      description = "Arguments of the program. Write -- before those that begin with -.")
  private List<String> arguments = new ArrayList<>();

  @Mixin private RankOptions ranks = new RankOptions();

  @Option(
      names = {"--class-path", "-cp"},
      paramLabel = "PATH",
      description = "Jars and folders of classes that the program needs, with ':' between them.")
  private @Nullable String classPath;

  @Mixin private WorkOptions work = new WorkOptions();

  @Spec private CommandSpec spec = CommandSpec.create();

  /// Prints what the ranks print. Input of rank 0 comes from standard input.
  private record Printed(PrintWriter out, PrintWriter err, BufferedReader in)
      implements CellOutput {
    @Override
    public void stdout(String text) {
      out.print(text);
      out.flush();
    }

    @Override
    public void stderr(String text) {
      err.print(text);
      err.flush();
    }

    @Override
    public void display(MimeBundle bundle, String displayId) {
      if (!bundle.data().containsKey(MimeBundle.PROGRESS)) {
        stdout(bundle.text().stripTrailing() + "\n");
      } else if (!bundle.data().containsKey(MimeBundle.HTML)) {
        // A note, such as the tuning that auto takes, and no bar.
        stderr(bundle.text().stripTrailing() + "\n");
      }
    }

    @Override
    public String readLine(String prompt) throws IOException {
      stdout(prompt);
      var line = in.readLine();
      if (line == null) {
        throw new IOException("standard input has ended");
      }
      return line;
    }
  }

  @Override
  public Integer call() throws IOException {
    var limits = work.limits(null);
    var added = classPath();
    var env = Env.here();
    var home = WorkingDirectory.called();
    var options = work.session(ranks.session(env, env.machine(), home));
    var err = spec.commandLine().getErr();
    var stop = new StopRequest();
    try (var compiled = Program.compile(program, added, err)) {
      var facts = new RunFacts(RunCommand.arguments(spec), home).program(program);
      var failure =
          SignalledSession.run(
              options,
              stop::request,
              session -> {
                session.recordIn(new Experiment(home.resolve("runs"), _ -> facts.of(options, env)));
                added.forEach(session::addToClassPath);
                var ended = run(compiled, session, limits, stop);
                // A signal ends the process as soon as this work has ended.
                ended.ifPresent(why -> print(why, err));
                return ended;
              });
      return failure.map(CellAttempt::exitCode).orElse(ExitCode.OK).code();
    }
  }

  private static void print(CellFailure failure, PrintWriter err) {
    failure.traceback().stream().filter(line -> !line.startsWith("%restart")).forEach(err::println);
    err.flush();
  }

  private List<Path> classPath() {
    if (classPath == null) {
      return List.of();
    }
    var all = Stream.of(classPath.split(File.pathSeparator, -1)).map(WorkingDirectory::resolve);
    var entries = all.map(Path::toAbsolutePath).toList();
    entries.stream()
        .filter(Files::notExists)
        .findFirst()
        .ifPresent(
            entry -> {
              throw new BraidException(
                  "--class-path must name jars and folders but %s does not exist; check the path"
                      .formatted(entry));
            });
    return entries;
  }

  private Optional<CellFailure> run(
      Program compiled, Session session, TimeLimits limits, StopRequest stop) {
    session.add(compiled);
    var words =
        Stream.concat(Stream.of(compiled.name()), arguments.stream())
            .map(word -> new JsonPrimitive(word).toString())
            .collect(Collectors.joining(", "));
    var in = new BufferedReader(new InputStreamReader(System.in, Charset.defaultCharset()));
    var printed = new Printed(spec.commandLine().getOut(), spec.commandLine().getErr(), in);
    return new CellAttempt(
            session,
            new Cell(
                String.valueOf(compiled.file().getFileName()),
                "braid.launcher.rank.ProgramMain.run(" + words + ");",
                true),
            printed)
        .run(limits, stop)
        .failure();
  }
}
