package braid.launcher.cli.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import braid.model.BackendKind;
import braid.model.ContextParallel;
import braid.model.GemmSpec;
import braid.model.Method;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class AbilityTableTest {
  private static final int COLUMNS = 100;

  private static Ability yes(String task, String way, String memory, String note) {
    return new Ability(task, way, "copy_engine", memory, true, "a thread", note);
  }

  private static Ability no(String task, String way, String memory, String reason) {
    return new Ability(task, way, "copy_engine", memory, false, "", reason);
  }

  @Test
  void equalAnswersArePrintedOnceAndHolesStay() {
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
            no("dance", "", "native", "cannot be"),
            new Ability("send", "", "library", "native", false, "", "needs CUDA"),
            new Ability("dance", "", "library", "native", false, "", "needs CUDA"));

    assertThat(
            new AbilityTable(COLUMNS, BackendKind.HOST, overlaps, List.of(), collectives).lines())
        .containsExactly(
            "Overlapped patterns on the host backend:",
            "          ring   bulk",
            "  gather  yes 1  – 2",
            "  beside  yes    –",
            "  yes  over copy_engine in native memory: a thread",
            "       not over copy_engine in ipc, nccl memory: needs CUDA",
            "Collectives:",
            "         copy_engine",
            "  send   yes",
            "  dance  – 2",
            "  yes  in native memory; not in ipc, nccl: needs CUDA",
            "  copy_engine  a thread",
            "  not by library: needs CUDA",
            "Notes:",
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

    assertThat(new AbilityTable(COLUMNS, BackendKind.HOST, overlaps, List.of(), List.of()).lines())
        .containsExactly(
            "Overlapped patterns on the host backend:",
            "          ring   bulk",
            "  gather  yes-a  yes-b",
            "  yes-a  over copy_engine in native, ipc memory: a thread",
            "  yes-b  over copy_engine in native memory: a thread",
            "         not over copy_engine in ipc memory: not yet");
  }

  @Test
  void librariesAreAColumnEach() {
    var overlaps =
        List.of(
            yes("gather", "whole", "nccl", ""),
            yes("gather", "ring", "nccl", ""),
            no("gather", "odd", "nccl", "cannot be"),
            over("gather", "whole", "native", "takes memory(NCCL)"),
            over("gather", "whole", "nccl", ""),
            over("gather", "ring", "native", "takes whole"),
            over("gather", "ring", "nccl", "takes whole"),
            over("gather", "odd", "nccl", "never told"));

    assertThat(new AbilityTable(COLUMNS, BackendKind.CUDA, overlaps, List.of(), List.of()).lines())
        .containsExactly(
            "Overlapped patterns on the cuda backend:",
            "          whole  ring  odd",
            "  gather  yes    yes   – 1",
            "  yes  over copy_engine in nccl memory: a thread",
            "Over a library:",
            "          nccl_symmetric",
            "  gather  yes",
            "  yes  whole",
            "  nccl_symmetric  NCCL",
            "  not ring: takes whole",
            "  not in native memory by nccl_symmetric: takes memory(NCCL)",
            "Notes:",
            "  1  cannot be");
  }

  private static Ability over(String task, String way, String memory, String reason) {
    return new Ability(
        task,
        way,
        "nccl_symmetric",
        memory,
        reason.isEmpty(),
        reason.isEmpty() ? "NCCL" : "",
        reason);
  }

  @ParameterizedTest
  @EnumSource(names = {"HOST", "CUDA"})
  void theTableOfAbilitiesFitsTheTerminalAndIsComplete(BackendKind backend) {
    var overlaps = Ability.overlaps(backend);
    var attentions = Ability.attentions(backend);
    var collectives = Ability.collectives(backend);
    var lines = new AbilityTable(COLUMNS, backend, overlaps, attentions, collectives).lines();

    assertThat(lines)
        .allMatch(line -> line.length() <= COLUMNS)
        .hasSizeLessThan(backend == BackendKind.HOST ? 64 : 112);
    var text = flat(String.join(" ", lines)) + " ";
    for (var pattern : GemmSpec.Pattern.values()) {
      assertThat(text).contains(" " + pattern + " ");
    }
    for (var method : Method.values()) {
      assertThat(text).contains(" " + method + " ");
    }
    for (var method : ContextParallel.Method.values()) {
      assertThat(text).contains(" " + method + " ");
    }
    for (var ability : Stream.concat(overlaps.stream(), attentions.stream()).toList()) {
      assertThat(text)
          .contains(ability.transport(), ability.memory(), ability.engine(), ability.reason());
    }
    for (var ability : collectives) {
      assertThat(text)
          .contains(" " + ability.task() + " ")
          .contains(ability.transport(), ability.memory(), ability.engine(), ability.reason());
    }
  }

  private static String flat(String text) {
    return text.replaceAll("\\s+", " ");
  }
}
