package braid.internal.selftest;

import static org.assertj.core.api.Assertions.assertThat;

import braid.LocalRanks;
import braid.Pipeline;
import braid.ProcessGroup;
import braid.model.GemmSpec;
import braid.model.Link;
import braid.model.MemoryKind;
import braid.model.Overlap;
import braid.model.Profile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class ComparedFormsTest {
  private static final GemmSpec ALL_REDUCE = GemmSpec.gemmAllReduce(24, 8, 6);

  @ParameterizedTest
  @EnumSource
  void everyFormIsRightAndIsNotTimedOnTheHost(ComparedForms forms) {
    LocalRanks.run(
        2, world -> assertThat(forms.check(CaseContext.of(world, MemoryKind.AUTO))).isEmpty());
    assertThat(ComparedForms.missing(1))
        .contains("one rank has nothing to communicate; run with -n 2 or more");
    assertThat(ComparedForms.missing(2)).isEmpty();
  }

  @Test
  void aProfileOfAnotherFormIsFound() {
    LocalRanks.run(
        2,
        Link.parse("4MB/s,50us"),
        world -> {
          var oneStream = profile(world, ALL_REDUCE, Overlap.pipelined(3).streams(1));
          assertThat(ComparedForms.STREAMS.fault(Overlap.pipelined(3).streams(1), oneStream, true))
              .isEmpty();
          assertThat(ComparedForms.STREAMS.fault(Overlap.pipelined(3).streams(3), oneStream, true))
              .contains("its products must run on 3 streams but ran on 1");
          var shared = Overlap.pipelined(3).outputInSymmetricMemory();
          assertThat(ComparedForms.SYMMETRIC_OUTPUT.fault(shared, oneStream, true).orElseThrow())
              .startsWith("no copy within the rank may run but ");
          var beside = GemmSpec.besideAllGather(64, 64, 64, 20_000);
          var apart = profile(world, beside, Overlap.unfused());
          assertThat(ComparedForms.TRANSPORTS.fault(Overlap.unfused(), apart, true)).isEmpty();
          assertThat(ComparedForms.TRANSPORTS.fault(Overlap.bulk(), apart, true))
              .contains("the all-gather must overlap the GEMM but ran before or after it");
          assertThat(ComparedForms.TRANSPORTS.fault(Overlap.bulk(), apart, false)).isEmpty();
        });
  }

  private static Profile profile(ProcessGroup world, GemmSpec spec, Overlap tuning) {
    try (var pipe = Pipeline.on(world).gemm(spec).overlap(tuning).build()) {
      return pipe.profile(1);
    }
  }
}
