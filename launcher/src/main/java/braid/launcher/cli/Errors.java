package braid.launcher.cli;

import braid.launcher.ExitCode;
import braid.launcher.Nearest;
import braid.launcher.cli.run.SignalledSession;
import braid.launcher.cli.run.VisibleText;
import braid.model.BraidException;
import java.io.IOException;
import java.nio.file.InvalidPathException;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.UnmatchedArgumentException;

/// Errors of commands: one line on stderr. A stack trace is printed for a defect of Braid, or on
/// request.
final class Errors {
  private Errors() {}

  /// Reports an option, argument or subcommand that the command does not have.
  static int misused(ParameterException misuse, String[] arguments) {
    var err = VisibleText.to(misuse.getCommandLine().getErr());
    err.println(
        "braid: %s (see %s --help)"
            .formatted(
                oneLine(describe(misuse)),
                misuse.getCommandLine().getCommandSpec().qualifiedName()));
    err.flush();
    return ExitCode.USAGE.code();
  }

  private static String describe(ParameterException misuse) {
    var message = String.valueOf(misuse.getMessage());
    var spec = misuse.getCommandLine().getCommandSpec();
    if (message.startsWith("Unknown subcommand")) { // of help
      return unknown(spec.root(), String.valueOf(misuse.getValue()));
    }
    if (!(misuse instanceof UnmatchedArgumentException unmatched)
        || unmatched.getUnmatched().isEmpty()) {
      return message;
    }
    var argument = unmatched.getUnmatched().getFirst();
    if (argument.startsWith("-")) {
      var options = spec.optionsMap().keySet();
      return "%s is not an option of %s; did you mean %s?"
          .formatted(argument, spec.qualifiedName(), Nearest.to(argument, options));
    }
    return spec.subcommands().isEmpty()
        ? "%s takes no more arguments but got %s".formatted(spec.qualifiedName(), argument)
        : unknown(spec, argument);
  }

  private static String unknown(CommandSpec spec, String command) {
    var commands = spec.subcommands().keySet();
    return "command must be one of %s but was %s; did you mean %s?"
        .formatted(String.join(", ", commands), command, Nearest.to(command, commands));
  }

  static int failed(Exception failure, CommandLine command, boolean verbose) {
    if (failure instanceof SignalledSession.StartInterrupted) {
      return SignalledSession.INTERRUPTED; // reported at the signal
    }
    var err = VisibleText.to(command.getErr());
    err.println("braid: " + line(failure));
    if (verbose || isDefect(failure)) {
      failure.printStackTrace(err);
    }
    err.flush();
    return isMistake(failure) ? ExitCode.USAGE.code() : ExitCode.CELL_FAILED.code();
  }

  /// Reports a JVM failure, most often because a system limit was reached.
  static int ended(Error failure, boolean verbose) {
    System.err.println(
        "braid: the JVM failed: %s; are the limits of open files, processes and memory too low? (ulimit -n, -u, -v; -v prints the stack trace)"
            .formatted(oneLine(failure.toString())));
    if (verbose) {
      failure.printStackTrace(System.err);
    }
    return ExitCode.CELL_FAILED.code();
  }

  private static boolean isMistake(Exception failure) {
    return failure instanceof BraidException || failure instanceof InvalidPathException;
  }

  private static boolean isDefect(Exception failure) {
    return !(isMistake(failure) || failure instanceof IOException);
  }

  private static String line(Exception failure) {
    return switch (failure) {
      case BraidException mistake -> oneLine(String.valueOf(mistake.getMessage()));
      case InvalidPathException path ->
          "a path must be a name that files can have but was %s (%s); check what names it"
              .formatted(VisibleText.line(path.getInput()), path.getReason());
      // most messages are only a path
      case IOException io -> io.getClass().getSimpleName() + ": " + oneLine(io.getMessage() + "");
      default -> "this is a defect of Braid: " + failure;
    };
  }

  private static String oneLine(String message) {
    return message.strip().replaceAll("\\s*\\R\\s*", " ");
  }
}
