package braid.launcher.cli.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import braid.launcher.cli.home.Env;
import braid.launcher.machine.Gpus;
import braid.launcher.machine.RankCount;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class MachineChecksTest {
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          BRAID_BACKEND=cuda                     | unset BRAID_BACKEND=cuda
          BRAID_SHARE_GPUS=1                     | unset BRAID_SHARE_GPUS=1
          BRAID_SHARE_GPUS=yes                   | unset BRAID_SHARE_GPUS=yes
          BRAID_BACKEND=host,BRAID_SHARE_GPUS=1  | unset BRAID_BACKEND=host and BRAID_SHARE_GPUS=1
          """)
  void aRefusedBackendNamesTheVariablesThatAreSet(String set, String remedy) {
    var variables = new HashMap<String, String>();
    for (var each : set.split(",", -1)) {
      variables.put(each.substring(0, each.indexOf('=')), each.substring(each.indexOf('=') + 1));
    }
    var machine = new RankCount(4, 8000, Gpus.none("no /dev/nvidia0"));
    var check = MachineChecks.backend(new Env(Map.copyOf(variables)), machine);
    assertThat(check.toString()).contains(remedy);
  }
}
