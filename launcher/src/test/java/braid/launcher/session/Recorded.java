package braid.launcher.session;

import braid.launcher.cell.CellOutput;
import braid.model.MimeBundle;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/// Records a cell's output for a test.
final class Recorded implements CellOutput {
  final StringBuilder out = new StringBuilder();
  final StringBuilder err = new StringBuilder();
  final List<String> shown = new ArrayList<>();
  final List<String> notices = new ArrayList<>();

  /// Line that a cell reads; null keeps the cell waiting for it.
  @Nullable String input = "";

  Runnable onStdout = () -> {};
  Runnable onStderr = () -> {};

  @Override
  public void stdout(String text) {
    out.append(text);
    onStdout.run();
  }

  @Override
  public void stderr(String text) {
    err.append(text);
    onStderr.run();
  }

  @Override
  public void notice(String line) {
    notices.add(line);
  }

  @Override
  public void display(MimeBundle bundle, String displayId) {
    shown.add(bundle.text());
  }

  @Override
  public void update(MimeBundle bundle, String displayId) {
    shown.add("update " + displayId + ": " + bundle.text());
  }

  @Override
  public String readLine(String prompt) {
    return input != null ? input : new CompletableFuture<String>().join();
  }
}
