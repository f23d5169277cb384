package braid.bench;

import braid.Pipeline;
import braid.ProcessGroup;
import braid.Tensor;
import braid.model.BraidException;
import braid.model.Method;
import braid.model.Overlap;
import braid.model.Spread;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;

/// Times the methods of some workloads, on all ranks of a group together. Inputs and weights are
/// random numbers of unit variance: a GPU that multiplies small integers needs less power and so
/// runs faster.
///
/// [#choose] times every form of every method and keeps the fastest of each; it prints the forms
/// that the group cannot run. [#round] times the fastest ones again. It prints a line per form,
/// `bench TAB workload TAB form TAB milliseconds`, with the median of the slowest rank.
public final class MethodTimes {
  /// Begins each line.
  public static final String MARK = "bench";

  private static final int WARM_UP = 10;
  private static final List<Integer> SPLITS = List.of(1, 2, 4, 8);
  private static final int BLOCK = 1 << 20;

  private final ProcessGroup group;
  private final List<Workload> workloads;
  private final int iterations;
  private final Map<Workload, List<Overlap>> chosen = new HashMap<>();

  /// @param only timed are workloads with this text in their name
  /// @param iterations number of timed iterations of a form
  public MethodTimes(ProcessGroup group, int divisor, String only, int iterations) {
    this.group = group;
    this.workloads = named(Workload.all(group.size(), divisor), only);
    this.iterations = iterations;
  }

  /// Returns the workloads with a text in their name.
  public static List<Workload> named(List<Workload> workloads, String only) {
    var some =
        workloads.stream()
            .filter(
                each ->
                    each.name().toLowerCase(Locale.ROOT).contains(only.toLowerCase(Locale.ROOT)))
            .toList();
    if (some.isEmpty()) {
      throw new BraidException(
          "--only must be part of a workload's name but was %s; the names are %s"
              .formatted(only, String.join(", ", workloads.stream().map(Workload::name).toList())));
    }
    return some;
  }

  /// Returns all forms of all methods of a workload, the unfused one first.
  public static List<Overlap> forms(Workload workload) {
    var forms = new ArrayList<>(List.of(Overlap.unfused()));
    if (workload.spec().pattern().beside()) {
      forms.add(Overlap.bulk());
    }
    for (int splits : SPLITS) {
      forms.add(Overlap.pipelined(splits));
      forms.add(Overlap.direct(splits));
      forms.add(Overlap.ring(splits));
    }
    for (var form : List.copyOf(forms)) {
      forms.add(form.replay());
    }
    return forms;
  }

  /// Times all forms, and keeps the fastest of each method.
  public void choose() {
    for (var workload : workloads) {
      var times = new HashMap<Overlap, Double>();
      time(workload, forms(workload), times);
      var fastest = new HashMap<Method, Overlap>();
      times.entrySet().stream()
          .sorted(Map.Entry.comparingByValue())
          .forEach(form -> fastest.putIfAbsent(form.getKey().method(), form.getKey()));
      chosen.put(workload, forms(workload).stream().filter(fastest::containsValue).toList());
    }
  }

  /// Times the fastest form of each method, and prints the times.
  public void round() {
    for (var workload : workloads) {
      var times = new HashMap<Overlap, Double>();
      var forms = chosen.get(workload);
      if (forms == null) {
        throw new BraidException("no forms are chosen; call choose() before round()");
      }
      time(workload, forms, times);
      for (var form : forms) {
        if (group.rank() == 0 && times.containsKey(form)) {
          System.out.printf(
              Locale.ROOT, "%s\t%s\t%s\t%.5f%n", MARK, workload.name(), form, times.get(form));
        }
      }
    }
  }

  /// Puts the median milliseconds of the slowest rank for each form that the group can run.
  private void time(Workload workload, List<Overlap> forms, Map<Overlap, Double> into) {
    try (var first = Pipeline.on(group).gemm(workload.spec()).overlap(Overlap.unfused()).build()) {
      randomize(first.input(), 1);
      randomize(first.weight(), 2);
      if (workload.spec().pattern().beside()) {
        randomize(first.besideInput(), 3);
      }
      for (var form : forms) {
        if (form.equals(first.overlap())) {
          into.put(form, median(first));
        } else {
          timed(workload, form, first, into);
        }
      }
    }
  }

  private void timed(Workload workload, Overlap form, Pipeline first, Map<Overlap, Double> into) {
    Pipeline pipe;
    try {
      pipe = Pipeline.on(group).gemm(workload.spec()).overlap(form).build();
    } catch (BraidException e) {
      // Ranks agree on this: the sizes and the group decide.
      if (group.rank() == 0) {
        System.out.printf("%s leaves out %s: %s%n", workload.name(), form, e.getMessage());
      }
      return;
    }
    try (pipe) {
      pipe.input().copyFrom(first.input());
      pipe.weight().copyFrom(first.weight());
      if (workload.spec().pattern().beside()) {
        pipe.besideInput().copyFrom(first.besideInput());
      }
      into.put(form, median(pipe));
    }
  }

  private double median(Pipeline pipe) {
    pipe.time(WARM_UP);
    double mine = Spread.quantile(pipe.time(iterations), 0.5);
    return Arrays.stream(group.gather(mine)).max().orElseThrow() / 1e6;
  }

  /// Fills a tensor with random numbers of unit variance. They repeat, since drawing all takes
  /// minutes.
  private void randomize(Tensor tensor, long seed) {
    long rows = tensor.shape().getFirst();
    if (rows == 0 || tensor.elements() == 0) {
      return;
    }
    int columns = Math.toIntExact(tensor.elements() / rows);
    var random = new Random(seed + 31L * group.rank());
    int count = Math.toIntExact(Math.min(rows, Math.max(1, BLOCK / columns)));
    var block = new float[count * columns];
    for (int i = 0; i < block.length; i++) {
      block[i] = (float) random.nextGaussian();
    }
    for (long row = 0; row < rows; row += count) {
      long here = Math.min(count, rows - row);
      tensor
          .rows(row, here)
          .copyFrom(here == count ? block : Arrays.copyOf(block, Math.toIntExact(here * columns)));
    }
  }
}
