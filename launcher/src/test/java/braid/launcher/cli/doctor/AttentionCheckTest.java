package braid.launcher.cli.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Optional;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class AttentionCheckTest {
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          auto  | 9.19.0 | OK      | by cuDNN 9.19.0 where it can, else by Braid's kernels
          auto  | 9.15.1 | OK      | by cuDNN 9.15.1 where it can, else by Braid's kernels; backward by Braid's kernels: cuDNN's needs cuDNN 9.16, found 9.15.1
          auto  | 9.13.1 | OK      | by Braid's kernels, much slower than cuDNN: needs cuDNN 9.14, found 9.13.1
          auto  |        | OK      | by Braid's kernels, much slower than cuDNN: cuDNN is not available
          cudnn | 9.19.0 | OK      | by cuDNN 9.19.0 alone, as BRAID_ATTENTION is cudnn
          cudnn | 9.15.1 | OK      | by cuDNN 9.15.1 alone, as BRAID_ATTENTION is cudnn; no backward pass: it needs cuDNN 9.16, found 9.15.1
          cudnn | 9.13.1 | MISSING | BRAID_ATTENTION is cudnn but needs cuDNN 9.14, found 9.13.1
          cudnn |        | MISSING | BRAID_ATTENTION is cudnn but cuDNN is not available
          own   | 9.19.0 | OK      | by Braid's kernels, as BRAID_ATTENTION is own
          flash | 9.19.0 | MISSING | BRAID_ATTENTION must be one of auto, cudnn, own but was flash
          """)
  void theCheckNamesTheEngineAndTheReason(
      String requested, String version, Check.State state, String value) {
    var check = AttentionCheck.of(requested, () -> Optional.ofNullable(version));
    assertThat(check.state()).isEqualTo(state);
    assertThat(check.value()).isEqualTo(value);
    assertThat(check.remedy().isPresent()).isEqualTo(state == Check.State.MISSING);
  }
}
