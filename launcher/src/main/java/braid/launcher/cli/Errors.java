package braid.launcher.cli;

import braid.BraidException;
import braid.launcher.ExitCode;
import java.io.IOException;
import java.util.List;
import picocli.CommandLine;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.UnmatchedArgumentException;

/// What the user is told when a command cannot do its work: one line, on stderr. A stack trace is
/// for a defect of Braid, or for who asks for it.
final class Errors {
  private Errors() {}

  /// An option or argument that the command does not have, or not so.
  static int misused(ParameterException misuse, String[] arguments) {
    var command = misuse.getCommandLine();
    var name = command.getCommandSpec().qualifiedName();
    var err = command.getErr();
    err.println(
        "braid: %s%s; see %s --help"
            .formatted(oneLine(String.valueOf(misuse.getMessage())), suggestion(misuse), name));
    err.flush();
    return ExitCode.USAGE.code();
  }

  private static String suggestion(ParameterException misuse) {
    if (misuse instanceof UnmatchedArgumentException unmatched) {
      List<String> similar = unmatched.getSuggestions();
      if (!similar.isEmpty()) {
        return " (did you mean " + String.join(" or ", similar) + "?)";
      }
    }
    return "";
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
