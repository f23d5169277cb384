package braid.launcher.rank;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/// `System.out` or `System.err` of a rank. `close` only flushes it: otherwise all output of later
/// cells would be lost silently.
public final class StandardOutput extends PrintStream {
  private final String name;
  private boolean closed;

  StandardOutput(FileDescriptor descriptor, String name) {
    super(new PromptStream(descriptor, name), false, StandardCharsets.UTF_8);
    this.name = name;
  }

  @Override
  public void close() {
    flush();
    if (!closed) {
      closed = true;
      complain(name + " must stay open for later cells but was closed; it was flushed instead");
    }
  }

  /// Returns the message for a stream that was set to null and restored.
  public static String unset(String name) {
    return name + " must be a stream but was set to null; the original is restored";
  }

  /// Flushes a replacement of the stream, if possible.
  ///
  /// @return true if it can stay
  boolean canReplace(PrintStream stream) {
    flush();
    if (stream == null) {
      complain(unset(name));
      return false;
    }
    try {
      stream.flush();
      return true;
    } catch (RuntimeException | Error e) {
      complain(
          "%s must be a stream that can be flushed but that threw %s; the original is restored"
              .formatted(name, e.getClass().getName()));
      return false;
    }
  }

  private static void complain(String line) {
    var err = new PrintStream(new FileOutputStream(FileDescriptor.err), true);
    err.println(line);
  }
}
