package braid.launcher.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedWriter;
import java.io.PrintWriter;
import java.io.StringWriter;
import org.junit.jupiter.api.Test;

class VisibleTextTest {
  /// A note at the end of a command is not lost.
  @Test
  void aLineIsSeenWithoutAFlush() {
    var seen = new StringWriter();
    var text = VisibleText.to(new PrintWriter(new BufferedWriter(seen)));
    text.println("note: \u001b");
    assertThat(seen).hasToString("note: \\u001b\n");
  }
}
