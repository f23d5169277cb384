package braid.internal.pipeline;

import static org.assertj.core.api.Assertions.assertThat;

import braid.DType;
import braid.GemmSpec;
import braid.Link;
import braid.MemoryKind;
import braid.Overlap;
import braid.Place;
import braid.internal.backend.HostBackend;
import braid.internal.backend.Rendezvous;
import braid.internal.rank.Env;
import braid.internal.rank.Waits;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/// The comparison itself: what it finds, and what it says of it.
class ReferenceTest {
  private static final GemmSpec SPEC = GemmSpec.allGatherGemm(24, 4, 8);
  private static final Overlap HOW = Overlap.splits(5);

  private record Alone(Place place, String unique) implements Rendezvous {
    @Override
    public List<String> exchange(String label, String value) {
      return List.of(value);
    }
  }

  @Test
  void namesTheFirstWrongValueAndTheChunkThatBroughtIt() {
    var place = new Place(0, 1);
    var env =
        new Env(
            place,
            place,
            Optional.empty(),
            "host",
            Link.UNLIMITED,
            MemoryKind.AUTO,
            Env.DEFAULT_TIMEOUT);
    var backend = new HostBackend(env, "reference-test", new Waits(env.timeout()));
    int[] files = {0};
    try (var work =
        new AllGatherGemm(
            backend,
            place,
            SPEC,
            HOW,
            MemoryKind.NATIVE,
            () -> new Alone(place, "file-" + files[0]++))) {
      fill(work.input().byteSize(), i -> DType.FP32.store(work.input(), i, 1));
      fill(work.weight().byteSize(), i -> DType.FP32.store(work.weight(), i, 1));
      fill(work.output().byteSize(), i -> DType.FP32.store(work.output(), i, 8));
      assertThat(Reference.compare(work, null)).isEmpty();

      // 24 rows in 5 chunks are 5, 5, 5, 5 and 4: row 14 is the last of the third.
      DType.FP32.store(work.output(), 14 * 4 + 3, 9);
      assertThat(Reference.compare(work, null))
          .contains(
              "rank 0: output[14, 3] must be 8.0 exactly but was 9.0; first wrong is chunk 2 from rank 0 of %s, %s"
                  .formatted(SPEC, HOW));
      assertThat(Reference.compare(work, new Tolerance(1, 0))).isEmpty();
      DType.FP32.store(work.output(), 0, Float.NaN);
      assertThat(Reference.compare(work, new Tolerance(1, 0)))
          .hasValueSatisfying(
              line ->
                  assertThat(line)
                      .contains("output[0, 0] must be 8.0 within atol=1.00 rtol=0.00 but was NaN"));
    } finally {
      backend.close();
    }
  }

  private static void fill(long bytes, java.util.function.LongConsumer each) {
    for (long i = 0; i < bytes / Float.BYTES; i++) {
      each.accept(i);
    }
  }
}
