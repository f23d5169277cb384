package braid;

import static braid.model.ContextParallel.Method.TWO_LEVEL;

import braid.model.BraidException;
import braid.model.ContextParallel;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Pattern;
import braid.model.MemoryKind;
import braid.model.Method;
import braid.model.Overlap;
import braid.model.Problem;
import braid.model.Transport;
import braid.model.Tuning;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Tunings that a tuner tries: an exact list, or every combination of the options that the problem
/// allows.
final class Grid {
  /// Largest number of bytes that a rank receives for a search to try one kernel. With more, time
  /// is that of the link, and copy engines leave the compute units to the multiplication.
  static final long MOST_IN_ONE_KERNEL_BYTES = 64L << 20;

  /// Workers of a GPU that a search tries.
  private static final List<Integer> WORKERS = List.of(8, 24);

  private final ProcessGroup group;
  private final @Nullable MemoryKind kind;
  private boolean whole;
  private @Nullable List<Integer> splits;
  private @Nullable List<Integer> streams;
  private @Nullable List<Transport> transports;

  /// One tuning per method, with the default of everything else.
  private @Nullable List<Tuning> methods;

  private @Nullable List<Tuning> exact;

  /// @param kind kind of symmetric memory; null for the default
  Grid(ProcessGroup group, @Nullable MemoryKind kind) {
    this.group = group;
    this.kind = kind;
  }

  /// Takes every value of the options that are not given, instead of a few.
  void whole() {
    if (exact != null) {
      throw new BraidException(
          "search has no effect beside overlaps, which lists every configuration; leave it out");
    }
    whole = true;
  }

  /// @param ofFamilies true if schedules of one's own have splits, beside an exact list of tunings
  void splits(List<Integer> counts, boolean ofFamilies) {
    SetOnce.check("splits", splits);
    splits = ofFamilies ? distinct("splits", counts) : option("splits", splits, counts);
  }

  void streams(List<Integer> counts) {
    streams = option("streams", streams, counts);
  }

  void transports(List<Transport> tried) {
    transports = option("transports", transports, tried);
  }

  void methods(List<Method> tried) {
    requireGroups(tried.contains(Method.TWO_LEVEL));
    methods = option("methods", methods, tried.stream().flatMap(this::bases).toList());
    requireNoReference("methods", methods);
  }

  void methodsOfAttention(List<ContextParallel.Method> tried) {
    requireGroups(tried.contains(TWO_LEVEL));
    methods = option("methods", methods, tried.stream().flatMap(this::bases).toList());
    requireNoReference("methods", methods);
  }

  private void requireGroups(boolean tried) {
    if (tried && groupSizes().findAny().isEmpty()) {
      throw new BraidException(
          "two-level needs a number of ranks that can be divided into groups but group `%s` has %d; leave it out"
              .formatted(group.name(), group.size()));
    }
  }

  /// @param ofFamilies true if schedules of one's own have splits
  void exactly(List<Tuning> tunings, boolean ofFamilies) {
    SetOnce.check("overlaps", exact);
    if (whole) {
      throw new BraidException(
          "overlaps lists every configuration, so search has no effect beside it; leave it out");
    }
    if (!given().stream().allMatch(option -> ofFamilies && option.equals("splits"))) {
      throw new BraidException(
          "overlaps lists every configuration, so splits, streams, methods and transports have"
              + " no effect beside it; put all into overlaps(...), or leave it out");
    }
    exact =
        distinct(
            "overlaps",
            tunings.stream().map(tuning -> Feasibility.grouped(tuning, group)).toList());
    requireNoReference("overlaps", exact);
  }

  private <T> List<T> option(String name, @Nullable List<T> before, List<T> values) {
    SetOnce.check(name, before);
    if (exact != null) {
      throw new BraidException(
          "%s has no effect beside overlaps, which lists every configuration; put all into overlaps(...)"
              .formatted(name));
    }
    return distinct(name, values);
  }

  static <T> List<T> distinct(String name, List<T> values) {
    if (values.isEmpty() || values.stream().distinct().count() < values.size()) {
      throw new BraidException(
          "%s must be one or more different values but were %s"
              .formatted(
                  name,
                  values.stream()
                      .map(String::valueOf)
                      .collect(Collectors.joining(", ", "(", ")"))));
    }
    return List.copyOf(values);
  }

