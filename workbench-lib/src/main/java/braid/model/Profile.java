package braid.model;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalLong;
import java.util.SequencedMap;

/// One rank's record of a run: the wall time of every iteration and its spans. `configuration` is
/// problem and tuning as table columns; `clockErrorNanos` limits the error of this rank's clock
/// against the group's, and so of the position of spans of two ranks.
///
/// @param counters counters of the rank while it built and ran the pipeline, by name: rendezvous,
///   allocations, plans built and reused
/// @param plainNanos wall time of unprofiled iterations of the same run, half of them before and
///   half after the others; empty if none were run
/// @param startNanos begin of every iteration on the group's clock; empty if unknown
/// @param unowned activities of the GPU that belong to no step, such as kernels that a library
///   launched by a thread of its own
/// @param load what other processes did meanwhile; known of rank 0 only
/// @param host name of the rank's host; empty if all ranks of the group are on one
public record Profile(
    Place place,
    SequencedMap<String, String> configuration,
    List<Long> iterationNanos,
    List<Span> spans,
    long clockErrorNanos,
    SequencedMap<String, Long> counters,
    List<Long> plainNanos,
    List<Long> startNanos,
    List<Activity> unowned,
    Optional<HostLoad> load,
    Optional<String> host)
    implements Displayable {
  /// The MIME type of a profile's JSON.
  public static final String MIME = "application/vnd.braid.profile+json";

  /// Name and version of the JSON's form, a field of the JSON itself.
  public static final String FORMAT = "braid.profile/1";

  /// Stage of the activities that belong to no step, in tables and traces.
  public static final String NO_STEP = "no step";

  public Profile {
    configuration = Collections.unmodifiableSequencedMap(new LinkedHashMap<>(configuration));
    iterationNanos = List.copyOf(iterationNanos);
    spans = List.copyOf(spans);
    plainNanos = List.copyOf(plainNanos);
    startNanos = List.copyOf(startNanos);
    unowned = List.copyOf(unowned);
    counters = Collections.unmodifiableSequencedMap(new LinkedHashMap<>(counters));
    if (iterationNanos.isEmpty()) {
      throw new BraidException(
          "a profile needs at least 1 iteration but rank " + place + " has 0; profile(1) or more");
    }
    if (!startNanos.isEmpty() && startNanos.size() != iterationNanos.size()) {
      throw new BraidException(
          "a profile needs the begin of each of its %d iterations or of none but has %d"
              .formatted(iterationNanos.size(), startNanos.size()));
    }
    if (clockErrorNanos < 0) {
      throw new BraidException("clockErrorNanos must be 0 or more but was " + clockErrorNanos);
    }
    for (var counter : counters.entrySet()) {
      if (counter.getValue() < 0) {
        throw new BraidException(
            "a counter must be 0 or more but `%s` was %d"
                .formatted(counter.getKey(), counter.getValue()));
      }
    }
    for (var span : spans) {
      if (span.iteration() < 0 || span.iteration() >= iterationNanos.size()) {
        throw new BraidException(
            "a span's iteration must be 0.."
                + (iterationNanos.size() - 1)
                + " but was "
                + span.iteration());
      }
      if (span.endNanos() < span.startNanos()) {
        throw new BraidException("a span must not end before it starts but this does: " + span);
      }
    }
  }

  /// Creates a profile of a run's iterations and spans alone.
  public Profile(
      Place place,
      SequencedMap<String, String> configuration,
      List<Long> iterationNanos,
      List<Span> spans,
      long clockErrorNanos) {
    this(
        place,
        configuration,
        iterationNanos,
        spans,
        clockErrorNanos,
        new LinkedHashMap<>(),
        List.of(),
        List.of(),
        List.of(),
        Optional.empty(),
        Optional.empty());
  }

  /// Returns the rank's name in charts: "rank 2", or "rank 2 on h2" if there are several hosts.
  public String rankName() {
    return "rank " + place.rank() + host.map(name -> " on " + name).orElse("");
  }

  public int iterations() {
    return iterationNanos.size();
  }

  /// Returns when an iteration began, on the group's clock. If that is unknown, returns the start
  /// of its first span; empty if it has none.
  public OptionalLong begin(int iteration) {
    return startNanos.isEmpty()
        ? spans.stream()
            .filter(span -> span.iteration() == iteration)
            .mapToLong(Span::startNanos)
            .min()
        : OptionalLong.of(startNanos.get(iteration));
  }

  /// Returns the cost of profiling on this rank: the median time of an iteration with profiling ÷
  /// without. Empty if no iteration ran without.
  public OptionalDouble cost() {
    return plainNanos.isEmpty()
        ? OptionalDouble.empty()
        : OptionalDouble.of(median(iterationNanos) / median(plainNanos));
  }

  private static double median(List<Long> nanos) {
    var sorted = nanos.stream().sorted().toList();
    int last = sorted.size() - 1;
    return (sorted.get(last / 2) + sorted.get(last - last / 2)) / 2.0;
  }

  /// Returns the profile as JSON in [#FORMAT], as `display()` publishes it.
  public String toJson() {
    return ProfileWriter.write(this);
  }

  @Override
  public MimeBundle display() {
    return MimeBundle.text(toString()).with(MIME, toJson());
  }

  @Override
  public String toString() {
    return "profile of rank %s: %d iterations, %d spans"
        .formatted(place, iterations(), spans.size());
  }
}
