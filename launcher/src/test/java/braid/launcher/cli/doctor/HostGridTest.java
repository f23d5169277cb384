package braid.launcher.cli.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import braid.Capabilities;
import braid.launcher.cli.Ran;
import braid.model.BackendKind;
import braid.model.Method;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("F8")
class HostGridTest {
  private static final int COLUMNS = 100;

  @Test
  void kindsAndMethodsAreListedWithTheirHosts() {
    var ran = Ran.here("doctor", "--hosts");
    assertThat(ran.exitCode()).isZero();
    var lines = ran.out().lines().toList();
    assertThat(lines)
        .allMatch(line -> line.length() <= COLUMNS)
        .anyMatch(line -> line.matches(" +native +one host or more +one host or more"))
        .anyMatch(line -> line.matches(" +nccl +– +one host"))
        .anyMatch(line -> line.matches(" +yes.* +one host or more, in native memory"))
        .anyMatch(line -> line.matches(" +one host, in ipc, nccl.* memory"))
        // Messages between GPUs stay within a host.
        .anyMatch(line -> line.matches(" +yes.* +one host, in native memory"));
    for (var row : Capabilities.of(BackendKind.HOST)) {
      assertThat(lines).anyMatch(line -> line.strip().startsWith(row.pattern() + " "));
    }
    for (var method : Method.values()) {
      assertThat(ran.out()).contains(method.toString());
    }
    assertThat(lines.getLast()).contains("UCX");
  }

  @Test
  void jsonHasTheHostsOfEveryRow() {
    assertThat(Ran.here("doctor", "--hosts", "--json").err())
        .isEqualTo(
            "braid: --hosts has no effect with --json, whose rows all have \"spans\"; leave one of them out\n");
    assertThat(Ran.here("doctor", "--json").out()).contains("\"spans\": \"one host or more\"");
  }
}
