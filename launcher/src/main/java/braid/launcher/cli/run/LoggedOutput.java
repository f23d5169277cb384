package braid.launcher.cli.run;

import java.io.PrintWriter;

/// Progress for a log, with the output of the cells as it arrives.
final class LoggedOutput extends PlainProgress {
  private boolean inLine;

  LoggedOutput(PrintWriter log) {
    super(log);
  }

  @Override
  public synchronized void cellPrinted(String text) {
    var terminal = VisibleText.terminal(log);
    terminal.print(text);
    terminal.flush();
    inLine = !text.endsWith("\n");
    heard();
  }

  /// Prints nothing: the line is among the output.
  @Override
  public void cellNoted(String line) {}

  /// Prints nothing: the result is among the output.
  @Override
  public void cellMeasured(String line) {}

  @Override
  synchronized void say(String line) {
    if (inLine) {
      log.println();
      inLine = false;
    }
    super.say(line);
  }
}
