package braid;

import braid.internal.pipeline.Sequence;
import braid.internal.run.Launchable;
import braid.model.AttentionGradientSpec;
import braid.model.AttentionSpec;
import braid.model.BraidException;
import braid.model.GemmSpec;
import braid.model.Profile;
import braid.model.Timing;
import braid.model.Tuning;
import braid.model.Verification;
import braid.schedule.Schedule;
import braid.schedule.simulation.Machine;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// Pipelines, collectives and other chains that run in order without the host in between, such as a
/// layer:
///
/// ```java
/// var hidden = LocalTensor.on(world).shape(tokens, width / ranks).allocate();
/// var up = Pipeline.on(world).gemm(GemmSpec.allGatherGemm(tokens, width, features)).output(hidden).build();
/// var down = Pipeline.on(world).gemm(GemmSpec.gemmReduceScatter(tokens, features, width)).input(hidden).build();
/// var layer = Chain.of(up, down);
/// layer.time(20);
/// ```
///
/// On each rank, a link begins when the previous one has ended there; other ranks may still be
/// working on the previous one. To pass data, both are bound to the same tensor of the caller: one
/// writes it, the next one reads it. Those that are added together ([#then]) run side by side and
/// share network links and compute units: none of them may write memory that another one uses.
///
/// A collective becomes a link by [Collectives#link]. Collectives of one group run one after the
/// other, also side by side.
///
/// All ranks of the group run, time and profile the chain together. The caller closes the
/// pipelines.
public final class Chain implements Chainable, AutoCloseable {
  private final ProcessGroup group;
  private final List<List<Chainable>> stages;

  /// All pipelines and collectives, those of chains in this one too.
  private final List<Chainable> links;

  private final List<Pipeline> pipelines;

  /// Pipelines that this chain has built and closes.
  private final List<Pipeline> built;

  private final @Nullable Iterations iterations;

  /// Name from the caller; empty by default.
  private final String name;

  private Chain(
      ProcessGroup group, String name, List<List<Chainable>> stages, List<Pipeline> built) {
    this.group = group;
    this.name = name;
    this.stages = stages.stream().map(List::copyOf).toList();
    this.links =
        this.stages.stream().flatMap(List::stream).flatMap(each -> links(each).stream()).toList();
    this.pipelines =
        links.stream().filter(Pipeline.class::isInstance).map(Pipeline.class::cast).toList();
    this.built = List.copyOf(built);
    this.iterations =
        stages.isEmpty()
            ? null
            : new Iterations(
                group,
                links.stream().map(Chain::member).toList(),
                sequence(),
                text(link -> link.group().equals(group) ? subject(link) : "on some ranks"),
                this::toString);
  }

  private static List<Chainable> links(Chainable link) {
    return link instanceof Chain chain ? chain.links : List.of(link);
  }

  private static Iterations.Member member(Chainable link) {
    return switch (link) {
      case Pipeline pipeline -> pipeline.lease().member();
      case CollectiveLink collective -> collective.member();
      case Chain chain -> throw new IllegalStateException("not a link: " + chain);
    };
  }

  /// Describes a link in the same words on all ranks.
  private static String subject(Chainable link) {
    return switch (link) {
      case Pipeline pipeline -> pipeline.lease().text();
      case CollectiveLink collective -> collective.text();
      case Chain chain -> chain.toString();
    };
  }

  /// Memory of this rank that a link uses.
  ///
  /// @param name for messages
  record Used(String name, MemorySegment memory, boolean written) {
    private boolean conflicts(Used neighbor) {
      return written && neighbor.memory.asOverlappingSlice(memory).isPresent();
    }
  }

  private static List<Used> used(Chainable link) {
    return switch (link) {
      case Pipeline pipeline -> pipeline.lease().used();
      case CollectiveLink collective -> collective.used();
      case Chain chain -> chain.links.stream().flatMap(each -> used(each).stream()).toList();
    };
  }

  private static void checkOpen(Chainable link) {
    switch (link) {
      case Pipeline pipeline -> pipeline.checkOpen();
      case CollectiveLink collective -> collective.checkOpen();
      case Chain chain -> chain.links.forEach(Chain::checkOpen);
    }
  }

