package braid.launcher.cell;

import braid.model.MimeBundle;
import java.io.IOException;

/// Receives a cell's output while it runs; what is not overridden is ignored. Calls come from one
/// thread at a time, in display order; text arrives already coalesced.
public interface CellOutput {
  /// Shows text of the ranks, already merged and prefixed.
  default void stdout(String text) {}

  default void stderr(String text) {}

  /// Receives a line of stderr about the ranks themselves, beside `stderr` itself: for clients that
  /// show a cell's output only when it ends.
  default void notice(String line) {}

  /// Shows a display. A non-empty `displayId` names it, so that `update` can replace it later.
  default void display(MimeBundle bundle, String displayId) {}

  default void update(MimeBundle bundle, String displayId) {}

  /// Reads a line from the user, for rank 0's `System.in`.
  ///
  /// @throws IOException if input is unavailable, with the reason
  default String readLine(String prompt) throws IOException {
    throw new IOException("this command provides no input");
  }
}
