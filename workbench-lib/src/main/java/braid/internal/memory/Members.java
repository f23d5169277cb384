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

/// Who is in a group: `ranks` are their ranks in the world, which is how messages call them, and
/// `place` is this rank's among them.
public record Members(String group, List<Integer> ranks, Place place) {
  public Members {
    ranks = List.copyOf(ranks);
  }

  /// Throws one line that names every rank heard of, where what they say of one call differs: other
  /// calls, other values, or other memory.
  void requireSame(SortedMap<Integer, Call> said) {
    var byName = by(said, Call::name);
    if (byName.size() > 1) {
      throw new BraidException(
          "all ranks of a group must make the same calls in the same order but "
              + byName.entrySet().stream()
                  .map(
                      one ->
                          "rank %d called %s"
                              .formatted(one.getValue().getFirst(), in(one.getKey())))
                  .limit(2)
                  .collect(Collectors.joining(" where ")));
    }
    var byValue = by(said, Call::value);
    if (byValue.size() > 1) {
      throw new BraidException(
          "%s: ranks must agree but %s; give the same on every rank"
              .formatted(in(byName.firstEntry().getKey()), have(byValue)));
    }
    var byMemory = by(said, Call::memory);
    if (byMemory.size() > 1) {
      throw new BraidException(
          "%s: tensors must be closed in the same order on every rank but %s; close the same ones before it"
              .formatted(in(byName.firstEntry().getKey()), have(byMemory)));
    }
  }

  /// Throws that line where the values, which are in the order of the ranks, differ.
  public void requireSame(String call, List<String> values) {
    var said = new TreeMap<Integer, Call>();
    for (int i = 0; i < values.size(); i++) {
      said.put(ranks.get(i), Call.of(call, values.get(i)));
    }
    requireSame(said);
  }

  /// That call with the group it is made on.
  public String in(String call) {
    return "%s in group `%s`".formatted(call, group);
  }

  private static SequencedMap<String, List<Integer>> by(
      SortedMap<Integer, Call> said, Function<Call, String> what) {
    var ranks = new LinkedHashMap<String, List<Integer>>();
    said.forEach(
        (rank, call) -> ranks.computeIfAbsent(what.apply(call), _ -> new ArrayList<>()).add(rank));
    return ranks;
  }

  private static String have(Map<String, List<Integer>> ranksByWhat) {
    return ranksByWhat.entrySet().stream()
        .map(
            one ->
                "%s %s %s"
                    .formatted(
                        numbered(one.getValue()),
                        one.getValue().size() == 1 ? "has" : "have",
                        one.getKey().isEmpty() ? "nothing" : one.getKey()))
        .collect(Collectors.joining(", "));
  }

  /// "rank 2", "ranks 0, 1".
  static String numbered(List<Integer> ranks) {
    return (ranks.size() == 1 ? "rank " : "ranks ")
        + ranks.stream().map(String::valueOf).collect(Collectors.joining(", "));
  }
}
