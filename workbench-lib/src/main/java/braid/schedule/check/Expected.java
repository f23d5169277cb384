package braid.schedule.check;

import braid.model.AttentionGradientSpec;
import braid.model.AttentionSpec;
import braid.model.Collective;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Feature;
import braid.schedule.Goal;
import braid.schedule.Part;
import braid.schedule.Port;
import braid.schedule.Region;
import braid.schedule.Schedule;
import braid.schedule.Shares;
import braid.schedule.Slice;
import braid.schedule.Tokens;
import braid.schedule.check.Value.Attended;
import braid.schedule.check.Value.Block;
import braid.schedule.check.Value.Factor;
import braid.schedule.check.Value.Gelu;
import braid.schedule.check.Value.Gradient;
import braid.schedule.check.Value.Origin;
import braid.schedule.check.Value.Product;
import braid.schedule.check.Value.Repeated;
import braid.schedule.check.Value.Rescaled;
import braid.schedule.check.Value.Rows;
import braid.schedule.check.Value.Statistics;
import braid.schedule.check.Value.Together;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

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
      return new Rows(
          region.buffer().name(),
          region.rank(),
          region.row() - start - other.region.row() + other.start,
          Origin.GIVEN);
    }

    /// Returns the part of the region that has these positions.
    Region at(Slice rows) {
      return new Region(
          region.buffer(), region.rank(), region.row() + rows.start() - start, rows.length());
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
      case Goal.Solution(AttentionSpec spec, var _) -> expected.attention(spec, schedule);
      case Goal.Solution(AttentionGradientSpec spec, var _) ->
          expected.attentionGradient(spec.forward(), schedule);
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

  private void gemm(GemmSpec spec, Schedule schedule) {
    var shares = IntStream.range(0, ranks).mapToObj(rank -> Shares.of(spec, ranks, rank)).toList();
    var input = new ArrayList<PortRows>();
    var output = new ArrayList<PortRows>();
    var beside = new ArrayList<PortRows>();
    var besideOutput = new ArrayList<PortRows>();
    var gathered = new ArrayList<PortRows>();
    for (int rank = 0; rank < ranks; rank++) {
      var share = shares.get(rank);
      portRows(schedule, Part.INPUT, rank, share.input(), share.inner().length())
          .ifPresent(input::add);
      portRows(schedule, Part.OUTPUT, rank, share.output(), share.columns().length())
          .ifPresent(output::add);
      var all = new Slice(0, spec.besideElements());
      var part = all.part(ranks, rank);
      switch (spec.pattern()) {
        case GEMM_BESIDE_ALL_GATHER -> {
          portRows(schedule, Part.BESIDE_INPUT, rank, part, 1).ifPresent(beside::add);
          portRows(schedule, Part.BESIDE_OUTPUT, rank, all, 1).ifPresent(besideOutput::add);
        }
        case GEMM_BESIDE_REDUCE_SCATTER -> {
          portRows(schedule, Part.BESIDE_INPUT, rank, all, 1).ifPresent(beside::add);
          portRows(schedule, Part.BESIDE_OUTPUT, rank, part, 1).ifPresent(besideOutput::add);
        }
        case ALL_GATHER_GEMM, GEMM_REDUCE_SCATTER, GEMM_ALL_REDUCE -> {
          if (spec.has(Feature.GATHERED_INPUT)) {
            portRows(schedule, Part.GATHERED_INPUT, rank, new Slice(0, spec.m()), spec.k())
                .ifPresent(gathered::add);
          }
        }
      }
    }
    var weights = new ArrayList<List<Factor>>();
    for (int rank = 0; rank < ranks; rank++) {
      var share = shares.get(rank);
      portRows(schedule, Part.WEIGHT, rank, share.inner(), share.columns().length())
          .ifPresent(portRows -> weights.add(factors(portRows.region())));
      if (spec.has(Feature.BIAS)) {
        portRows(schedule, Part.BIAS, rank, new Slice(0, 1), share.columns().length());
      }
      if (spec.has(Feature.GELU)) {
        portRows(schedule, Part.PRE_ACTIVATION, rank, share.output(), share.columns().length());
      }
    }
    if (!findings.isEmpty()) {
      return;
    }
    for (var out : output) {
      int rank = out.region().rank();
      switch (spec.pattern()) {
        case ALL_GATHER_GEMM -> {
          for (var in : input) {
            finish(
                schedule, spec, out, in.rows(), product(spec, in.seenBy(out), weights.get(rank)));
          }
        }
        case GEMM_REDUCE_SCATTER, GEMM_ALL_REDUCE ->
            finish(
                schedule,
                spec,
                out,
                out.rows(),
                Value.sum(
                    input.stream()
                        .map(in -> product(spec, in.seenBy(out), weights.get(in.region().rank())))
                        .toList()));
        case GEMM_BESIDE_ALL_GATHER, GEMM_BESIDE_REDUCE_SCATTER ->
            finish(
                schedule,
                spec,
                out,
                out.rows(),
                product(spec, input.get(rank).seenBy(out), weights.get(rank)));
      }
    }
    gather(input, gathered);
    if (spec.pattern() == GemmSpec.Pattern.GEMM_BESIDE_ALL_GATHER) {
      gather(beside, besideOutput);
    } else {
      add(beside, besideOutput);
    }
  }

  private void attention(AttentionSpec spec, Schedule schedule) {
    long width = (long) spec.heads() * spec.headSize();
    var keys = new ArrayList<Block>();
    for (int rank = 0; rank < ranks; rank++) {
      var rows = tokens(schedule, List.of(Part.KEY, Part.VALUE), rank, spec);
      if (rows.size() == 2) {
        for (var run : Tokens.of(spec, ranks, rank).runs()) {
          keys.add(new Block(run.positions(), byPosition(rows, run)));
        }
      }
    }
    for (int rank = 0; rank < ranks; rank++) {
      var query = tokens(schedule, Part.QUERY, rank, spec, width);
      var output = tokens(schedule, Part.OUTPUT, rank, spec, width);
      var lse = tokens(schedule, Part.LSE, rank, spec, spec.heads());
      if (query.isEmpty() || output.isEmpty() || lse.isEmpty()) {
        continue;
      }
      for (var run : Tokens.of(spec, ranks, rank).runs()) {
        for (var out : List.of(output.get(), lse.get())) {
          var attended =
              new Attended(
                  spec,
                  query.get().seenBy(out),
                  run.positions().start() - run.row() - out.region().row(),
                  0,
                  keys);
          outputs.add(
              new Output(
                  out.at(run.rows()),
                  out.equals(output.get()) ? attended : new Statistics(attended)));
        }
      }
    }
  }

  private void attentionGradient(AttentionSpec spec, Schedule schedule) {
    var queryRows = new ArrayList<List<PortRows>>();
    var keyRows = new ArrayList<List<PortRows>>();
    var queries = new ArrayList<Block>();
    var keys = new ArrayList<Block>();
    for (int rank = 0; rank < ranks; rank++) {
      queryRows.add(
          tokens(
              schedule,
              List.of(Part.QUERY, Part.OUTPUT, Part.LSE, Part.OUTPUT_GRADIENT),
              rank,
              spec));
      keyRows.add(tokens(schedule, List.of(Part.KEY, Part.VALUE), rank, spec));
      for (var run : Tokens.of(spec, ranks, rank).runs()) {
        queries.add(new Block(run.positions(), byPosition(queryRows.getLast(), run)));
        keys.add(new Block(run.positions(), byPosition(keyRows.getLast(), run)));
      }
    }
    for (int rank = 0; rank < ranks; rank++) {
      gradient(schedule, Part.QUERY, Part.QUERY_GRADIENT, rank, spec, queryRows.get(rank), keys);
      gradient(schedule, Part.KEY, Part.KEY_GRADIENT, rank, spec, keyRows.get(rank), queries);
      gradient(schedule, Part.VALUE, Part.VALUE_GRADIENT, rank, spec, keyRows.get(rank), queries);
    }
  }

  private void gradient(
      Schedule schedule,
      Part part,
      Part result,
      int rank,
      AttentionSpec spec,
      List<PortRows> rows,
      List<Block> others) {
    for (var out : tokens(schedule, List.of(result), rank, spec)) {
      var row = new Together(rows.stream().map(each -> each.seenBy(out)).toList());
      for (var run : Tokens.of(spec, ranks, rank).runs()) {
        outputs.add(
            new Output(
                out.at(run.rows()),
                new Gradient(
                    spec,
                    part,
                    row,
                    run.positions().start() - run.row() - out.region().row(),
                    0,
                    others)));
      }
    }
  }

  private List<PortRows> tokens(Schedule schedule, List<Part> parts, int rank, AttentionSpec spec) {
    var all = new ArrayList<PortRows>();
    for (var part : parts) {
      long columns = part.buffer(spec.backward(), ranks, false).columns(rank);
      tokens(schedule, part, rank, spec, columns).ifPresent(all::add);
    }
    return all;
  }

  private static Value byPosition(List<PortRows> tokens, Tokens.Run run) {
    return new Together(tokens.stream().map(each -> byPosition(each, run)).toList());
  }

  private Optional<PortRows> tokens(
      Schedule schedule, Part part, int rank, AttentionSpec spec, long columns) {
    return portRows(
        schedule, part, rank, new Slice(0, Tokens.of(spec, ranks, rank).rows()), columns);
  }

  /// Returns the rows of a run as a function of their positions in the sequence.
  private static Value byPosition(PortRows tokens, Tokens.Run run) {
    var region = tokens.region();
    return new Rows(
        region.buffer().name(),
        region.rank(),
        region.row() + run.row() - run.positions().start(),
        Origin.GIVEN);
  }

  private static Value product(GemmSpec spec, Value row, List<Factor> weight) {
    return new Product(row, weight, spec.isScaled() ? 1 : Product.UNSCALED);
  }

  private static List<Factor> factors(Region weight) {
    return List.of(
        new Factor(
            new Slice(0, weight.rows()),
            new Rows(weight.buffer().name(), weight.rank(), weight.row(), Origin.GIVEN)));
  }

  private void finish(Schedule schedule, GemmSpec spec, PortRows out, Slice rows, Value product) {
    int rank = out.region().rank();
    var terms = new ArrayList<Value>();
    terms.add(product);
    if (spec.has(Feature.ACCUMULATE)) {
      terms.add(new Rows(out.region().buffer().name(), rank, 0, Origin.BEFORE));
    }
    if (spec.has(Feature.BIAS)) {
      var bias = region(schedule, Part.BIAS, rank);
      terms.add(
          new Repeated(new Rows(bias.buffer().name(), bias.rank(), bias.row(), Origin.GIVEN)));
    }
    var value = Value.sum(terms);
    if (spec.has(Feature.GELU)) {
      var kept = new PortRows(region(schedule, Part.PRE_ACTIVATION, rank), out.start());
      outputs.add(new Output(kept.at(rows), value.moved(out.region().row() - kept.region().row())));
      value = new Gelu(value);
    }
    if (spec.outputDtype().isFp8()) {
      value = new Rescaled(value);
    }
    outputs.add(new Output(out.at(rows), value));
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
      if (covered("gathered", from.stream().mapToLong(in -> in.rows().length()).sum(), out)) {
        from.forEach(in -> outputs.add(new Output(out.at(in.rows()), in.seenBy(out))));
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

  private boolean covered(String verb, long rows, PortRows out) {
    if (rows != out.rows().length()) {
      findings.add(
          "%s has %d rows but %d are %s; give it %d rows"
              .formatted(out.region(), out.rows().length(), rows, verb, rows));
      return false;
    }
    return true;
  }

  private static Region region(Schedule schedule, Part part, int rank) {
    return schedule.port(part.port()).orElseThrow().on(rank);
  }

  private Optional<PortRows> portRows(
      Schedule schedule, Part part, int rank, Slice rows, long columns) {
    var port = schedule.port(part.port());
    if (port.isEmpty()) {
      if (rank == 0) {
        findings.add(
            "the goal, %s, needs a %s port `%s` but the schedule has none; add it to the builder"
                .formatted(schedule.goal(), part.given() ? "given" : "made", part.port()));
      }
      return Optional.empty();
    }
    var region = port.get().on(rank);
    if (region.rows() != rows.length() || region.columns() != columns) {
      findings.add(
          "port `%s` of rank %d must have %d x %d numbers but has %d x %d"
              .formatted(
                  part.port(), rank, rows.length(), columns, region.rows(), region.columns()));
      return Optional.empty();
    }
    return Optional.of(new PortRows(region, rows.start()));
  }
}
