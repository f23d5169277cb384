package braid.schedule.check;

import braid.model.AttentionGradientSpec;
import braid.model.AttentionSpec;
import braid.model.Collective;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Feature;
import braid.model.Problem;
import braid.schedule.Goal;
import braid.schedule.Part;
import braid.schedule.Port;
import braid.schedule.Region;
import braid.schedule.Schedule;
import braid.schedule.Shares;
import braid.schedule.Slice;
import braid.schedule.check.Value.Applied;
import braid.schedule.check.Value.Attended;
import braid.schedule.check.Value.Origin;
import braid.schedule.check.Value.Product;
import braid.schedule.check.Value.Repeated;
import braid.schedule.check.Value.Rows;
import braid.schedule.check.Value.Together;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import java.util.function.IntToLongFunction;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/// Expected values of a schedule's outputs (its made ports). They follow from the unfused code of
/// [GemmSpec] and [AttentionSpec] and from the definition of each collective, not from the
/// planners, so they can be compared with planned schedules.
final class Expected {
  private final int ranks;
  private final List<Output> outputs = new ArrayList<>();
  private final List<String> findings = new ArrayList<>();

  /// Rows of a made port, and the value that they must have.
  record Output(Region rows, Value value) {}

  /// A rank's rows of a port.
  ///
  /// @param start position of the first row among the rows of all ranks
  private record PortRows(Region region, long start) {
    Slice rows() {
      return new Slice(start, region.rows());
    }

    /// Returns the value of other rows that are equal to these rows at the same positions.
    Value seenBy(PortRows other) {
      return atDistance(region.row() - start - other.region.row() + other.start);
    }

    /// Returns the value of rows that are some rows before these, in columns from 0 on.
    Value atDistance(long distance) {
      return new Rows(
          region.buffer().name(), region.rank(), distance, region.column(), Origin.GIVEN);
    }

    /// Returns the part of the region that has these positions.
    Region at(Slice rows) {
      return region.rows(rows.shifted(region.row() - start));
    }
  }

  private Expected(int ranks) {
    this.ranks = ranks;
  }

  /// Returns the values that the goal of a schedule requires.
  static Expected of(Schedule schedule) {
    var expected = new Expected(schedule.ranks());
    switch (schedule.goal()) {
      case Goal.Solution(GemmSpec spec, var _) -> expected.gemm(spec, schedule);
      case Goal.Solution(AttentionSpec spec, var _) ->
          expected.attention(
              spec,
              spec,
              List.of(Part.QUERY),
              List.of(Part.OUTPUT, Part.LSE),
              List.of(Part.OUTPUT, Part.LSE),
              schedule);
      case Goal.Solution(AttentionGradientSpec spec, var _) ->
          expected.attention(
              spec,
              spec.forward(),
              List.of(Part.QUERY, Part.OUTPUT, Part.LSE, Part.OUTPUT_GRADIENT),
              List.of(Part.QUERY, Part.KEY, Part.VALUE),
              List.of(Part.QUERY_GRADIENT, Part.KEY_GRADIENT, Part.VALUE_GRADIENT),
              schedule);
      case Goal.Collected(Collective collective, int root) ->
          expected.ports(collective, root, schedule);
      case Goal.Unstated _ -> {}
    }
    return expected;
  }

  /// Returns the values of the regions `y` after a collective of the regions `x`; both have one
  /// region per rank.
  static Expected of(Collective collective, int root, List<Region> x, List<Region> y) {
    var expected = new Expected(x.size());
    expected.collected(collective, root, x, y);
    return expected;
  }

  /// Returns the expected outputs. They are empty if the ports do not match the goal; then
  /// [#findings] has the reasons.
  List<Output> outputs() {
    return findings.isEmpty() ? outputs : List.of();
  }

  List<String> findings() {
    return findings;
  }

