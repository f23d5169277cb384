package braid.evidence;

import braid.model.GemmSpec;
import braid.model.Overlap;
import braid.model.Place;
import braid.model.Profile;
import braid.model.Span;
import braid.model.Stage;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;

/// Profiles of a synthetic GEMM→all-reduce with known times: each chunk is multiplied, its partial
/// sums are copied and added, and the sum is gathered, each on its own streams.
public record SyntheticReduction(
    int ranks, int iterations, int chunks, int streams, long gemmNanos, long copyNanos) {

  public ProfileSet set() {
    var profiles = new ArrayList<Profile>();
    for (int rank = 0; rank < ranks; rank++) {
      profiles.add(profile(rank));
    }
    return ProfileSet.of(profiles);
  }

  public Profile profile(int rank) {
    var columns = new LinkedHashMap<>(GemmSpec.gemmAllReduce(8192, 8192, 2048).columns());
    columns.putAll(Overlap.pipelined(chunks).streams(Math.min(streams, 16)).columns());
    var counters = new LinkedHashMap<String, Long>();
    counters.put("rendezvous", 6L);
    counters.put("buffers allocated", 4L);
    counters.put("buffers reused", 11L);
    counters.put("plans made", 1L);
    counters.put("plans reused", (long) rank);
    counters.put("replays", (long) iterations);
    var spans = new ArrayList<Span>();
    var nanos = new ArrayList<Long>();
    long start = 0;
    for (int i = 0; i < iterations; i++) {
      var own = iteration(rank, i, start);
      spans.addAll(own);
      long wall = own.stream().mapToLong(Span::endNanos).max().orElseThrow() - start;
      nanos.add(wall);
      start += wall + wall / 50 * (ranks - rank);
    }
    return new Profile(
        new Place(rank, ranks),
        columns,
        nanos,
        spans,
        800 + rank,
        counters,
        List.of(),
        List.of(),
        List.of(),
        Optional.empty(),
        Optional.empty());
  }

  private List<Span> iteration(int rank, int i, long start) {
    var spans = new ArrayList<Span>();
    var free = new long[streams];
    long comm = start;
    long reduced = start;
    long gathered = start;
    for (int c = 0; c < chunks; c++) {
      int s = c % streams;
      var gemm = "gemm-" + s;
      long begins = Math.max(start, free[s]);
      free[s] = begins + gemmNanos + gemmNanos * rank / 20;
      spans.add(new Span(i, c, Stage.GEMM, gemm, begins, free[s], 0, 2_000_000));
      spans.add(new Span(i, c, Stage.SIGNAL, gemm, free[s], free[s] + 200, 0, 0));
      free[s] += 200;
      comm = waited(spans, i, c, "comm", comm, free[s]);
      spans.add(new Span(i, c, Stage.COPY, "comm", comm, comm + copyNanos, 1 << 20, 0));
      comm += copyNanos;
      reduced = waited(spans, i, c, "reduce", reduced, comm);
      long added = reduced + copyNanos / 3;
      spans.add(new Span(i, c, Stage.REDUCE, "reduce", reduced, added, 1 << 19, 0));
      reduced = added;
      gathered = waited(spans, i, c, "comm-gather", gathered, reduced);
      spans.add(
          new Span(i, c, Stage.COPY, "comm-gather", gathered, gathered + copyNanos, 1 << 20, 0));
      gathered += copyNanos;
    }
    return spans;
  }

  private static long waited(
      List<Span> spans, int iteration, int chunk, String stream, long free, long ready) {
    if (ready > free) {
      spans.add(new Span(iteration, chunk, Stage.WAIT, stream, free, ready, 0, 0));
      return ready;
    }
    return free;
  }
}
