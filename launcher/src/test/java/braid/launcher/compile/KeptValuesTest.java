package braid.launcher.compile;

import static org.assertj.core.api.Assertions.assertThat;

import jdk.jshell.execution.LocalExecutionControl;
import org.junit.jupiter.api.Test;

class KeptValuesTest {
  @Test
  void valuesOfExpressionsDoNotPileUpButThoseInUseStay() {
    try (var compiler = new CellCompiler(new LocalExecutionControl())) {
      var first = compiler.eval("\"kept\" + 1").getFirst().snippet();
      var name = compiler.shell().variables().findFirst().orElseThrow().name();
      compiler.eval("String again() { return " + name + "; }");
      for (int i = 0; i < 30; i++) {
        compiler.eval(i + " + 1");
      }
      assertThat(compiler.shell().status(first).isActive()).isTrue();
      var again = compiler.eval("if (!again().equals(\"kept1\")) throw new Error();").getFirst();
      assertThat(again.exception()).isNull();
      assertThat(compiler.shell().variables().count()).isBetween(2L, 10L);
    }
  }
}