  /// Returns the rows of a part by rank.
  ///
  /// @param start by rank, position of the first row
  private List<PortRows> rows(
      Part part, Problem problem, Schedule schedule, IntToLongFunction start) {
    var port = schedule.port(part.port());
    if (port.isEmpty()) {
      findings.add(
          "the goal, %s, needs a %s port `%s` but the schedule has none; add it to the builder"
              .formatted(schedule.goal(), part.given() ? "given" : "made", part.port()));
      return List.of();
    }
    var expected = part.buffer(problem, ranks, false);
    var all = new ArrayList<PortRows>();
    for (int rank = 0; rank < ranks; rank++) {
      var region = port.get().on(rank);
      if (region.rows() != expected.rows(rank) || region.columns() != expected.columns(rank)) {
        findings.add(
            "port `%s` of rank %d must have %d x %d numbers but has %d x %d"
                .formatted(
                    part.port(),
                    rank,
                    expected.rows(rank),
                    expected.columns(rank),
                    region.rows(),
                    region.columns()));
      }
      all.add(new PortRows(region, start.applyAsLong(rank)));
    }
    return all;
  }

  /// Returns the rows of a part that only problems with a feature have.
  private List<PortRows> rows(
      Part part, Feature feature, GemmSpec spec, Schedule schedule, IntToLongFunction start) {
    return spec.has(feature) ? rows(part, spec, schedule, start) : List.of();
  }

  private void gemm(GemmSpec spec, Schedule schedule) {
    var shares = IntStream.range(0, ranks).mapToObj(rank -> Shares.of(spec, ranks, rank)).toList();
    boolean gathers = spec.pattern() == GemmSpec.Pattern.GEMM_BESIDE_ALL_GATHER;
    IntToLongFunction first = _ -> 0;
    IntToLongFunction firstOutput = rank -> shares.get(rank).output().start();
    IntToLongFunction ownPart = rank -> Slice.of(spec.besideElements(), ranks, rank).start();
    var input = rows(Part.INPUT, spec, schedule, rank -> shares.get(rank).input().start());
    var output = rows(Part.OUTPUT, spec, schedule, firstOutput);
    var beside = new ArrayList<PortRows>();
    var besideOutput = new ArrayList<PortRows>();
    if (spec.pattern().beside()) {
      beside.addAll(rows(Part.BESIDE_INPUT, spec, schedule, gathers ? ownPart : first));
      besideOutput.addAll(rows(Part.BESIDE_OUTPUT, spec, schedule, gathers ? first : ownPart));
    }
    var gathered = rows(Part.GATHERED_INPUT, Feature.GATHERED_INPUT, spec, schedule, first);
    var weights = rows(Part.WEIGHT, spec, schedule, first);
    var biases = rows(Part.BIAS, Feature.BIAS, spec, schedule, first);
    var kept = rows(Part.PRE_ACTIVATION, Feature.GELU, spec, schedule, firstOutput);
    if (!findings.isEmpty()) {
      return;
    }
    for (int rank = 0; rank < ranks; rank++) {
      var out = output.get(rank);
      var terms = new ArrayList<Value>();
      if (spec.has(Feature.ACCUMULATE)) {
        terms.add(new Rows(out.region().buffer().name(), rank, 0, 0, Origin.BEFORE));
      }
      if (spec.has(Feature.BIAS)) {
        var bias = biases.get(rank);
        terms.add(new Repeated(bias.atDistance(bias.region().row())));
      }
      var preActivation = kept.isEmpty() ? out : kept.get(rank);
      switch (spec.pattern()) {
        case ALL_GATHER_GEMM -> {
          for (var in : input) {
            var product = product(spec, in, out, weights.get(rank));
            finish(spec, product, terms, preActivation, out, in.rows());
          }
        }
        case GEMM_REDUCE_SCATTER, GEMM_ALL_REDUCE -> {
          var products = new ArrayList<Value>();
          for (int from = 0; from < ranks; from++) {
            products.add(product(spec, input.get(from), out, weights.get(from)));
          }
          finish(spec, Value.sum(products), terms, preActivation, out, out.rows());
        }
        case GEMM_BESIDE_ALL_GATHER, GEMM_BESIDE_REDUCE_SCATTER -> {
          var product = product(spec, input.get(rank), out, weights.get(rank));
          finish(spec, product, terms, preActivation, out, out.rows());
        }
      }
    }
    gather(input, gathered);
    if (gathers) {
      gather(beside, besideOutput);
    } else {
      add(beside, besideOutput);
    }
  }