  private Sequence sequence() {
    return new Sequence(
        stages.stream().map(stage -> stage.stream().map(Chain::launchable).toList()).toList());
  }

  private static Launchable launchable(Chainable link) {
    return switch (link) {
      case Pipeline pipeline -> pipeline.lease().plan();
      case CollectiveLink collective -> collective.link();
      case Chain chain -> chain.sequence();
    };
  }

  /// Chains links in order, on the group of the first.
  public static Chain of(Chainable first, Chainable... others) {
    Given.check("first", first);
    Given.check("others", others);
    var chain = on(first.group()).then(first);
    for (var each : others) {
      chain = chain.then(each);
    }
    return chain;
  }

  /// Begins a chain without links, which all ranks of the group run together. Its links are on that
  /// group or on some of its ranks.
  public static Chain on(ProcessGroup group) {
    Given.check("group", group);
    group.checkMember();
    return new Chain(group, "", List.of(), List.of());
  }

  /// Returns the chain with these links appended, which run side by side.
  public Chain then(Chainable... beside) {
    Given.check("beside", beside);
    var stage = List.of(beside);
    var added = stage.stream().map(Chain::links).toList();
    if (stage.isEmpty() || added.contains(List.<Chainable>of())) {
      throw new BraidException(
          stage.isEmpty()
              ? "then needs 1 or more links but was given none; leave it out"
              : "a chain on `%s` has no links; add them with then(pipeline)"
                  .formatted(stage.get(added.indexOf(List.<Chainable>of())).group().name()));
    }
    var known = new HashSet<>(links);
    for (var each : added.stream().flatMap(List::stream).toList()) {
      checkOpen(each);
      if (!known.add(each)) {
        throw new BraidException(
            "%s is in the chain already; build another one for the second time".formatted(each));
      }
      if (!group.members().containsAll(each.group().members())) {
        throw new BraidException(
            "a link of the chain must be on `%s` or on some of its ranks but %s is on ranks %s; begin with Chain.on(%s)"
                .formatted(group.name(), each, each.group().members(), each.group().name()));
      }
    }
    for (int i = 0; i < added.size(); i++) {
      for (int j = 0; j < added.size(); j++) {
        if (i != j) {
          checkBeside(added.get(i), added.get(j));
        }
      }
    }
    var more = new ArrayList<>(stages);
    more.add(stage);
    return new Chain(group, name, more, built);
  }

  /// Refuses links side by side if one uses memory that another one writes.
  private static void checkBeside(List<Chainable> writers, List<Chainable> others) {
    for (var writer : writers) {
      for (var other : others) {
        for (var each : used(writer)) {
          if (used(other).stream().anyMatch(each::conflicts)) {
            throw new BraidException(
                "links side by side must not share what one of them writes but the %s of %s is in use by %s; put them one after the other, with then(...) for each"
                    .formatted(each.name(), writer, other));
          }
        }
      }
    }
  }

  /// Returns the chain under a name, which tables and charts show instead of its pipelines.
  public Chain named(String label) {
    Given.check("label", label);
    if (label.isBlank()) {
      throw new BraidException("a chain's name must not be blank; try `layer`");
    }
    return new Chain(group, label, stages, built);
  }

  @Override
  public ProcessGroup group() {
    return group;
  }

  /// Returns the pipelines in order, with those of the chains in it.
  public List<Pipeline> pipelines() {
    return pipelines;
  }

  /// Returns the chain with one tuning per pipeline, in order. Pipelines whose tuning changes are
  /// built anew and closed with the new chain. All ranks call it together.
  public Chain with(List<? extends Tuning> tunings) {
    Given.check("tunings", tunings);
    if (tunings.size() != pipelines.size()) {
      throw new BraidException(
          "a tuning for each of %d pipelines is needed but %d were given; give one each"
              .formatted(pipelines.size(), tunings.size()));
    }
    var anew = new ArrayList<Pipeline>();
    try {
      return new Chain(group, name, tuned(List.copyOf(tunings).iterator(), anew, this), anew);
    } catch (RuntimeException | Error e) {
      anew.forEach(Pipeline::close);
      throw e;
    }
  }

