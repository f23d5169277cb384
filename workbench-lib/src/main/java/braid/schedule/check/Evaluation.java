package braid.schedule.check;

import braid.model.AttentionSpec;
import braid.model.Tokens;
import braid.schedule.Finish;
import braid.schedule.Part;
import braid.schedule.Region;
import braid.schedule.Slice;
import braid.schedule.Step;
import braid.schedule.Step.After;
import braid.schedule.Step.Attend;
import braid.schedule.Step.AttendGradient;
import braid.schedule.Step.Copy;
import braid.schedule.Step.Gemm;
import braid.schedule.Step.LibraryCall;
import braid.schedule.Step.Mark;
import braid.schedule.Step.Merge;
import braid.schedule.Step.Move;
import braid.schedule.Step.Partial;
import braid.schedule.Step.Prepare;
import braid.schedule.Step.Recode;
import braid.schedule.Step.Reduce;
import braid.schedule.Step.Signal;
import braid.schedule.Step.Wait;
import braid.schedule.Step.Zero;
import braid.schedule.check.Value.Applied;
import braid.schedule.check.Value.Attended;
import braid.schedule.check.Value.Product;
import braid.schedule.check.Value.Repeated;
import braid.schedule.check.Value.Rounded;
import braid.schedule.check.Value.Together;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// Computes the values that one step writes from those that it reads.
final class Evaluation {
  private final Flow flow;
  private final Contents contents;
  private final int number;

  /// Rows of one side of an attention that are used together, and their positions.
  private record Side(Tokens positions, List<Region> regions) {}

  Evaluation(Flow flow, Contents contents, int number) {
    this.flow = flow;
    this.contents = contents;
    this.number = number;
  }

  void run(Step step) {
    switch (step) {
      case Copy copy -> copy.moves().forEach(this::copy);
      case Recode recode -> recode.moves().forEach(move -> recode(move, recode));
      case Gemm gemm -> multiply(gemm);
      case Reduce reduce ->
          finish(
              reduce.finish(),
              reduce.output(),
              Piece.sum(
                  reduce.parts().stream()
                      .map(part -> Piece.moved(read(part), part, reduce.output()))
                      .toList()));
      case Attend attend -> attend(attend);
      case AttendGradient gradient -> differentiate(gradient);
      case Merge merge ->
          write(
              merge.result(),
              merge.parts().stream().map(part -> attended(part, merge.result())).toList());
      case Zero zero ->
          write(zero.target(), List.of(new Piece(zero.target().slice(), Value.Sum.ZERO)));
      case Prepare prepare -> write(Prepare.operand(prepare.weight()), read(prepare.weight()));
      case LibraryCall _, Signal _, Wait _, Mark _, After _ -> {}
    }
  }

  private List<Piece> read(Region region) {
    return flow.read(number, region, false);
  }

  private void write(Region region, List<Piece> values) {
    flow.write(number, region, values);
  }

  private void copy(Move move) {
    long distance = move.to().column() - move.from().column();
    for (var from : contents.strips(move.from())) {
      var to = move.to().columns(from.columnSlice().shifted(distance));
      write(to, Piece.moved(flow.read(number, from, flow.readsOutputs()), from, to));
    }
  }

  private void recode(Move move, Recode step) {
    var from = move.from();
    var to = move.to();
    var heads = Piece.moved(read(from), from, to.columns(new Slice(0, 0)));
    var recoded =
        Piece.mapped(
            heads,
            value -> {
              if (step.rounds()) {
                return new Rounded(value, step.headSize(), 0);
              }
              if (value instanceof Rounded rounded) {
                return rounded.restored();
              }
              if (value.isKnown()) {
                flow.report(
                    number,
                    " restores %s, which was not rounded; round it before it is sent"
                        .formatted(from));
              }
              return value;
            });
    write(to, recoded.stream().map(each -> each.moved(0, to.column())).toList());
  }

  private void multiply(Gemm gemm) {
    var factors = factors(gemm.weight());
    for (var tile : gemm.tiles()) {
      boolean scaled =
          tile.input().buffer().dtype().isFp8() || gemm.weight().buffer().dtype().isFp8();
      int scales = scaled ? 0 : Product.UNSCALED;
      var rows = Piece.moved(read(tile.input()), tile.input(), tile.output());
      var products = Piece.mapped(rows, row -> new Product(row, factors, scales));
      finish(gemm.finish(), tile.output(), products);
    }
  }

  /// Returns the prepared form of a weight.
  private List<Piece> factors(Region weight) {
    var operand = Prepare.operand(weight);
    if (flow.lacks(
        number,
        operand,
        " needs %s prepared, but no step prepared it in this iteration; prepare it first"
            .formatted(weight))) {
      return List.of(flow.unknown(operand, weight.slice()));
    }
    return Piece.joined(
        contents.pieces(operand).stream().map(each -> each.moved(-weight.row(), 0)).toList());
  }

