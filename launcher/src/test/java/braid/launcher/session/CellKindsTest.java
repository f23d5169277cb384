package braid.launcher.session;

import static org.assertj.core.api.Assertions.assertThat;

import braid.launcher.cell.Cell;
import braid.model.BackendKind;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;

/// Rank cells and `%%front` cells: names of their own, and evidence that goes from one to the
/// other.
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class CellKindsTest {
  private Session session;

  @BeforeAll
  void start(@TempDir Path home) {
    session = Session.start(new SessionOptions(2, BackendKind.HOST, Optional.empty(), home));
  }

  @AfterAll
  void close() {
    session.close();
  }

  private List<String> error(String source) {
    return session
        .run(new Cell("cell", source), new Recorded())
        .failure()
        .orElseThrow()
        .traceback();
  }

  private String result(String source) {
    var outcome = session.run(new Cell("cell", source), new Recorded());
    assertThat(outcome.failure()).isEmpty();
    return outcome.result().map(bundle -> bundle.text()).orElse("");
  }

  @Test
  void aNameOfTheOtherKindOfCellsIsExplained() {
    var profiles = "  `profiles` exists in %%front cells only; begin the cell with %%front";
    // Before the first %%front cell, and after it.
    assertThat(error("profiles.study()")).contains(profiles);
    result("%%front\nvar chosen = 3;");
    assertThat(error("profiles")).contains(profiles);
    assertThat(error("int later = chosen + 1;"))
        .contains("  `chosen` exists in %%front cells only; begin the cell with %%front");

    assertThat(error("%%front\nworld.size()"))
        .contains("  `world` exists in rank cells only; leave out %%front");
    result("var onRanks = 4;");
    assertThat(error("%%front\nonRanks + 1"))
        .contains("  `onRanks` exists in rank cells only; leave out %%front");
    session.restart();
    assertThat(error("%%front\nonRanks + 1")).noneMatch(line -> line.contains("exists in"));
  }

  @Test
  void namesAreCompletedByTheKindOfTheCell() {
    assertThat(complete("prof")).isEmpty();
    assertThat(complete("%%front\nprof")).contains("profiles");
    assertThat(complete("worl")).contains("world");
    assertThat(complete("%%front\nworl")).isEmpty();
  }

  private List<String> complete(String source) {
    return session.assistant().complete(source, source.length()).replacements();
  }

  @Test
  void errorsSuggestNamesOfTheApiAndOfTheUser() {
    result("int tokenCount = 3;");
    assertThat(error("allgatherGemm(3, 4, 5)"))
        .contains("  did you mean `GemmSpec.allGatherGemm`?");
    assertThat(error("Tunner.on(world)")).contains("  did you mean `Tuner`?");
    assertThat(error("bf16")).contains("  did you mean `BF16`?");
    assertThat(error("tokenCuont")).contains("  did you mean `tokenCount`?");
    assertThat(error("new Pipeline(world)").getFirst())
        .endsWith("error: Pipeline has no public constructor: begin with Pipeline.on(world)");
    assertThat(error("%%front\nnew Pipeline(3)").getFirst())
        .endsWith("error: Pipeline has no public constructor: begin with Pipeline.on(…)");
    assertThat(error("completelyOther(3)")).noneMatch(line -> line.contains("did you mean"));
  }

  @Test
  void theLatestStudyOfEachProblemIsKept() {
    result(
        """
        for (int m : new int[] {8, 16, 8}) {
          Tuner.on(world).gemm(GemmSpec.allGatherGemm(m, 8, 8)).splits(1, 2).repeats(6 + m / 8).run();
        }
        Tuner.on(world).steps("nothing").step("a", () -> {}).step("b", () -> {}).repeats(6).run();
        """);
    assertThat(result("%%front\nprofiles.all().size()")).isEqualTo("4");
    assertThat(
            result(
                "%%front\nprofiles.studies().stream().map(s -> s.problem().get(\"m\") + \" \" + s.repeats()).toList()"))
        .isEqualTo("[8 7, 16 8, null 6]");
    assertThat(result("%%front\nStudy.compared(profiles.studies().subList(0, 2)).columnNames()"))
        .startsWith("[m, method, splits, streams, transport, verdict, median ms");
  }
}