  private static void requireNoReference(String name, List<Tuning> tunings) {
    if (tunings.contains(Overlap.unfused()) || tunings.contains(ContextParallel.unfused())) {
      throw new BraidException(
          "%s must be ways to overlap but were %s; leave out unfused, it is always measured"
              .formatted(name, tunings));
    }
  }

  /// Returns the names of the options that were given, the exact list excepted.
  private List<String> given() {
    var given = new ArrayList<String>();
    Stream.ofNullable(splits).forEach(_ -> given.add("splits"));
    Stream.ofNullable(streams).forEach(_ -> given.add("streams"));
    Stream.ofNullable(methods).forEach(_ -> given.add("methods"));
    Stream.ofNullable(transports).forEach(_ -> given.add("transports"));
    return given;
  }

  /// Refuses every option, for a problem that has no tunings.
  void requireNone(String steps) {
    Stream.concat(given().stream(), Stream.ofNullable(exact).map(_ -> "overlaps"))
        .forEach(
            option -> {
              throw new BraidException(
                  "%s has no effect beside steps, which was %s; set one of the two"
                      .formatted(option, steps));
            });
  }

  /// Returns the split counts that a family of schedules is made for.
  List<Integer> splitCounts() {
    return splits == null ? Tuner.DEFAULT_SPLITS : splits;
  }

  /// Returns the tunings for a problem. Combinations that the problem does not allow are left out.
  ///
  /// @param strict true to refuse an option's value that no possible tuning has, false to leave it
  ///   out
  /// @param notes receives a line if any combination is left out
  /// @throws BraidException if the problem allows no tuning, or not one of the exact list
  List<Tuning> possible(Problem problem, boolean strict, List<String> notes) {
    if (exact != null) {
      exact.forEach(tuning -> Feasibility.check(problem, tuning, group));
      return exact;
    }
    var possible = new ArrayList<Tuning>();
    var refused = new LinkedHashMap<Tuning, BraidException>();
    for (var tuning : all(problem)) {
      try {
        Feasibility.check(problem, tuning, group);
        possible.add(tuning);
      } catch (BraidException e) {
        refused.put(tuning, e);
      }
    }
    refused.forEach(
        (tuning, refusal) -> {
          boolean without =
              strict && given().stream().anyMatch(option -> !has(possible, option, tuning));
          if (possible.isEmpty() || without) {
            throw explained(problem, tuning, refusal);
          }
        });
    if (!refused.isEmpty()) {
      var first = refused.firstEntry();
      notes.add(
          "left out %d of %d configurations, such as %s: %s"
              .formatted(
                  refused.size(),
                  refused.size() + possible.size(),
                  first.getKey(),
                  first.getValue().getMessage()));
    }
    leftOut(problem).ifPresent(notes::add);
    notes.addAll(replacements(problem));
    return possible;
  }

  /// Returns true if any tuning has the same value of an option as `wanted`.
  private static boolean has(List<Tuning> tunings, String option, Tuning wanted) {
    var column =
        switch (option) {
          case "methods" -> "method";
          case "transports" -> "transport";
          default -> option;
        };
    var value = wanted.columns().getOrDefault(column, "");
    return tunings.stream().anyMatch(each -> value.equals(each.columns().getOrDefault(column, "")));
  }

  /// Returns all tunings for a problem, possible or not.
  List<Tuning> all(Problem problem) {
    if (exact != null) {
      return exact;
    }
    boolean ofGemm = problem instanceof GemmSpec;
    var tried = methods(problem);
    if (tried.equals(List.of(Overlap.bulk())) && (splits != null || streams != null)) {
      throw new BraidException(
          "bulk has 1 split and 1 stream, but %s was given; leave it out, or add a method"
              .formatted(splits != null ? "splits " + splits : "streams " + streams));
    }
    var counts =
        splits != null ? splits : ofGemm ? Tuner.DEFAULT_SPLITS : Tuner.DEFAULT_ATTENTION_SPLITS;
    var all = new LinkedHashSet<Tuning>();
    for (var method : tried) {
      for (var transport :
          values(transports, List.of(Transport.values()), Tuner.DEFAULT_TRANSPORTS)) {
        for (int stream : values(streams, Tuner.SEARCHED_STREAMS, Tuner.DEFAULT_STREAMS)) {
          for (int split : counts) {
            var tuning = replaced(problem, tuning(method, split, stream, transport));
            if (transports == null
                && !(isOffered(problem, tuning) && isWorthOneKernel(problem, tuning))) {
              continue;
            }
            if (whole) {
              workers(tuning).flatMap(each -> Stream.of(each, each.replay())).forEach(all::add);
            } else {
              all.add(tuning);
            }
          }
        }
      }
    }
    all.remove(Tuning.unfused(problem)); // the reference, which is always measured
    return List.copyOf(all);
  }