  private static Value product(GemmSpec spec, PortRows input, PortRows out, PortRows weight) {
    var factor =
        new Piece(new Slice(0, weight.region().rows()), weight.atDistance(weight.region().row()));
    return new Product(input.seenBy(out), List.of(factor), spec.isScaled() ? 1 : Product.UNSCALED);
  }

  /// Expects a product and other terms in some rows of an output.
  private void finish(
      GemmSpec spec,
      Value product,
      List<Value> others,
      PortRows preActivation,
      PortRows out,
      Slice rows) {
    var terms = new ArrayList<>(others);
    terms.addFirst(product);
    var value = Value.sum(terms);
    if (spec.has(Feature.GELU)) {
      long distance = out.region().row() - preActivation.region().row();
      outputs.add(new Output(preActivation.at(rows), value.moved(distance, 0)));
      value = new Applied(Value.Function.GELU, value);
    }
    if (spec.outputDtype().isFp8()) {
      value = new Applied(Value.Function.RESCALED, value);
    }
    outputs.add(new Output(out.at(rows), value));
  }

  /// Expects the results of attention, or of its backward pass.
  ///
  /// @param queryParts what a row of queries is used with
  /// @param parts what the results are: see [Attended]
  /// @param results the ports of the results
  private void attention(
      Problem problem,
      AttentionSpec spec,
      List<Part> queryParts,
      List<Part> parts,
      List<Part> results,
      Schedule schedule) {
    Function<Part, List<PortRows>> tensors = part -> columns(part, problem, spec, schedule);
    var queries = queryParts.stream().map(tensors).toList();
    var keys = Stream.of(Part.KEY, Part.VALUE).map(tensors).toList();
    var out = results.stream().map(tensors).toList();
    if (!findings.isEmpty()) {
      return;
    }
    var queryBlocks = blocks(spec, Part.QUERY, queries);
    var keyBlocks = blocks(spec, Part.KEY, keys);
    for (int rank = 0; rank < ranks; rank++) {
      for (int i = 0; i < parts.size(); i++) {
        for (var run : parts.get(i).tokens(spec, ranks, rank).consecutive()) {
          boolean ofKeys = parts.get(i) == Part.KEY || parts.get(i) == Part.VALUE;
          var result = out.get(i).get(rank);
          var row = new ArrayList<Value>();
          for (var own : ofKeys ? keys : queries) {
            var value = own.get(rank).seenBy(result);
            row.add(ofKeys ? used(spec, value) : value);
          }
          outputs.add(
              new Output(
                  result.at(Slice.rows(run)),
                  new Attended(
                          spec,
                          parts.get(i),
                          new Together(row),
                          run.first() - run.row() - result.region().row(),
                          0,
                          ofKeys ? queryBlocks : keyBlocks)
                      .moved(0, -result.region().column())));
        }
      }
    }
  }

  /// Returns a key or value as attention uses it.
  private static Value used(AttentionSpec spec, Value given) {
    return spec.isRounded() ? new Applied(Value.Function.ROUNDED, given) : given;
  }

  /// Returns the rows of a part by rank: columns of a fused tensor's port.
  private List<PortRows> columns(
      Part part, Problem problem, AttentionSpec spec, Schedule schedule) {
    var slice = part.columnsOfTensor(spec);
    return rows(part.tensor(spec), problem, schedule, _ -> 0).stream()
        // Ports with other sizes were reported.
        .filter(rows -> slice.end() <= rows.region().columns())
        .map(rows -> new PortRows(rows.region().columns(slice), rows.start()))
        .toList();
  }

