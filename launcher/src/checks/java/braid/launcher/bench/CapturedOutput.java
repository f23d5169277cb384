package braid.launcher.bench;

import braid.launcher.cell.CellOutput;
import braid.model.MimeBundle;

/// Collects the output of a cell, so that a benchmark can check it.
final class CapturedOutput implements CellOutput {
  private final StringBuilder printed = new StringBuilder();

  public String printed() {
    return printed.toString();
  }

  @Override
  public void stdout(String text) {
    printed.append(text);
  }

  @Override
  public void stderr(String text) {
    printed.append(text);
  }

  @Override
  public void display(MimeBundle bundle, String displayId) {
    printed.append(bundle.text());
  }

  @Override
  public void update(MimeBundle bundle, String displayId) {
    printed.append(bundle.text());
  }
}
