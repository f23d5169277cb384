package braid.bench;

import braid.ProcessGroup;
import braid.internal.report.statistics.Spread;
import braid.model.BraidException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/// Times the methods of some workloads, on all ranks of a group together.
///
/// [#choose] times every form of every method and keeps the fastest of each; [#keepAll] keeps all,
/// for ranks that share a GPU. [#round] times those that were kept. It prints a line per form,
/// `bench TAB workload TAB form TAB milliseconds`, with the median of the slowest rank. A form that
/// the group cannot run is left out with a line that says why.
public final class MethodTimes {
  /// Begins each line.
  public static final String MARK = "bench";

  private static final int MOST_WARM_UP = 10;

  private final ProcessGroup group;
  private final List<Workload> workloads;
  private final int iterations;
  private final Map<Workload, List<Form>> chosen = new HashMap<>();

  /// @param only timed are workloads with this text in their name
  /// @param iterations number of timed iterations of a form; fewer of a long workload
  public MethodTimes(ProcessGroup group, int divisor, String only, int iterations) {
    this.group = group;
    this.workloads = Workload.named(Workload.all(group.size(), group.onGpu(), divisor), only);
    this.iterations = iterations;
  }

  /// Returns the number of untimed iterations before the timed ones.
  public static int warmUp(int iterations) {
    return Math.min(MOST_WARM_UP, iterations);
  }

  /// Times all forms, and keeps the fastest of each method. Methods of one form need no choice.
  public void choose() {
    for (var workload : workloads) {
      if (group.rank() == 0) {
        workload.leftOut().forEach(System.out::println);
      }
      var forms = workload.forms();
      boolean isChoice = forms.stream().map(Form::method).distinct().count() < forms.size();
      chosen.put(workload, isChoice ? fastest(workload) : forms);
    }
  }

  /// Keeps all forms, if times are no evidence.
  public void keepAll() {
    workloads.forEach(workload -> chosen.put(workload, workload.forms()));
  }

  private List<Form> fastest(Workload workload) {
    var times = time(workload, workload.forms());
    var fastest = new HashMap<String, Form>();
    times.entrySet().stream()
        .sorted(Map.Entry.comparingByValue())
        .forEach(form -> fastest.putIfAbsent(form.getKey().method(), form.getKey()));
    return workload.forms().stream().filter(fastest::containsValue).toList();
  }

  /// Times the forms that were kept, and prints the times. Forms that the group cannot run are left
  /// out from now on.
  public void round() {
    for (var workload : workloads) {
      var forms = chosen.get(workload);
      if (forms == null) {
        throw new BraidException("no forms are chosen; call choose() or keepAll() before round()");
      }
      var times = time(workload, forms);
      var possible = forms.stream().filter(times::containsKey).toList();
      chosen.put(workload, possible);
      if (group.rank() == 0) {
        for (var form : possible) {
          System.out.printf(
              Locale.ROOT,
              "%s\t%s\t%s\t%.5f%n",
              MARK,
              workload.name(),
              form.name(),
              times.get(form));
        }
      }
    }
  }

  /// Returns the median milliseconds of the slowest rank for each form that the group can run.
  private Map<Form, Double> time(Workload workload, List<Form> forms) {
    var times = new HashMap<Form, Double>();
    try (var open = workload.open(group)) {
      for (var form : forms) {
        OpenWorkload.BuiltForm built;
        try {
          built = open.build(form);
        } catch (BraidException e) {
          // Ranks agree on this: the sizes and the group decide.
          if (group.rank() == 0) {
            System.out.printf(
                "%s leaves out %s: %s%n", workload.name(), form.name(), e.getMessage());
          }
          continue;
        }
        try (built) {
          times.put(form, median(built, workload.iterations(iterations)));
        }
      }
    }
    return times;
  }

  /// Times all ranks at the same time, also if each runs by itself.
  private double median(OpenWorkload.BuiltForm built, int count) {
    var _ = built.timing().apply(warmUp(count));
    group.barrier();
    double mine = Spread.quantile(built.timing().apply(count), 0.5);
    return Arrays.stream(group.gather(mine)).max().orElseThrow() / 1e6;
  }
}
