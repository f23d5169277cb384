package braid.launcher.kernel.output;

import braid.launcher.cell.CellFailure;
import braid.launcher.kernel.channels.MalformedMessage;
import braid.model.BraidException;
import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;
import java.util.concurrent.CompletionException;

/// A failure in the format of replies and `error` messages. The traceback is coloured lightly: the
/// error stands out, stack frames are faint.
public final class ErrorContent {
  private static final String RED = "\u001b[1;31m";
  private static final String FAINT = "\u001b[2m";
  private static final String PLAIN = "\u001b[0m";

  private ErrorContent() {}

  public static JsonObject of(CellFailure failure) {
    return content(failure.name(), failure.message(), failure.traceback());
  }

  /// Returns the content of an exception. The user's mistakes are one line; anything else is a
  /// defect of Braid, includes its stack trace, and is also logged.
  public static JsonObject of(Throwable thrown) {
    var failure =
        thrown instanceof CompletionException && thrown.getCause() != null
            ? thrown.getCause()
            : thrown;
    var message = String.valueOf(failure.getMessage());
    if (failure instanceof BraidException || failure instanceof MalformedMessage) {
      return content(failure.getClass().getSimpleName(), message, List.of(message));
    }
    var trace = stackTrace(failure);
    System.err.print("braid kernel: " + trace);
    return content(failure.getClass().getName(), message, trace.lines().toList());
  }

  private static String stackTrace(Throwable failure) {
    var text = new StringWriter();
    failure.printStackTrace(new PrintWriter(text));
    return text.toString();
  }

  private static JsonObject content(String name, String message, List<String> traceback) {
    var lines = new JsonArray();
    for (int i = 0; i < traceback.size(); i++) {
      lines.add(coloured(traceback.get(i), i == 0));
    }
    var content = new JsonObject();
    content.addProperty("status", "error");
    content.addProperty("ename", name);
    content.addProperty("evalue", message);
    content.add("traceback", lines);
    return content;
  }

  private static String coloured(String line, boolean first) {
    if (first || line.stripLeading().startsWith("Caused by")) {
      return RED + line + PLAIN;
    }
    return line.stripLeading().startsWith("at ") ? FAINT + line + PLAIN : line;
  }
}