  /// Returns the stages with the next tunings.
  ///
  /// @param anew receives the pipelines that are built
  /// @param whole the outermost chain
  private List<List<Chainable>> tuned(
      Iterator<? extends Tuning> tunings, List<Pipeline> anew, Chain whole) {
    var changed = new ArrayList<List<Chainable>>();
    for (var stage : stages) {
      var same = new ArrayList<Chainable>();
      for (var link : stage) {
        switch (link) {
          case Chain chain ->
              same.add(
                  new Chain(chain.group, chain.name, chain.tuned(tunings, anew, whole), List.of()));
          case CollectiveLink collective -> same.add(collective);
          case Pipeline pipeline -> {
            var tuning = tunings.next();
            if (pipeline.isTuned(tuning)) {
              same.add(pipeline);
            } else {
              whole.requireNoReader(pipeline);
              anew.add(pipeline.with(tuning));
              same.add(anew.getLast());
            }
          }
        }
      }
      changed.add(same);
    }
    return changed;
  }

  private void requireNoReader(Pipeline pipeline) {
    reader(pipeline)
        .ifPresent(
            reader -> {
              throw new BraidException(
                  "%s cannot have another tuning, since %s works on its tensors; allocate them yourself and bind both to them"
                      .formatted(pipeline, reader));
            });
  }

  /// Returns another pipeline of the chain that is bound to memory which this one has allocated.
  Optional<Pipeline> reader(Pipeline pipeline) {
    return pipelines.stream()
        .filter(link -> !link.equals(pipeline) && link.lease().borrows(pipeline.lease()))
        .findFirst();
  }

  /// Runs one iteration of all links and waits for its end on this rank.
  public void run() {
    iterate(0);
  }

  private void iterate(int iteration) {
    ready().run(iteration);
  }

  private Iterations ready() {
    var ready = iterations;
    if (ready == null) {
      throw new BraidException("the chain has no links; add them with then(pipeline)");
    }
    checkOpen(this);
    return ready;
  }

  /// Starts one iteration of all links and returns at once. This rank works on meanwhile, and
  /// awaits it later; see [Running].
  public Running start() {
    return ready().start();
  }

  /// Runs the iterations and returns the nanoseconds of each on this rank, in the backend's default
  /// form; see [Pipeline#time(int)].
  public long[] time(int iterations) {
    return time(iterations, group.context().backend().timing());
  }

  /// Runs the iterations and returns the nanoseconds of each on this rank, in the given form. All
  /// ranks call it together.
  public long[] time(int iterations, Timing form) {
    Given.check("form", form);
    var ready = ready();
    return ready.exclusively(
        "time",
        () ->
            switch (form) {
              case LATENCY -> new Measurement(group, this::iterate).time(iterations);
              case BACK_TO_BACK ->
                  Measurement.time(
                      group, iterations, before -> ready.runInFlight(iterations, before));
            });
  }

  /// Runs the iterations one at a time and returns this rank's spans. With several links, streams
  /// of the first one are named `1 comm` and so on.
  public Profile profile(int iterations) {
    var ready = ready();
    var lanes = new ArrayList<Measurement.Lanes>();
    for (int i = 0; i < links.size(); i++) {
      var prefix = links.size() == 1 ? "" : i + 1 + " ";
      lanes.add(
          new Measurement.Lanes(
              prefix,
              switch (links.get(i)) {
                case Pipeline pipeline -> pipeline.streams();
                case CollectiveLink collective -> collective.link().streams();
                case Chain chain -> throw new IllegalStateException("not a link: " + chain);
              }));
    }
    return ready.exclusively(
        "profile",
        () ->
            new Measurement(group, this::iterate).profile(iterations, lanes, this::configuration));
  }

  /// Verifies each link alone, in order; see [Pipeline#verify()]. A collective is compared with all
  /// ranks' tensors as they were before.
  ///
  /// @return what was compared, of all links
  public Verification verify() {
    return ready()
        .exclusively(
            "verify",
            () -> links.stream().map(Chain::verify).reduce(Verification::and).orElseThrow());
  }