  private void finish(Finish finish, Region out, List<Piece> values) {
    var terms = new ArrayList<List<Piece>>();
    terms.add(finish.scaled() ? Piece.mapped(values, Value::scaled) : values);
    if (finish.accumulate()) {
      terms.add(flow.read(number, out, true));
    }
    finish
        .bias()
        .ifPresent(
            bias -> {
              var row = read(bias.on(out.rank())).getFirst().value();
              terms.add(List.of(new Piece(out.slice(), new Repeated(row))));
            });
    var done = Piece.sum(terms);
    if (finish.preActivation().isPresent()) {
      write(finish.preActivation().get().on(out.rank(), out.slice()), done);
      done = Piece.mapped(done, value -> new Applied(Value.Function.GELU, value));
    }
    if (finish.rescaled()) {
      done = Piece.mapped(done, value -> new Applied(Value.Function.RESCALED, value));
    }
    write(out, done);
    if (finish.amax().isPresent()) {
      var amax = finish.amax().get().on(out.rank());
      flow.lacks(
          number,
          amax,
          " raises %s, but no step set it to zero in this iteration; clear it first"
              .formatted(amax));
    }
  }

  private void attend(Attend attend) {
    var result = attend.result();
    var written = attend.written();
    var queries = new Side(attend.queries(), List.of(attend.query()));
    var keys = new Side(attend.keys(), List.of(attend.key(), attend.value()));
    for (var run : attend.queries().consecutive()) {
      var rows = new Partial(written.output().tokens(run), written.lse().tokens(run));
      var parts = new ArrayList<List<Piece>>();
      parts.add(attended(attend.spec(), Part.OUTPUT, queries, run, keys, rows.output()));
      if (attend.continued()) {
        var before = new Partial(result.output().tokens(run), result.lse().tokens(run));
        parts.add(attended(before, rows));
      }
      write(rows, parts);
    }
  }

  private void differentiate(AttendGradient gradient) {
    var block = gradient.block();
    var queries =
        new Side(
            block.queries(),
            List.of(
                block.query(),
                block.result().output(),
                block.result().lse(),
                gradient.outputGradient()));
    var keys = new Side(block.keys(), List.of(block.key(), block.value()));
    var result = gradient.result();
    boolean continued = gradient.continuesKeys();
    addGradient(Part.QUERY, block.spec(), queries, keys, result.query(), gradient.continuesQuery());
    addGradient(Part.KEY, block.spec(), keys, queries, result.key(), continued);
    addGradient(Part.VALUE, block.spec(), keys, queries, result.value(), continued);
  }

  private void addGradient(
      Part part, AttentionSpec spec, Side own, Side others, Region out, boolean continued) {
    for (var run : own.positions().consecutive()) {
      var rows = out.tokens(run);
      var terms = new ArrayList<List<Piece>>();
      terms.add(attended(spec, part, own, run, others, rows));
      if (continued) {
        terms.add(read(rows));
      }
      write(rows, Piece.sum(terms));
    }
  }

  /// Returns the result of attention of one run in the rows of `out`, by those of the other side.
  private List<Piece> attended(
      AttentionSpec spec, Part part, Side own, Tokens.Run run, Side others, Region out) {
    var seen =
        others.positions().consecutive().stream()
            .flatMap(each -> together(others, each, each.first()).stream())
            .toList();
    return Piece.mapped(
        together(own, run, out.row()),
        row ->
            new Attended(spec, part, row, run.first() - out.row(), 0, seen)
                .moved(0, -out.column()));
  }

  /// Returns the rows of a run of one side in rows from `first` on.
  private List<Piece> together(Side side, Tokens.Run run, long first) {
    var all = new ArrayList<List<Piece>>();
    for (var region : side.regions()) {
      var rows = region.tokens(run);
      all.add(
          read(rows).stream().map(each -> each.moved(first - rows.row(), -rows.column())).toList());
    }
    return Piece.combined(all, Together::new);
  }

  /// Returns the attention in a partial result, in other rows.
  private List<Piece> attended(Partial partial, Partial to) {
    var output = Piece.moved(read(partial.output()), partial.output(), to.output());
    var lse = Piece.moved(read(partial.lse()), partial.lse(), to.output());
    return Piece.combined(
        List.of(output, lse),
        both -> {
          if (both.getFirst() instanceof Attended attended
              && attended.isAttention()
              && !both.getLast().equals(attended.lse())) {
            flow.report(
                number,
                " uses %s and %s, which are not of one attention; use the lse that the output was written with"
                    .formatted(partial.output(), partial.lse()));
          }
          return both.getFirst();
        });
  }

  private Value merged(List<Value> parts) {
    @Nullable Attended all = null;
    for (var part : parts) {
      if (!(part instanceof Attended next)
          || !next.isAttention()
          || !(all == null || all.isOf(next))) {
        // An unwritten value was reported at its read.
        if (part.isKnown()) {
          flow.report(
              number, " merges what is not attention of the same rows; merge blocks of one query");
        }
        return part;
      }
      all = all == null ? next : all.with(next, 1);
    }
    return Objects.requireNonNull(all);
  }

  /// Writes attention merged from parts, and its log-sum-exp.
  private void write(Partial result, List<List<Piece>> parts) {
    var merged = Piece.combined(parts, this::merged);
    write(result.output(), merged);
    var lse =
        Piece.mapped(
            merged,
            value -> value instanceof Attended all && all.isAttention() ? all.lse() : value);
    write(result.lse(), Piece.moved(lse, result.output(), result.lse()));
  }
}
