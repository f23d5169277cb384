package braid.evidence;

import braid.internal.report.value.Caveats;
import braid.model.Place;
import braid.model.Profile;
import braid.model.Span;
import braid.model.Stage;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.SequencedMap;

/// Profiles of a synthetic pipeline with known times: a copy stream that delivers chunk after
/// chunk, and GEMM streams that process each chunk on arrival.
public record SyntheticProfiles(
    int ranks, int iterations, int chunks, int streams, long copyNanos, long gemmNanos) {

  public ProfileSet set() {
    var profiles = new ArrayList<Profile>();
    for (int rank = 0; rank < ranks; rank++) {
      profiles.add(profile(rank));
    }
    return ProfileSet.of(profiles);
  }

  /// Returns the profiles of ranks that share a GPU.
  public static ProfileSet shared(ProfileSet set) {
    var columns = new LinkedHashMap<>(set.configuration());
    columns.put("backend", "cuda");
    Caveats.put(set.ranks(), columns);
    return ProfileSet.of(
        set.profiles().stream()
            .map(
                each ->
                    new Profile(each.place(), columns, each.iterationNanos(), each.spans(), 1_200))
            .toList());
  }

  public SequencedMap<String, String> configuration() {
    var columns = new LinkedHashMap<String, String>();
    columns.put("pattern", "all-gather→gemm");
    columns.put("m", "2048");
    columns.put("n", "2048");
    columns.put("k", "2048");
    columns.put("dtype", "FP32");
    columns.put("method", "PIPELINED");
    columns.put("splits", Integer.toString(chunks));
    columns.put("streams", Integer.toString(streams));
    return columns;
  }

  /// Rank r is r per cent slower at multiplying, iteration i starts where the slowest rank's ends.
  public Profile profile(int rank) {
    var spans = new ArrayList<Span>();
    var iterationNanos = new ArrayList<Long>();
    for (int i = 0; i < iterations; i++) {
      spans.addAll(iteration(rank, i, i * wall(ranks - 1)));
      iterationNanos.add(wall(rank));
    }
    return new Profile(new Place(rank, ranks), configuration(), iterationNanos, spans, 1_200);
  }

  private long gemm(int rank) {
    return gemmNanos + gemmNanos * rank / 100;
  }

  private long wall(int rank) {
    return iteration(rank, 0, 0).stream().mapToLong(Span::endNanos).max().orElseThrow();
  }

  private List<Span> iteration(int rank, int iteration, long start) {
    var spans = new ArrayList<Span>();
    var free = new long[streams];
    for (int chunk = 0; chunk < chunks; chunk++) {
      long from = start + chunk * copyNanos;
      long landed = from + copyNanos;
      spans.add(new Span(iteration, chunk, Stage.COPY, "copy", from, landed, 1_000, 0));
      spans.add(new Span(iteration, chunk, Stage.SIGNAL, "copy", landed, landed, 0, 0));
      int stream = chunk % streams;
      long idleSince = Math.max(start, free[stream]);
      long begins = Math.max(idleSince, landed);
      var name = "compute " + stream;
      if (begins > idleSince) {
        spans.add(new Span(iteration, chunk, Stage.WAIT, name, idleSince, begins, 0, 0));
      }
      free[stream] = begins + gemm(rank);
      spans.add(new Span(iteration, chunk, Stage.GEMM, name, begins, free[stream], 0, 2_000));
    }
    return spans;
  }
}