  private static Verification verify(Chainable link) {
    return switch (link) {
      case Pipeline pipeline -> pipeline.verify();
      case CollectiveLink collective -> collective.verify();
      case Chain chain -> chain.verify();
    };
  }

  /// The links, their ranks, backend, link and memory, as columns of a table.
  SequencedMap<String, String> configuration() {
    if (links.size() == 1 && links.getFirst() instanceof Pipeline pipeline) {
      return pipeline.lease().configuration();
    }
    var columns = new LinkedHashMap<String, String>();
    if (name.isEmpty()) {
      columns.put("pattern", "chain");
      for (int i = 0; i < links.size(); i++) {
        columns.put(column(i), text(links.get(i)));
      }
    } else {
      columns.put("chain", name);
    }
    var last =
        pipelines.isEmpty()
            ? ((CollectiveLink) links.getFirst()).configuration()
            : pipelines.getFirst().lease().configuration();
    last.keySet().retainAll(List.of("backend", "link", "memory"));
    columns.put("ranks", Integer.toString(group.size()));
    columns.putAll(last);
    return columns;
  }

  /// Returns the time of an iteration that a simulation predicts: links of a stage run at once, and
  /// stages one after another. Returns 0 if a link cannot be simulated.
  double predictedNanos(Machine machine) {
    double sum = 0;
    for (var stage : stages) {
      double longest = 0;
      for (var link : stage) {
        double nanos = predictedNanos(link, machine);
        if (nanos == 0) {
          return 0;
        }
        longest = Math.max(longest, nanos);
      }
      sum += longest;
    }
    return sum;
  }

  private static double predictedNanos(Chainable link, Machine machine) {
    return switch (link) {
      case Chain chain -> chain.predictedNanos(machine);
      case Pipeline pipeline -> predictedNanos(pipeline.schedule(), machine);
      case CollectiveLink collective ->
          collective.schedule().map(each -> predictedNanos(each, machine)).orElse(0.0);
    };
  }

  /// Returns the time of an iteration of a schedule; 0 if it cannot be simulated.
  static double predictedNanos(Schedule schedule, Machine machine) {
    try {
      return machine.iterationNanos(schedule);
    } catch (BraidException _) {
      // A step has no model, such as a library call, or the machine has no rates of the type.
      return 0;
    }
  }

  /// The columns of [#configuration] without tunings and ranks.
  SequencedMap<String, String> problem() {
    var columns = configuration();
    columns.remove("ranks");
    if (links.size() == 1 && links.getFirst() instanceof Pipeline pipeline) {
      columns.keySet().removeAll(pipeline.lease().plan().source().columns().keySet());
    }
    for (int i = 0; i < links.size(); i++) {
      if (links.get(i) instanceof Pipeline pipeline) {
        columns.replace(column(i), pipeline.problem().toString());
      }
    }
    return columns;
  }

  private String column(int link) {
    var kind =
        links.get(link) instanceof Pipeline pipeline
            ? switch (pipeline.problem()) {
              case GemmSpec _ -> "pipeline";
              case AttentionSpec _ -> "attention";
              case AttentionGradientSpec _ -> "backward";
            }
            : "collective";
    return "%s %d".formatted(kind, link + 1);
  }

  /// Describes a link for tables and messages.
  private static String text(Chainable link) {
    return switch (link) {
      case Pipeline pipeline -> pipeline.lease().text();
      case CollectiveLink collective -> collective.words();
      case Chain chain -> chain.toString();
    };
  }

  private String text(Function<Chainable, String> each) {
    return stages.stream()
        .map(
            stage ->
                stage.stream()
                    .map(link -> text(link, each))
                    .collect(Collectors.joining(" beside ")))
        .collect(Collectors.joining(" -> "));
  }

  private static String text(Chainable link, Function<Chainable, String> each) {
    return link instanceof Chain chain ? "(%s)".formatted(chain.text(each)) : each.apply(link);
  }

  /// Closes the pipelines that [#with] has built for this chain, and no others.
  @Override
  public void close() {
    built.forEach(Pipeline::close);
  }

  @Override
  public String toString() {
    return "chain %s, on %s".formatted(name.isEmpty() ? text(Chain::text) : name, group.name());
  }
}
