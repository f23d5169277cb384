package braid.launcher.cli.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import braid.GemmSpec;
import braid.Method;
import java.util.List;
import org.junit.jupiter.api.Test;

class AbilityTableTest {
  private static final int COLUMNS = 100;

  private static Ability yes(String task, String way, String memory, String note) {
    return new Ability(task, way, "copy_engine", memory, true, "a thread", note);
  }

  private static Ability no(String task, String way, String memory, String why) {
    return new Ability(task, way, "copy_engine", memory, false, "", why);
  }

  @Test
  void equalAnswersAreSaidOnceAndHolesAreHoles() {
    var overlaps =
        List.of(
            yes("gather", "ring", "native", "by rows"),
            no("gather", "ring", "ipc", "needs CUDA"),
            no("gather", "ring", "nccl", "needs CUDA"),
            no("gather", "bulk", "native", "cannot be"),
            no("gather", "bulk", "ipc", "cannot be"),
            no("gather", "bulk", "nccl", "cannot be"),
            yes("beside", "ring", "native", ""),
            no("beside", "ring", "ipc", "needs CUDA"),
            no("beside", "ring", "nccl", "needs CUDA"));
    var collectives =
        List.of(
            yes("send", "", "native", ""),
            no("send", "", "ipc", "needs CUDA"),
            no("send", "", "nccl", "needs CUDA"),
            no("dance", "", "native", "cannot be"));

    assertThat(new AbilityTable("host", COLUMNS, overlaps, collectives).lines())
        .containsExactly(
            "What can be overlapped, on the host backend:",
            "          ring   bulk",
            "  gather  yes 1  – 2",
            "  beside  yes    –",
            "Collectives by themselves:",
            "  yes  send",
            "  –  dance: cannot be",
            "Where:",
            "  yes  over copy_engine in native memory: a thread",
            "       not over copy_engine in ipc, nccl memory: needs CUDA",
            "  1  by rows",
            "  2  cannot be");
  }

  @Test
  void unequalAnswersAreToldApart() {
    var overlaps =
        List.of(
            yes("gather", "ring", "native", ""),
            yes("gather", "ring", "ipc", ""),
            yes("gather", "bulk", "native", ""),
            no("gather", "bulk", "ipc", "not yet"));

    assertThat(new AbilityTable("host", COLUMNS, overlaps, List.of()).lines())
        .containsExactly(
            "What can be overlapped, on the host backend:",
            "          ring   bulk",
            "  gather  yes-a  yes-b",
            "Where:",
            "  yes-a  over copy_engine in native, ipc memory: a thread",
            "  yes-b  over copy_engine in native memory: a thread",
            "         not over copy_engine in ipc memory: not yet");
  }

  @Test
  void whatBraidCanDoFitsTheTerminalAndLeavesNothingOut() {
    var lines =
        new AbilityTable("host", COLUMNS, Ability.overlaps("host"), Ability.collectives("host"))
            .lines();

    assertThat(lines).allMatch(line -> line.length() <= COLUMNS).hasSizeLessThan(40);
    var text = flat(String.join(" ", lines)) + " ";
    for (var pattern : GemmSpec.Pattern.values()) {
      assertThat(text).contains(" " + pattern + " ");
    }
    for (var method : Method.values()) {
      assertThat(text).contains(" " + method + " ");
    }
    for (var ability : Ability.overlaps("host")) {
      assertThat(text)
          .contains(ability.transport(), ability.memory(), ability.engine(), ability.reason());
    }
    for (var ability : Ability.collectives("host")) {
      assertThat(text).containsPattern(" " + ability.task() + "[,: ]");
    }
  }

  private static String flat(String text) {
    return text.replaceAll("\\s+", " ");
  }
}
