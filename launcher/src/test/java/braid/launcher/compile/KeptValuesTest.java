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

  @Test
  void everyTwoThousandSnippetsTheUserReadsTheirCost() {
    try (var compiler = new CellCompiler(new LocalExecutionControl())) {
      compiler.eval("int a = 1, b = 2;");
      compiler.eval("a + b");
      assertThat(compiler.compiled()).isEqualTo(3);
    }
    assertThat(CellCompiler.growth(0, 1_999)).isEmpty();
    assertThat(CellCompiler.growth(2_000, 2_001)).isEmpty();
    assertThat(CellCompiler.growth(1_999, 2_000).orElseThrow())
        .startsWith("note: this session has compiled 2000 statements")
        .endsWith("%restart starts a new session");
    assertThat(CellCompiler.growth(1_999, 6_001).orElseThrow()).contains("6000");
  }
}
