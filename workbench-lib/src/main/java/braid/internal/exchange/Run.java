package braid.internal.exchange;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/// Slices of one length that begin evenly spaced: `count` of them from the first on, `step` apart.
public record Run(Slice first, int count, int step) {
  /// Those slices in as few runs as one finds going through them in their order; empty ones are
  /// left out.
  public static List<Run> of(List<Slice> slices) {
    var runs = new ArrayList<Run>();
    slices.stream()
        .filter(slice -> slice.length() > 0)
        .sorted(Comparator.comparingInt(Slice::start))
        .forEach(
            slice -> {
              if (runs.isEmpty() || !runs.getLast().goesOnWith(slice)) {
                runs.add(new Run(slice, 1, 0));
              } else {
                var last = runs.removeLast();
                runs.add(
                    new Run(
                        last.first(),
                        last.count() + 1,
                        last.count() == 1 ? last.gap(slice) : last.step()));
              }
            });
    return runs;
  }

  private int gap(Slice next) {
    return next.start() - first.start();
  }

  private boolean goesOnWith(Slice next) {
    return next.length() == first.length() && (count == 1 || gap(next) == count * step);
  }
}