  private List<Tuning> methods(Problem problem) {
    return methods != null ? methods : problem instanceof GemmSpec ? bases() : basesOfAttention();
  }

  /// Returns the tuning over the library that has its method, if the one that was named lacks it.
  private Tuning replaced(Problem problem, Tuning tuning) {
    return transports != null
            && problem instanceof GemmSpec spec
            && tuning instanceof Overlap overlap
        ? overlap
            .transport()
            .replacement(spec.pattern(), overlap.method())
            .map(overlap::over)
            .orElse(overlap)
        : tuning;
  }

  /// Returns a line for each method that a named library lacks and another one runs.
  List<String> replacements(Problem problem) {
    if (!(problem instanceof GemmSpec spec)) {
      return List.of();
    }
    var pattern = spec.pattern();
    var lines = new ArrayList<String>();
    for (var library : values(transports, List.of(), List.of())) {
      methods(problem).stream()
          .map(tuning -> tuning.require(Overlap.class, spec).method())
          .distinct()
          .forEach(
              method ->
                  library
                      .replacement(pattern, method)
                      .map(
                          "%s has no %s of %s, so it runs over %%s"
                                  .formatted(library, method, pattern)
                              ::formatted)
                      .ifPresent(lines::add));
    }
    return lines;
  }

  /// Returns a refusal that also says why a library is meant that nobody named.
  private BraidException explained(Problem problem, Tuning tuning, BraidException refusal) {
    boolean named = transports == null || transports.contains(tuning.transport());
    return named
        ? refusal
        : new BraidException(
            "%s: %s".formatted(String.join("; ", replacements(problem)), refusal.getMessage()),
            refusal);
  }

  private <T> List<T> values(@Nullable List<T> given, List<T> searched, List<T> otherwise) {
    return given != null ? given : whole ? searched : otherwise;
  }

  /// Returns whether a search tries a tuning, if a library moves its bytes.
  private boolean isOffered(Problem problem, Tuning tuning) {
    var transport = tuning.transport();
    return !transport.isLibrary()
        || (problem instanceof GemmSpec spec
            && tuning instanceof Overlap overlap
            && withheld(spec, overlap.method(), transport).isEmpty());
  }

  /// Returns why a search does not try a library: it has not the method, needs other memory than
  /// the pipeline, or is not available. One that multiplies is tried if it is named.
  private Optional<String> withheld(GemmSpec spec, Method method, Transport library) {
    var context = group.context();
    var wanted = kind == null ? context.env().memory() : kind;
    return Optional.of(library.unsupported(spec.pattern(), method))
        .filter(reason -> !reason.isEmpty())
        .or(
            () ->
                library
                    .memory()
                    .filter(needed -> wanted != MemoryKind.AUTO && wanted != needed)
                    .map(needed -> "needs memory %s but it is %s".formatted(needed, wanted)))
        .or(
            () ->
                Optional.of("not tried on GPUs; name it in transports(...)")
                    .filter(_ -> library.multiplies()))
        .or(() -> context.backend().missing(library));
  }

  /// Returns a line that names the libraries that a search leaves out, each with the reason; empty
  /// on the host, which has none.
  private Optional<String> leftOut(Problem problem) {
    boolean chosen = transports != null || !whole || !group.onGpu();
    if (chosen || !(problem instanceof GemmSpec spec)) {
      return Optional.empty();
    }
    var method = spec.pattern().beside() ? Method.BULK : Method.PIPELINED;
    return Stream.of(Transport.values())
        .filter(Transport::isLibrary)
        .flatMap(
            library ->
                withheld(spec, method, library).map(reason -> library + ": " + reason).stream())
        .reduce((all, next) -> all + "; " + next)
        .map(all -> "left out libraries: " + all);
  }

