package braid.launcher.cell;

import braid.model.MimeBundle;
import java.io.IOException;

/// Receives a cell's output while it runs. Calls come from one thread at a time, in display order;
/// text arrives already coalesced.
public interface CellOutput {
  /// Shows text of the ranks, already merged and prefixed.
  void stdout(String text);

  void stderr(String text);

  /// Receives a line of stderr about the ranks themselves, beside `stderr` itself: for clients that
  /// show a cell's output only when it ends.
  default void notice(String line) {}

  /// Shows a display. A non-empty `displayId` names it, so that `update` can replace it later.
  void display(MimeBundle bundle, String displayId);

  void update(MimeBundle bundle, String displayId);

  /// Reads a line from the user, for rank 0's `System.in`.
  ///
  /// @throws IOException if input is unavailable, with the reason
  String readLine(String prompt) throws IOException;
}