  /// Returns the rows of all ranks by position in the sequence.
  ///
  /// @param side the query or the key, whose rows they are
  private List<Piece> blocks(AttentionSpec spec, Part side, List<List<PortRows>> parts) {
    var blocks = new ArrayList<Piece>();
    for (int rank = 0; rank < ranks; rank++) {
      for (var run : side.tokens(spec, ranks, rank).consecutive()) {
        var row = new ArrayList<Value>();
        for (var part : parts) {
          var own = part.get(rank);
          var value = own.atDistance(own.region().row() + run.row() - run.first());
          row.add(side == Part.KEY ? used(spec, value) : value);
        }
        blocks.add(new Piece(new Slice(run.first(), run.length()), new Together(row)));
      }
    }
    return blocks;
  }

  private void ports(Collective collective, int root, Schedule schedule) {
    if (collective == Collective.BARRIER) {
      return;
    }
    var given = schedule.ports().stream().filter(Port::given).toList();
    var made = schedule.ports().stream().filter(port -> !port.given()).toList();
    if (given.size() == 1 && made.size() == 1) {
      collected(collective, root, given.getFirst().regions(), made.getFirst().regions());
    } else {
      findings.add(
          "a schedule of %s needs 1 given and 1 made port but has %d and %d"
              .formatted(collective, given.size(), made.size()));
    }
  }

  private void collected(Collective collective, int root, List<Region> x, List<Region> y) {
    switch (collective) {
      case ALL_GATHER -> gather(consecutive(x), whole(y));
      case REDUCE_SCATTER -> add(whole(x), consecutive(y));
      case ALL_REDUCE -> add(whole(x), whole(y));
      case BROADCAST -> gather(whole(x.subList(root, root + 1)), whole(y));
      case ALL_TO_ALL -> exchange(x, y);
      case SEND, RECEIVE, BARRIER -> {}
    }
  }

  private static List<PortRows> whole(List<Region> regions) {
    return regions.stream().map(region -> new PortRows(region, 0)).toList();
  }

  private static List<PortRows> consecutive(List<Region> regions) {
    var portRows = new ArrayList<PortRows>();
    long start = 0;
    for (var region : regions) {
      portRows.add(new PortRows(region, start));
      start += region.rows();
    }
    return portRows;
  }

  /// Expects each of `from` at its position in each of `into`.
  private void gather(List<PortRows> from, List<PortRows> into) {
    for (var out : into) {
      long rows = from.stream().mapToLong(in -> in.rows().length()).sum();
      if (rows == out.rows().length()) {
        from.forEach(in -> outputs.add(new Output(out.at(in.rows()), in.seenBy(out))));
      } else {
        findings.add(
            "%s has %d rows but %d are gathered; give it %d rows"
                .formatted(out.region(), out.rows().length(), rows, rows));
      }
    }
  }

  /// Expects the sum of all of `from` in each of `into`.
  private void add(List<PortRows> from, List<PortRows> into) {
    for (var out : into) {
      for (var in : from) {
        if (in.rows().end() < out.rows().end()) {
          findings.add(
              "%s has no rows for rows %d..%d of the sum in %s; give all ranks the same number of rows"
                  .formatted(in.region(), in.rows().end(), out.rows().end() - 1, out.region()));
          return;
        }
      }
      outputs.add(
          new Output(out.region(), Value.sum(from.stream().map(in -> in.seenBy(out)).toList())));
    }
  }

  private void exchange(List<Region> x, List<Region> y) {
    for (int to = 0; to < ranks; to++) {
      var into = y.get(to);
      var parts = new ArrayList<Region>();
      for (var from : x) {
        var part = from.slice().part(ranks, to);
        parts.add(new Region(from.buffer(), from.rank(), part.start(), part.length()));
      }
      gather(consecutive(parts), List.of(new PortRows(into, 0)));
    }
  }
}
