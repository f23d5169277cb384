package braid.bench;

import braid.ProcessGroup;
import braid.model.BraidException;
import braid.model.DType;
import braid.model.Problem;
import braid.schedule.Schedule;
import braid.schedule.simulation.Machine;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.OptionalDouble;
import java.util.stream.Collectors;

/// Problems that `braid bench gpu` times together: those of one iteration. They are in BF16 on
/// GPUs, and in FP32 on the host, which emulates BF16.
public sealed interface Workload permits GemmWorkload, AttentionWorkload, CollectiveWorkload {
  /// Returns all workloads for a number of ranks.
  ///
  /// @param divisor divides every size of a GEMM, the tokens of attention, and the bytes of a
  ///   collective; 1 for the workloads themselves
  static List<Workload> all(int ranks, boolean onGpu, int divisor) {
    var dtype = onGpu ? DType.BF16 : DType.FP32;
    var all = new ArrayList<Workload>(GemmWorkload.all(ranks, dtype, divisor, onGpu));
    all.addAll(AttentionWorkload.all(ranks, dtype, divisor));
    all.addAll(CollectiveWorkload.all(ranks, dtype, divisor, onGpu));
    return List.copyOf(all);
  }

  /// Returns the workloads with one of some texts in their name.
  ///
  /// @param only the texts, separated by `;`
  static List<Workload> named(List<Workload> workloads, String only) {
    var parts = List.of(only.toLowerCase(Locale.ROOT).split("\\s*;\\s*"));
    var some =
        workloads.stream()
            .filter(each -> parts.stream().anyMatch(each.name().toLowerCase(Locale.ROOT)::contains))
            .toList();
    if (some.isEmpty()) {
      throw new BraidException(
          "--only must be part of a workload's name but was %s; the names are %s"
              .formatted(
                  only, workloads.stream().map(Workload::name).collect(Collectors.joining("; "))));
    }
    return some;
  }

  String name();

  int ranks();

  /// Returns the problems of an iteration, in order; none of a standalone collective.
  List<? extends Problem> problems();

  /// Returns all forms to time.
  List<Form> forms();

  /// Returns a line for each method that the number of ranks does not allow.
  default List<String> leftOut() {
    return List.of();
  }

  /// Predicts the milliseconds of an iteration on a machine; empty if there is no schedule for the
  /// form, or if the form only computes.
  default OptionalDouble predicted(Form form, Machine machine) {
    if (problems().isEmpty() || form.name().equals(alone()) || !isPossible(form)) {
      return OptionalDouble.empty();
    }
    return OptionalDouble.of(
        problems().stream()
                .mapToDouble(
                    problem -> machine.iterationNanos(Schedule.of(problem, form.tuning(), ranks())))
                .sum()
            / 1e6);
  }

  /// Returns whether the sizes allow a form.
  boolean isPossible(Form form);

  /// Returns whether a library solves the whole problem in a form: then the form is a rival, like
  /// PyTorch's.
  default boolean isRival(String form) {
    return false;
  }

  /// Returns the name of the form that only computes. PyTorch times that of a GEMM, Braid that of
  /// attention.
  String alone();

  /// Returns the multiplications and additions of a rank in a form; 0 if it computes nothing.
  double flops(String form);

  /// Returns the upper limit of the fastest form's time ÷ that of the form that only computes;
  /// empty if there is none.
  default OptionalDouble goal() {
    return OptionalDouble.empty();
  }

  /// Returns the same limit for one form; empty if there is none.
  default OptionalDouble goal(String form) {
    return OptionalDouble.empty();
  }

  /// Returns the number of iterations to time, at most `most`.
  default int iterations(int most) {
    return most;
  }

  /// Opens the workload on a group, with random inputs of unit variance. All ranks call it
  /// together.
  OpenWorkload open(ProcessGroup group);
}
