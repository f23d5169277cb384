package braid.launcher.cell;

import braid.model.MimeBundle;
import java.io.IOException;

/// Where a cell's output goes while it runs. Calls come from one thread at a time, in the order
/// they are to be shown; text arrives already coalesced.
public interface CellOutput {
  /// Text the ranks printed, already merged and prefixed.
  void stdout(String text);

  void stderr(String text);

  /// Something to show. A non-empty `displayId` names it, so that `update` can replace it later.
  void display(MimeBundle bundle, String displayId);

  void update(MimeBundle bundle, String displayId);

  /// A line from the user, for rank 0's `System.in`.
  ///
  /// @throws IOException where nobody can be asked, with the reason
  String readLine(String prompt) throws IOException;
}