  /// Returns whether a search tries a tuning, if it is over one kernel: the method that moves all
  /// bytes in one launch, for a small message. Attention exchanges large ones, and a kernel that
  /// waits beside a multiplication takes compute units from it.
  private boolean isWorthOneKernel(Problem problem, Tuning tuning) {
    return tuning.transport() != Transport.ONE_KERNEL
        || (problem instanceof GemmSpec spec
            && !spec.pattern().beside()
            && tuning instanceof Overlap overlap
            && isInOneKernel(spec, overlap.method())
            && overlap.splits() == 1
            && overlap.streams() == 1
            && receivedBytes(spec) <= MOST_IN_ONE_KERNEL_BYTES);
  }

  /// Returns whether one kernel moves all bytes: of a sum directly, and of an all-reduce also
  /// unfused.
  private static boolean isInOneKernel(GemmSpec spec, Method method) {
    return switch (method) {
      case DIRECT -> spec.pattern().reduces();
      case UNFUSED ->
          !spec.pattern().reduces()
              || (spec.pattern() == GemmSpec.Pattern.GEMM_ALL_REDUCE && !spec.finishesSum());
      case PIPELINED, RING, BULK, TWO_LEVEL, DOUBLING -> false;
    };
  }

  /// Returns the number of bytes that a rank receives from all others.
  private double receivedBytes(GemmSpec spec) {
    int ranks = group.size();
    double all =
        (double) spec.m()
            * (spec.pattern().reduces()
                ? (double) spec.n() * spec.sumDtype().bytes()
                : (double) spec.k() * spec.dtype().bytes());
    return all * (ranks - 1) / (spec.pattern() == Pattern.GEMM_ALL_REDUCE ? 1 : ranks);
  }

  private Stream<Tuning> workers(Tuning tuning) {
    return group.onGpu() && tuning.transport() == Transport.WORKERS
        ? WORKERS.stream().map(tuning::workers)
        : Stream.of(tuning);
  }

  private static Tuning tuning(Tuning method, int splits, int streams, Transport transport) {
    if (method.equals(Overlap.bulk()) || method.equals(Overlap.unfused())) {
      return method.over(transport);
    }
    var base =
        switch (method) {
          case Overlap overlap ->
              Overlap.of(overlap.method(), splits).groupRanks(overlap.groupRanks());
          case ContextParallel attention -> attention.splits(splits);
        };
    return base.streams(streams).over(transport);
  }

  /// Returns the tunings to try by default. Those of two levels have groups of the ranks of a host,
  /// of several hosts.
  private List<Tuning> bases() {
    return (whole ? Stream.of(Method.values()) : Tuner.DEFAULT_METHODS.stream())
        .flatMap(this::bases)
        .filter(
            base ->
                !(base instanceof Overlap overlap)
                    || overlap.method() != Method.TWO_LEVEL
                    || overlap.groupRanks() == Feasibility.ranksPerHost(group))
        .toList();
  }

  private List<Tuning> basesOfAttention() {
    return Tuner.DEFAULT_ATTENTION_METHODS.stream().flatMap(this::bases).toList();
  }

  /// Returns the tunings of a method of GEMMs: two levels have one per size of a group.
  private Stream<Tuning> bases(Method method) {
    return method == Method.TWO_LEVEL
        ? groupSizes().mapToObj(Overlap::twoLevel)
        : Stream.of(Overlap.of(method, 1));
  }

  /// Returns the sizes of several groups of several ranks.
  private IntStream groupSizes() {
    return IntStream.range(2, group.size()).filter(ranks -> group.size() % ranks == 0);
  }

  /// Returns the tunings of a method of attention: two levels have one per group that exchanges
  /// heads.
  private Stream<Tuning> bases(ContextParallel.Method method) {
    return switch (method) {
      case RING ->
          whole
              ? Stream.of(ContextParallel.ring(), ContextParallel.ring().neighborToNeighbor())
              : Stream.of(ContextParallel.ring());
      case ALL_GATHER_KV -> Stream.of(ContextParallel.allGatherKv());
      case ULYSSES -> Stream.of(ContextParallel.ulysses());
      case UNFUSED -> Stream.of(ContextParallel.unfused());
      case TWO_LEVEL -> groupSizes().mapToObj(ContextParallel::twoLevel);
    };
  }
}
