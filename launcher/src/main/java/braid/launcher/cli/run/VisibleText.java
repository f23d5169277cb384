package braid.launcher.cli.run;

import java.io.FilterWriter;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.Writer;

/// Text of a command for its terminal. Names in manifests, kernelspecs and notebooks may contain
/// characters that drive a terminal or reorder a line; they are printed as escapes, which are also
/// valid in JSON.
public final class VisibleText extends PrintWriter {
  private final PrintWriter terminal;

  private VisibleText(PrintWriter terminal) {
    // A line that is the last one is seen without a flush.
    super(new Escapes(terminal), /* autoFlush= */ true);
    this.terminal = terminal;
  }

  /// Returns a writer that escapes.
  public static PrintWriter to(PrintWriter terminal) {
    return terminal instanceof VisibleText ? terminal : new VisibleText(terminal);
  }

  /// Returns the terminal itself, for control sequences of the command and output of cells.
  static PrintWriter terminal(PrintWriter writer) {
    return writer instanceof VisibleText visible ? visible.terminal : writer;
  }

  /// Returns the text on one line, with escapes.
  public static String line(String text) {
    var line = new StringBuilder();
    text.chars().forEach(c -> add(line, (char) c, c == '\n' || c == '\t' || isHidden((char) c)));
    return line.toString();
  }

  private static void add(StringBuilder text, char c, boolean escaped) {
    text.append(escaped ? "\\u%04x".formatted((int) c) : c);
  }

  private static boolean isHidden(char c) {
    boolean reorders = (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
    return reorders || (Character.isISOControl(c) && c != '\n' && c != '\t');
  }

  private static final class Escapes extends FilterWriter {
    Escapes(Writer terminal) {
      super(terminal);
    }

    @Override
    public void write(int c) throws IOException {
      write(new char[] {(char) c}, 0, 1);
    }

    @Override
    public void write(String text, int start, int length) throws IOException {
      write(text.toCharArray(), start, length);
    }

    @Override
    public void write(char[] text, int start, int length) throws IOException {
      var visible = new StringBuilder(length);
      for (int i = start; i < start + length; i++) {
        add(visible, text[i], isHidden(text[i]));
      }
      out.write(visible.toString());
    }
  }
}
