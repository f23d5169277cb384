package braid.internal.selftest;

import static org.assertj.core.api.Assertions.assertThat;

import braid.LocalRanks;
import braid.model.MemoryKind;
import braid.model.Overlap;
import braid.model.Place;
import braid.model.Profile;
import braid.model.Span;
import braid.model.Stage;
import java.util.LinkedHashMap;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class ComparedFormsTest {
  private static final Overlap CHUNKS = Overlap.pipelined(2);

  @ParameterizedTest
  @EnumSource
  void everyFormIsRightAndIsNotTimedOnTheHost(ComparedForms forms) {
    LocalRanks.run(
        2, world -> assertThat(forms.check(CaseContext.of(world, MemoryKind.AUTO))).isEmpty());
  }

  @Test
  void oneRankComparesNothing() {
    assertThat(ComparedForms.missing(1))
        .contains("one rank has nothing to communicate; run with -n 2 or more");
    assertThat(ComparedForms.missing(2)).isEmpty();
  }

  @Test
  void productsRunOnAsManyStreamsAsTheFormHas() {
    var two = profile(span(Stage.GEMM, "gemm-0", 0, 10), span(Stage.GEMM, "gemm-1", 5, 15));
    assertThat(ComparedForms.STREAMS.fault(CHUNKS.streams(2), two, true)).isEmpty();
    assertThat(ComparedForms.STREAMS.fault(CHUNKS.streams(1), two, true))
        .contains("its products must run on 1 streams but ran on 2");
  }

  @Test
  void anOutputInSymmetricMemoryIsNotCopied() {
    var copied = profile(span(Stage.GEMM, "gemm-0", 0, 10), span(Stage.LOCAL, "finish", 10, 12));
    assertThat(ComparedForms.SYMMETRIC_OUTPUT.fault(CHUNKS, copied, true)).isEmpty();
    assertThat(ComparedForms.SYMMETRIC_OUTPUT.fault(CHUNKS.outputInSymmetricMemory(), copied, true))
        .contains("no copy within the rank may run but 1 did");
  }

  @Test
  void oneAfterTheOtherOverlapsNothing() {
    var apart = profile(span(Stage.COPY, "comm", 0, 100), span(Stage.GEMM, "gemm-0", 99, 300));
    var beside = profile(span(Stage.COPY, "comm", 0, 100), span(Stage.GEMM, "gemm-0", 50, 300));
    var forms = ComparedForms.TRANSPORTS;
    assertThat(forms.fault(Overlap.unfused(), apart, true)).isEmpty();
    assertThat(forms.fault(Overlap.unfused(), beside, true))
        .contains("50% of the all-gather ran beside the GEMM");
    // Without a GPU per rank, other work runs in GEMM steps too.
    assertThat(forms.fault(Overlap.unfused(), beside, false)).isEmpty();
    assertThat(forms.fault(Overlap.bulk(), beside, true)).isEmpty();
  }

  private static Span span(Stage stage, String stream, long start, long end) {
    return new Span(0, 0, stage, stream, start * 1000, end * 1000, 0, 0);
  }

  private static Profile profile(Span... spans) {
    return new Profile(
        new Place(0, 2), new LinkedHashMap<>(), List.of(300_000L), List.of(spans), 0);
  }
}
