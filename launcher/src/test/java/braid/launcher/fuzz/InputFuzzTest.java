package braid.launcher.fuzz;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assertions.fail;

import braid.internal.selftest.Sweep;
import braid.launcher.notebook.Notebook;
import braid.launcher.notebook.Notebooks;
import braid.launcher.notebook.Notebooks.Code;
import braid.launcher.notebook.ParameterCell;
import braid.launcher.notebook.parameters.Parameters;
import braid.model.BraidException;
import java.util.List;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/// Randomly corrupted notebooks and parameters are accepted whole or refused in one line.
@Execution(ExecutionMode.CONCURRENT)
class InputFuzzTest {
  private static final int EACH = Sweep.times(200, 1_000);

  private static final String DECLARING =
      """
      int m = 4; long big = 5_000L; double share = .5; boolean quick = true;
      String name = "a"; int[] splits = {1, 2}; List<String> names = List.of("x");
      Map<String, Integer> sizes = Map.of("m", 1); Integer boxed = null; var any = 3;
      """;

  private static final String NOTEBOOK =
      Notebooks.json(
          new Code("import java.util.*;"),
          new Code(DECLARING, "parameters"),
          new Code("int m = 3;", "injected-parameters"),
          new Code("m + 1\n// äöü 🧶", "raises-exception"));

  private static final String PARAMETERS =
      """
      # what to run
      m: 8
      big: 9000000000
      share: 1e-3
      quick: false
      name: "a b"
      splits: [1, 2, 4]
      names:
        - x
        - 'y'
      sizes: {m: 1, n: 2}
      boxed: ~
      any: .5
      """;

  private interface Attempt {
    void on(String broken);
  }

  /// @return number of accepted inputs, which shows whether the mutations are useful
  private static int each(String original, UnaryOperator<String> mutation, Attempt attempt) {
    int taken = 0;
    for (int i = 0; i < EACH; i++) {
      var broken = mutation.apply(original);
      try {
        attempt.on(broken);
        taken++;
      } catch (BraidException e) {
        assertThat(e.getMessage()).as(shown(broken)).isNotBlank().doesNotContain("\n");
      } catch (RuntimeException | Error e) {
        fail("-Dbraid.seed=" + Mutations.SEED + ", number " + i + ": " + shown(broken), e);
      }
    }
    return taken;
  }

  private static String shown(String broken) {
    return broken.length() < 3_000 ? broken : broken.substring(0, 200) + "…";
  }

  /// Does everything that `braid run` does before any rank starts, and prepares the output to save.
  private static void prepare(String notebook, Parameters parameters) {
    var read = Notebook.parse(notebook, "broken.ipynb");
    read.requireJava();
    var _ = ParameterCell.inject(parameters, read);
    for (var cell : read.cells()) {
      var _ = cell.firstLine() + cell.source() + cell.id() + cell.hasTag("parameters");
      if (cell.isCode()) {
        cell.clearOutputs();
        cell.papermill().addProperty("status", "completed");
      }
    }
    assertThat(Notebook.parse(read.toJson(), "again").cells()).hasSameSizeAs(read.cells());
  }

  private static Parameters some() {
    return Parameters.given().typed("m=8").typed("names=a,b").raw("name=x").build();
  }

  @Test
  void notebooksOfBrokenText() {
    int taken = each(NOTEBOOK, new Mutations(Mutations.SEED)::text, t -> prepare(t, some()));
    assertThat(taken).isBetween(1, EACH - 1);
  }

  @Test
  void notebooksOfValuesThatDoNotBelong() {
    int taken = each(NOTEBOOK, new Mutations(Mutations.SEED + 1)::json, t -> prepare(t, some()));
    assertThat(taken).isBetween(1, EACH - 1);
  }

  @Test
  void brokenParameterFilesAreRefused() {
    int taken =
        each(
            PARAMETERS,
            new Mutations(Mutations.SEED + 2)::text,
            text -> prepare(NOTEBOOK, Parameters.given().yaml(text).build()));
    assertThat(taken).isBetween(1, EACH - 1);
  }

  @Test
  void brokenAssignmentsAreRefused() {
    var mutations = new Mutations(Mutations.SEED + 3);
    var assignments =
        List.of(
            "m=8",
            "big=9000000000",
            "share=1e-3",
            "quick=false",
            "splits=1,2,4",
            "any=[1, {a: 2}]",
            "names=[x, y]",
            "sizes={m: 1}",
            "boxed=null",
            "name=a=b");
    int taken =
        each(
            "",
            _ -> mutations.text(mutations.one(assignments)),
            text -> prepare(NOTEBOOK, Parameters.given().typed(text).build()));
    assertThat(taken).isBetween(1, EACH - 1);
  }

  @Test
  void cellsThatDeclareParameters() {
    int taken =
        each(
            DECLARING,
            new Mutations(Mutations.SEED + 4)::text,
            text ->
                prepare(
                    Notebooks.json(new Code(text, "parameters")),
                    Parameters.given().typed("m=2").build()));
    assertThat(taken).isBetween(1, EACH - 1);
  }
}
