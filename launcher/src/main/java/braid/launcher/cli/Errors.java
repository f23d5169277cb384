package braid.launcher.cli;

import braid.launcher.ExitCode;
import braid.launcher.Nearest;
import braid.model.BraidException;
import java.io.IOException;
import picocli.CommandLine;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.UnmatchedArgumentException;

/// What the user is told when a command cannot do its work: one line, on stderr. A stack trace is
/// for a defect of Braid, or for who asks for it.
final class Errors {
  private Errors() {}

  /// An option, argument or subcommand that the command does not have.
  static int misused(ParameterException misuse, String[] arguments) {
    var err = misuse.getCommandLine().getErr();
    err.println(
        "braid: %s (see %s --help)"
            .formatted(
                oneLine(what(misuse)), misuse.getCommandLine().getCommandSpec().qualifiedName()));
    err.flush();
    return ExitCode.USAGE.code();
  }

  private static String what(ParameterException misuse) {
    var message = String.valueOf(misuse.getMessage());
    if (!(misuse instanceof UnmatchedArgumentException unmatched)
        || unmatched.getUnmatched().isEmpty()) {
      return message;
    }
    var argument = unmatched.getUnmatched().getFirst();
    var spec = misuse.getCommandLine().getCommandSpec();
    if (argument.startsWith("-")) {
      var options = spec.optionsMap().keySet();
      return "%s is no option of %s; did you mean %s?"
          .formatted(argument, spec.qualifiedName(), Nearest.to(argument, options));
    }
    var commands = spec.subcommands().keySet();
    return commands.isEmpty()
        ? "%s takes nothing more, but was given %s".formatted(spec.qualifiedName(), argument)
        : "command must be one of %s but was %s; did you mean %s?"
            .formatted(String.join(", ", commands), argument, Nearest.to(argument, commands));
  }

  static int failed(Exception failure, CommandLine command, boolean verbose) {
    var err = command.getErr();
    err.println("braid: " + line(failure));
    if (verbose || isDefect(failure)) {
      failure.printStackTrace(err);
    }
    err.flush();
    return failure instanceof BraidException ? ExitCode.USAGE.code() : ExitCode.CELL_FAILED.code();
  }

  /// The JVM could not go on, most often because a limit of the system was met.
  static int ended(Error failure, boolean verbose) {
    System.err.println(
        "braid: the JVM failed: %s; are the limits of open files, processes and memory too low? (ulimit -n, -u, -v; -v prints the stack trace)"
            .formatted(oneLine(failure.toString())));
    if (verbose) {
      failure.printStackTrace(System.err);
    }
    return ExitCode.CELL_FAILED.code();
  }

  private static boolean isDefect(Exception failure) {
    return !(failure instanceof BraidException || failure instanceof IOException);
  }

  private static String line(Exception failure) {
    return switch (failure) {
      case BraidException mistake -> oneLine(String.valueOf(mistake.getMessage()));
      // most of them say no more than a path
      case IOException io -> io.getClass().getSimpleName() + ": " + oneLine(io.getMessage() + "");
      default -> "this is a defect of Braid: " + failure;
    };
  }

  private static String oneLine(String message) {
    return message.strip().replaceAll("\\s*\\R\\s*", " ");
  }
}
