package braid;

import braid.internal.collective.CollectiveRoute;
import braid.model.AllReduce;
import braid.model.BraidException;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.SequencedMap;
import java.util.SequencedSet;
import java.util.stream.Collectors;

/// Collectives of one measurement, as columns of a table.
final class CollectiveLog {
  private final ProcessGroup group;
  private final CollectiveRoute route;
  private final SequencedSet<String> patterns = new LinkedHashSet<>();
  private final SequencedSet<String> shapes = new LinkedHashSet<>();
  private final SequencedSet<String> dtypes = new LinkedHashSet<>();
  private final SequencedSet<String> algorithms = new LinkedHashSet<>();
  private final SequencedSet<String> kinds = new LinkedHashSet<>();

  CollectiveLog(ProcessGroup group, CollectiveRoute route) {
    this.group = group;
    this.route = route;
  }

  void add(String pattern) {
    patterns.add(pattern);
  }

  void add(AllReduce algorithm) {
    algorithms.add(algorithm.toString());
  }

  void add(String pattern, SymmetricTensor x, List<Long> result) {
    add(pattern);
    shapes.add(
        result.equals(x.shape())
            ? TensorView.text(result)
            : "%s to %s".formatted(TensorView.text(x.shape()), TensorView.text(result)));
    dtypes.add(x.dtype().toString());
    kinds.add(x.kind().toString());
  }

  /// Returns the columns of all ranks together, since only some ranks send. The ranks meet for it.
  SequencedMap<String, String> configuration() {
    var pattern = together(patterns);
    if (pattern.isEmpty()) {
      throw new BraidException(
          "profile measures the collectives that its body calls on its argument, but no rank called"
              + " any; try profile(50, c -> c.allGather(x, y))");
    }
    var columns = new LinkedHashMap<String, String>();
    columns.put("pattern", pattern);
    columns.put("shape", together(shapes));
    columns.put("dtype", together(dtypes));
    columns.put("transport", route.way().toString());
    if (route.workers() > 0) {
      columns.put("workers", Integer.toString(route.workers()));
    }
    var algorithm = together(algorithms);
    if (!algorithm.isEmpty()) {
      columns.put("algorithm", algorithm);
    }
    columns.put("ranks", Integer.toString(group.size()));
    columns.put("backend", group.context().backend().kind().toString());
    columns.put("link", group.context().backend().link());
    columns.put("memory", together(kinds));
    return columns;
  }

  private String together(SequencedSet<String> mine) {
    return group.gather(String.join("\n", mine)).stream()
        .flatMap(String::lines)
        .distinct()
        .collect(Collectors.joining(" + "));
  }
}
