package braid;

import braid.internal.collective.CollectiveCall;
import braid.internal.collective.CollectiveEngine;
import braid.internal.memory.Call;
import braid.internal.pipeline.Differences;
import braid.internal.run.Link;
import braid.model.BraidException;
import braid.model.Collective;
import braid.model.Verification;
import braid.schedule.Schedule;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import java.util.SequencedMap;

/// A collective that a [Chain] launches between its pipelines; see [Collectives#link].
public final class CollectiveLink implements Chainable {
  private final ProcessGroup group;
  private final CollectiveEngine engine;
  private final CollectiveCall call;
  private final Call description;

  /// The tensors of this rank, `x` and `y`; both are the same in place, and a barrier has none.
  private final List<SymmetricTensor> tensors;

  private final Link link;
  private final Iterations.Member member;

  CollectiveLink(
      ProcessGroup group,
      CollectiveEngine engine,
      CollectiveCall call,
      boolean needsAll,
      Call description,
      List<SymmetricTensor> tensors) {
    this.group = group;
    this.engine = engine;
    this.call = call;
    this.description = description;
    this.tensors = List.copyOf(tensors);
    link = engine.link(call, needsAll, description);
    member = new Iterations.Member(group, link, this::toString);
  }

  @Override
  public ProcessGroup group() {
    return group;
  }

  Link link() {
    return link;
  }

  Iterations.Member member() {
    return member;
  }

  /// Throws if a tensor is closed.
  void checkOpen() {
    tensors.forEach(SymmetricTensor::local);
  }

  /// The collective, its tensors and transport, the same on all ranks.
  String text() {
    return description.toString();
  }

  /// The collective and its way, for tables.
  String words() {
    return "%s over %s".formatted(call.collective(), call.route());
  }

  /// Returns the memory of this rank that it uses, the result last.
  List<Chain.Used> used() {
    return tensors.stream()
        .map(
            tensor ->
                new Chain.Used(
                    "`%s`".formatted(tensor.name()),
                    tensor.local().segment(),
                    tensor.equals(tensors.getLast())))
        .toList();
  }

  /// Returns its schedule, if copies run it.
  Optional<Schedule> schedule() {
    return engine.schedule(call);
  }

  /// Backend, link and memory, as columns of a table.
  SequencedMap<String, String> configuration() {
    var backend = group.context().backend();
    var columns = new LinkedHashMap<String, String>();
    columns.put("backend", backend.kind().toString());
    columns.put("link", backend.link());
    if (!tensors.isEmpty()) {
      columns.put("memory", tensors.getFirst().kind().toString());
    }
    return columns;
  }

  /// Runs once and compares this rank's result with the tensors of all ranks as they were before.
  Verification verify() {
    if (tensors.isEmpty()) {
      Chain.of(this).run();
      return PlanLease.together(group, Optional.empty(), new Differences());
    }
    var x = tensors.getFirst();
    var y = tensors.getLast();
    if (!x.equals(y)) {
      y.local().fill(Float.NaN);
    }
    var before = group.gather(x.local());
    Chain.of(this).run();
    var differences = new Differences();
    return PlanLease.together(
        group, compare(before, y.local().toFloats(), differences), differences);
  }

  /// Returns the first wrong value, in words.
  ///
  /// @param before all ranks' `x`
  private Optional<String> compare(List<float[]> before, float[] result, Differences differences) {
    int elements = before.getFirst().length;
    int part = elements / group.size();
    var type = tensors.getFirst().dtype();
    for (int i = 0; i < result.length; i++) {
      float expected =
          switch (call.collective()) {
            case ALL_GATHER -> before.get(i / elements)[i % elements];
            case ALL_TO_ALL -> before.get(i / part)[group.rank() * part + i % part];
            case BROADCAST -> before.get(call.root())[i];
            case REDUCE_SCATTER -> type.round(sum(before, group.rank() * part + i));
            case ALL_REDUCE -> type.round(sum(before, i));
            case SEND, RECEIVE, BARRIER ->
                throw new IllegalStateException("no result of " + call.collective());
          };
      double bound = allowed(before, i, part);
      double difference = Math.abs((double) result[i] - expected);
      if (Float.compare(result[i], expected) == 0 || result[i] == expected) {
        difference = 0;
      }
      if (!(difference <= bound)) {
        return Optional.of(
            "rank %d: element %d of %s is %s but %s is expected"
                .formatted(group.rank(), i, this, result[i], expected));
      }
      if (bound == 0) {
        differences.addExact(1);
      } else {
        differences.add(1, difference, bound);
      }
    }
    return Optional.empty();
  }

  /// Adds in fp32, in the order of the ranks.
  private static float sum(List<float[]> before, int index) {
    float sum = before.getFirst()[index];
    for (var each : before.subList(1, before.size())) {
      sum += each[index];
    }
    return sum;
  }

  /// Returns the largest difference that is allowed: a library adds in its own order and may round
  /// after each addition.
  private double allowed(List<float[]> before, int index, int part) {
    if (!call.collective().adds() || !link.waitsInLibrary()) {
      return 0;
    }
    int element =
        call.collective() == Collective.REDUCE_SCATTER ? group.rank() * part + index : index;
    double magnitude = before.stream().mapToDouble(each -> Math.abs(each[element])).sum();
    return group.size() * tensors.getFirst().dtype().epsilon() * magnitude;
  }

  /// Returns the only link of a recording.
  static CollectiveLink only(List<CollectiveLink> recorded) {
    if (recorded.size() != 1) {
      throw new BraidException(
          "a link is one collective but its body called %d; make a link of each, in the order in which they run"
              .formatted(recorded.size()));
    }
    return recorded.getFirst();
  }

  @Override
  public String toString() {
    return "%s in group `%s`".formatted(words(), group.name());
  }
}
