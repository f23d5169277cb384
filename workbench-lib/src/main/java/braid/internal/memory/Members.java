package braid.internal.memory;

import braid.model.BraidException;
import braid.model.Place;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.stream.Collectors;

/// Members of a group: `ranks` are their ranks in the world, as in messages; `place` is this rank's
/// position among them.
public record Members(String group, List<Integer> ranks, Place place) {
  public Members {
    ranks = List.copyOf(ranks);
  }

  /// Throws if the known calls of the ranks differ in name, value or memory; the message names the
  /// ranks.
  void requireSame(SortedMap<Integer, Call> calls) {
    var byName = by(calls, Call::name);
    if (byName.size() > 1) {
      throw new BraidException(
          "all ranks of a group must make the same calls in the same order but "
              + byName.entrySet().stream()
                  .map(
                      entry ->
                          "rank %d called %s"
                              .formatted(entry.getValue().getFirst(), in(entry.getKey())))
                  .limit(2)
                  .collect(Collectors.joining(" where ")));
    }
    var byValue = by(calls, Call::value);
    if (byValue.size() > 1) {
      throw new BraidException(
          "%s: ranks must agree but %s; pass the same value on every rank"
              .formatted(in(byName.firstEntry().getKey()), have(byValue)));
    }
    var byMemory = by(calls, Call::memory);
    if (byMemory.size() > 1) {
      throw new BraidException(
          "%s: tensors must be closed in the same order on every rank but %s; close the same ones before it"
              .formatted(in(byName.firstEntry().getKey()), have(byMemory)));
    }
  }

  /// Throws if the values, by rank, of one call differ.
  public void requireSame(String call, List<String> values) {
    var calls = new TreeMap<Integer, Call>();
    for (int i = 0; i < values.size(); i++) {
      calls.put(ranks.get(i), Call.of(call, values.get(i)));
    }
    requireSame(calls);
  }

  /// Returns a call with its group, for messages.
  public String in(String call) {
    return "%s in group `%s`".formatted(call, group);
  }

  private static SequencedMap<String, List<Integer>> by(
      SortedMap<Integer, Call> calls, Function<Call, String> field) {
    var ranks = new LinkedHashMap<String, List<Integer>>();
    calls.forEach(
        (rank, call) -> ranks.computeIfAbsent(field.apply(call), _ -> new ArrayList<>()).add(rank));
    return ranks;
  }

  private static String have(Map<String, List<Integer>> ranksByWhat) {
    return ranksByWhat.entrySet().stream()
        .map(
            entry ->
                "%s %s %s"
                    .formatted(
                        numbered(entry.getValue()),
                        entry.getValue().size() == 1 ? "has" : "have",
                        entry.getKey().isEmpty() ? "nothing" : entry.getKey()))
        .collect(Collectors.joining(", "));
  }

  /// Formats ranks for messages: "rank 2", "ranks 0, 1".
  static String numbered(List<Integer> ranks) {
    return (ranks.size() == 1 ? "rank " : "ranks ")
        + ranks.stream().map(String::valueOf).collect(Collectors.joining(", "));
  }
}
