package braid.internal.resource;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;

/// Sums of buffers, compared with the memory that is free.
class FreeSpaceTest {
  private static final long MIB = 1L << 20;
  private static final List<Integer> RANKS = List.of(4, 5, 6);

  private static final List<BufferRequest> BUFFERS =
      List.of(
          symmetric("key", 64 * MIB),
          new BufferRequest("query", false, List.of(50 * MIB, 70 * MIB, 60 * MIB)),
          symmetric("signals", 1),
          symmetric("value", 64 * MIB),
          new BufferRequest("output", false, List.of(30 * MIB, 30 * MIB, 30 * MIB)),
          new BufferRequest("lse", false, List.of(1L, MIB + 1, 0L)));

  private static BufferRequest symmetric(String name, long bytes) {
    return new BufferRequest(name, true, Collections.nCopies(3, bytes));
  }

  @Test
  void buffersThatFitExactlyAreGranted() {
    long needed = (3 * 128 + 180 + 90 + 1) * MIB + 3 + 2;
    var exact = new FreeSpace("memory", needed, List.of(0, 1, 2), 1, 1);
    assertThat(exact.refusal(BUFFERS, RANKS)).isEmpty();
    assertThat(new FreeSpace("memory", needed - 1, List.of(0, 1, 2), 1, 1).refusal(BUFFERS, RANKS))
        .contains(
            "the buffers need 656 MiB of memory for ranks 4, 5, 6 but 655 MiB are free there: rank 5 needs `query` 70 MiB, `key` 64 MiB, `value` 64 MiB, `output` 30 MiB, 2 others 2 MiB");
  }

  @Test
  void aMemoryHoldsOneKindOfBuffersOfItsMembersInItsUnits() {
    var symmetric = new FreeSpace("/dev/shm", 130 * MIB, List.of(0), 2 * MIB, 0);
    assertThat(symmetric.refusal(BUFFERS, RANKS)).isEmpty();
    assertThat(
            new FreeSpace("/dev/shm", 130 * MIB - 1, List.of(0), 2 * MIB, 0)
                .refusal(BUFFERS, RANKS))
        .contains(
            "the buffers need 130 MiB of /dev/shm for rank 4 but 129 MiB are free there: rank 4 needs `key` 64 MiB, `value` 64 MiB, `signals` 2 MiB");
    var ofRank6 = new FreeSpace("memory of GPU 0", 90 * MIB, List.of(2), 0, 1);
    assertThat(ofRank6.refusal(BUFFERS, RANKS)).isEmpty();
    assertThat(new FreeSpace("memory of GPU 0", -5, List.of(2), 0, 1).refusal(BUFFERS, RANKS))
        .contains(
            "the buffers need 90 MiB of memory of GPU 0 for rank 6 but 0 MiB are free there: rank 6 needs `query` 60 MiB, `output` 30 MiB");
  }
}
