package braid.launcher.cli;

import braid.launcher.InterruptSignal;
import braid.launcher.ProcessExit;
import braid.launcher.cli.calibrate.CalibrateCommand;
import braid.launcher.cli.doctor.DoctorCommand;
import braid.launcher.cli.experiment.CompareCommand;
import braid.launcher.cli.experiment.RunsCommand;
import braid.launcher.cli.home.HostOptions;
import braid.launcher.cli.home.Installation;
import braid.launcher.cli.home.RankOptions;
import braid.launcher.cli.home.WorkingDirectory;
import braid.launcher.cli.jupyter.KernelCommand;
import braid.launcher.cli.jupyter.LabCommand;
import braid.launcher.cli.run.SignalledSession;
import braid.launcher.cli.run.VisibleText;
import braid.launcher.cli.tune.TuneCommand;
import java.nio.file.Path;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.HelpCommand;
import picocli.CommandLine.IVersionProvider;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ScopeType;
import picocli.CommandLine.Spec;

/// The `braid` command. To add a subcommand, add its class to the list, or to the services of
/// [CheckCommand].
@Command(
    name = "braid",
    description = "Tunes overlapped GEMM and communication: one notebook, run on every rank.",
    subcommands = {
      RunCommand.class,
      ExecCommand.class,
      RerunCommand.class,
      TuneCommand.class,
      CalibrateCommand.class,
      RunsCommand.class,
      CompareCommand.class,
      LabCommand.class,
      RankCommand.class,
      KernelCommand.class,
      DoctorCommand.class,
      BundleCommand.class,
      CompletionCommand.class,
      ManCommand.class,
    },
    mixinStandardHelpOptions = true,
    versionProvider = Braid.Version.class,
    synopsisSubcommandLabel = "COMMAND",
    commandListHeading = "%nCommands:%n",
    exitCodeList = {
      " 0:fine",
      " 1:a cell or a program failed",
      " 2:a mistake in the options, the parameters or the notebook; nothing was run",
      " 3:a result is not the unfused reference's",
      " 4:a time limit",
      " 5:compare: the machine differed, so nothing can be said",
      " 6:compare: something is slower",
      " 7:a notebook ran, but not as it is recorded (run --check)",
      " 138:a rank died",
    },
    footer = {
      "  braid run notebooks/02_tune_split_count.ipynb -n 4 -p splits=1,2,4,8",
      "  braid lab",
      "  braid doctor",
      "  braid selftest --quick",
    })
public final class Braid implements Runnable {
  @Option(
      names = {"-v", "--verbose"},
      scope = ScopeType.INHERIT,
      description = "Print the stack trace of an error too.")
  private boolean verbose;

  @Spec private CommandSpec spec = CommandSpec.create();

  static final class Version implements IVersionProvider {
    @Override
    public String[] getVersion() {
      var revision = Installation.revision().map(each -> " (" + each + ")").orElse("");
      return new String[] {
        "braid " + Installation.version() + revision + ", Java " + Runtime.version()
      };
    }
  }

  public static void main(String[] arguments) {
    var command = commandLine();
    WorkingDirectory.ofThisProcess();
    var execution = command.getExecutionStrategy();
    command.setExecutionStrategy(
        parsed -> {
          if (runsCells(parsed)) {
            InterruptSignal.handle(Braid::interrupted);
            ProcessExit.hold();
          }
          return execution.execute(parsed);
        });
    int code;
    try {
      code = command.execute(arguments);
    } catch (VirtualMachineError | NoClassDefFoundError | ExceptionInInitializerError e) {
      code = Errors.ended(e, ((Braid) command.getCommand()).verbose);
    }
    ProcessExit.exit(code);
  }

  /// Ends the process at Ctrl-C before a session is there to end in order.
  private static void interrupted() {
    System.err.println(SignalledSession.WHILE_STARTING);
    ProcessExit.code(SignalledSession.INTERRUPTED);
    Runtime.getRuntime().halt(SignalledSession.INTERRUPTED);
  }

  private static boolean runsCells(CommandLine.ParseResult parsed) {
    return parsed.asCommandLineList().stream()
        .map(CommandLine::getCommand)
        .anyMatch(
            command ->
                command instanceof RunCommand
                    || command instanceof ExecCommand
                    || command instanceof RerunCommand
                    || command instanceof TuneCommand
                    || command instanceof CalibrateCommand
                    || (command instanceof CompareCommand compare && compare.runsCells())
                    || (command instanceof CheckCommand check && check.runsCells()));
  }

  /// Returns the command, with one-line errors, for callers in this JVM.
  public static CommandLine commandLine() {
    var braid = new Braid();
    var line = new CommandLine(braid);
    CheckCommand.addTo(line);
    line.addSubcommand(new HelpCommand());
    formHelp(line);
    return line.setUsageHelpAutoWidth(true)
        .registerConverter(Path.class, WorkingDirectory::resolve)
        .setExecutionStrategy(Braid::execute)
        .setParameterExceptionHandler(Errors::misused)
        .setExecutionExceptionHandler(
            (e, command, parsed) -> Errors.failed(e, command, braid.verbose));
  }

  /// Gives the help of a command and its subcommands one form.
  private static void formHelp(CommandLine line) {
    var usage = line.getCommandSpec().usageMessage().sortOptions(false);
    if (!usage.exitCodeList().isEmpty()) {
      usage.exitCodeListHeading("%nExit codes:%n");
    }
    if (usage.footerHeading().isEmpty()) {
      usage.footerHeading("%nExamples:%n");
    }
    line.getSubcommands().values().forEach(Braid::formHelp);
  }

  /// Runs a command, whose texts are escaped; not the help, which has colors.
  private static int execute(CommandLine.ParseResult parsed) {
    var braid = parsed.commandSpec().commandLine();
    var help =
        parsed.asCommandLineList().stream()
            .anyMatch(
                each -> each.isUsageHelpRequested() || each.getCommand() instanceof HelpCommand);
    if (!help) {
      braid.setOut(VisibleText.to(braid.getOut())).setErr(VisibleText.to(braid.getErr()));
    }
    try {
      return new CommandLine.RunLast().execute(parsed);
    } finally {
      parsed.asCommandLineList().stream()
          .flatMap(each -> each.getCommandSpec().mixins().values().stream())
          .map(CommandSpec::userObject)
          .forEach(Braid::close);
    }
  }

  /// Ends what the options of a command have started.
  private static void close(Object options) {
    switch (options) {
      case RankOptions ranks -> ranks.close();
      case HostOptions hosts -> hosts.close();
      default -> {} // starts nothing
    }
  }

  @Override
  public void run() {
    throw new ParameterException(spec.commandLine(), "a command is missing");
  }
}
