package braid.launcher.bench;

import braid.launcher.cell.CellOutput;
import braid.model.MimeBundle;
import java.io.IOException;

/// Keeps what a cell prints, so that a benchmark can tell that it really ran.
public final class Captured implements CellOutput {
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

  @Override
  public String readLine(String prompt) throws IOException {
    throw new IOException("a benchmark asks nobody");
  }
}
