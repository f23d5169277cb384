package braid.schedule.check;

import braid.model.AttentionSpec;
import braid.model.GemmSpec;
import braid.schedule.Finish;
import braid.schedule.Goal;
import braid.schedule.Part;
import braid.schedule.Region;
import braid.schedule.Slice;
import braid.schedule.Step.Access;
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
import braid.schedule.Step.Reduce;
import braid.schedule.Step.Signal;
import braid.schedule.Step.Wait;
import braid.schedule.Step.Zero;
import braid.schedule.check.Contents.Written;
import braid.schedule.check.Value.Applied;
import braid.schedule.check.Value.Attended;
import braid.schedule.check.Value.Origin;
import braid.schedule.check.Value.Product;
import braid.schedule.check.Value.Repeated;
import braid.schedule.check.Value.Rows;
import braid.schedule.check.Value.Together;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SequencedSet;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Runs an iteration with expressions instead of numbers, and compares the outputs with the values
/// that the goal requires. Without races the result does not depend on the order of unordered
/// steps. Steps with another mistake, such as a race, write unknown values, and nothing is said
/// about what depends on them.
final class Flow {
  private static final int CALLER = -1;

  private final Wiring wiring;
  private final Declarations declared;
  private final Order order;
  private final Races races;
  private final Contents contents = new Contents();

  /// The step that is run.
  private int number = CALLER;

  private boolean hasUnknown;

  /// Kinds of mistakes by array and by step.
  private final Map<Object, String> unwritten = new HashMap<>();

  private final Map<Object, String> wrong = new HashMap<>();
  private final SequencedSet<Finding> findings = new LinkedHashSet<>();

  /// Rows of one side of an attention that are used together, and the position of the first.
  private record Side(long position, Region... regions) {}

  Flow(Wiring wiring, Declarations declared, Order order, Races races) {
    this.wiring = wiring;
    this.declared = declared;
    this.order = order;
    this.races = races;
  }

  List<Finding> findings() {
    var expected = Expected.of(wiring.schedule());
    expected.findings().forEach(line -> findings.add(new Finding(0, line)));
    fill(true, Origin.GIVEN);
    fill(false, Origin.BEFORE);
    for (int event : order.sorted()) {
      if (order.isStep(event) && order.iteration(event) == 0) {
        number = order.number(event);
        run();
      } else if (order.meetingAt(event) >= 0) {
        call(wiring.meetings().get(order.meetingAt(event)));
      }
    }
    for (var port : wiring.schedule().ports()) {
      if (!port.given()) {
        port.regions().forEach(region -> contents.strips(region).forEach(this::complete));
      }
    }
    for (var output : expected.outputs()) {
      contents.strips(output.rows()).forEach(strip -> compare(strip, output.value()));
    }
    return List.copyOf(findings);
  }

  /// Fills ports with their values before the iteration. Rows that are both given and made count as
  /// given.
  private void fill(boolean given, Origin origin) {
    for (var port : wiring.schedule().ports()) {
      if (port.given() == given) {
        for (var region : port.regions()) {
          for (var gap : contents.gaps(region)) {
            contents.put(region, new Piece(gap, named(region, origin)), CALLER);
          }
        }
      }
    }
  }

  private static Value named(Region region, Origin origin) {
    return new Rows(region.buffer().name(), region.rank(), 0, origin);
  }

  private Piece unknown(Region region, Slice rows) {
    hasUnknown = true;
    return new Piece(rows, named(region, Origin.UNKNOWN));
  }

  @SuppressWarnings("AnnotateFormatMethod") // All callers are here.
  private void finding(String text, Object... values) {
    findings.add(new Finding(wiring.rank(number), wiring.name(number) + text.formatted(values)));
  }

  /// Reports a mistake in rows of an array and one step. Mistakes of one array, or of one step, are
  /// of one kind.
  ///
  /// @param mistake a word for the mistake
  private void report(
      Map<Object, String> kinds, String mistake, int step, Region region, String text) {
    var array = mistake + " " + Finding.withoutNumbers(region.buffer().name());
    var kind = kinds.getOrDefault(step, kinds.getOrDefault(array, array));
    kinds.put(step, kind);
    kinds.putIfAbsent(array, kind);
    findings.add(new Finding(kind, region.rank(), text));
  }

  /// Returns the values of a region, all of which must have been written or given.
  private List<Piece> read(Region region) {
    return read(region, false);
  }

  /// @param outputs true if outputs may be read as they were before the iteration
  private List<Piece> read(Region region, boolean outputs) {
    var strips = contents.strips(region);
    var first = readStrip(strips.getFirst(), outputs);
    for (var other : strips.subList(1, strips.size())) {
      var next = readStrip(other, outputs);
      boolean known =
          Stream.concat(first.stream(), next.stream()).allMatch(each -> each.value().isKnown());
      if (known && !Piece.joined(next).equals(Piece.joined(first))) {
        finding(
            " reads %s and %s, which are not columns of the same rows; copy both from one row",
            strips.getFirst(), other);
      }
    }
    return first;
  }

  private List<Piece> readStrip(Region region, boolean outputs) {
    var pieces = new ArrayList<Piece>();
    for (var written : contents.known(region)) {
      if (outputs || !isBefore(written)) {
        pieces.add(written.piece());
      }
    }
    var gaps = Piece.gaps(region.slice(), pieces);
    if (gaps.isEmpty()) {
      return pieces;
    }
    long rows = gaps.stream().mapToLong(Slice::length).sum();
    if (!mayBeUncertain(region, rows)) {
      report(
          unwritten,
          "unwritten",
          number,
          region,
          "%s reads %s, but %d of its rows were not written in this iteration; write them first"
              .formatted(wiring.name(number), region, rows));
    }
    gaps.forEach(gap -> pieces.add(unknown(region, gap)));
    pieces.sort(Comparator.comparingLong(piece -> piece.rows().start()));
    return pieces;
  }

  /// Returns whether the unknown rows of a region may be those of an uncertain step.
  private boolean mayBeUncertain(Region region, long unknown) {
    return declared.isUncertain(region)
        || (unknown == region.rows()
            && (declared.isUncertainRank(region.rank())
                || declared.isUncertainRank(wiring.rank(number))));
  }

  private void write(Region region, List<Piece> values) {
    for (var strip : contents.strips(region)) {
      boolean mistaken = false;
      for (var old : contents.known(strip)) {
        mistaken |= isWrong(region, strip, old);
      }
      for (var piece : values) {
        contents.put(strip, mistaken ? unknown(strip, piece.rows()) : piece, number);
      }
    }
  }

  /// Returns whether it is a mistake to write over earlier values of a strip of a region.
  private boolean isWrong(Region region, Region strip, Written old) {
    var value = old.piece().value();
    if (old.writer() == CALLER) {
      if (value instanceof Rows rows
          && rows.origin() == Origin.GIVEN
          && !isMade(strip, old.piece().rows())) {
        finding(" overwrites %s, which the caller gives; write to another buffer", strip);
      }
      return false;
    }
    if (hasUnknown && !value.isKnown()) {
      // The step that begins the sum comes after this one.
      return wiring.step(old.writer()).worksInPlace() && !reads(region);
    }
    if (value.equals(Value.Sum.ZERO) || !isMade(strip, old.piece().rows()) || reads(region)) {
      return false;
    }
    findings.add(
        new Finding(
            "overwritten by " + Finding.withoutNumbers(wiring.step(number).lane().name()),
            wiring.rank(number),
            "%s overwrites %s, which %s wrote; write each output row once, or accumulate"
                .formatted(wiring.name(number), strip, wiring.name(old.writer()))));
    return true;
  }

  /// Returns whether the step has read what it overwrites. A library reads it within its call.
  private boolean reads(Region region) {
    var step = wiring.step(number);
    return step instanceof LibraryCall
        || step.accesses(wiring.rank(number)).contains(Access.read(region));
  }

  private boolean isMade(Region region, Slice rows) {
    return wiring.schedule().ports().stream()
        .filter(port -> !port.given())
        .map(port -> port.on(region.rank()))
        .anyMatch(
            made ->
                made.buffer().name().equals(region.buffer().name()) && made.slice().overlaps(rows));
  }

  /// Returns whether what a step computes is unknown.
  private boolean isUnknown(int step) {
    return declared.isUncertain(step) || races.isRacing(step) || order.isCyclic(step);
  }

  private void writeUnknown(int step) {
    var written =
        declared.isUncertain(step)
            ? declared.written(step)
            : wiring.step(step).accesses(wiring.rank(step)).stream()
                .filter(access -> access.use() != Access.Use.READ)
                .map(Access::region)
                .toList();
    for (var region : written) {
      if (!region.isEmpty()) {
        for (var strip : contents.strips(region)) {
          contents.put(strip, unknown(strip, strip.slice()), step);
        }
      }
    }
  }

  private void run() {
    var step = wiring.step(number);
    boolean meets = wiring.meetingOf(number) != Wiring.NONE;
    if (!meets && (isUnknown(number) || step instanceof LibraryCall)) {
      writeUnknown(number);
      return;
    }
    switch (step) {
      case Copy copy -> copy.moves().forEach(this::copy);
      case Gemm gemm -> multiply(gemm);
      case Reduce reduce ->
          finish(
              reduce.finish(),
              reduce.output(),
              sum(
                  reduce.parts().stream()
                      .map(part -> moved(read(part), part, reduce.output()))
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

  /// Returns whether the result includes outputs as they were before the iteration.
  private boolean readsOutputs() {
    return wiring.schedule().goal() instanceof Goal.Solution(GemmSpec spec, var _)
        && spec.has(GemmSpec.Feature.ACCUMULATE);
  }

  private void copy(Move move) {
    long distance = move.to().column() - move.from().column();
    for (var from : contents.strips(move.from())) {
      var to = move.to().columns(from.columnSlice().shifted(distance));
      write(to, moved(readStrip(from, readsOutputs()), from, to));
    }
  }

  /// Returns the values of rows after a copy to other rows and columns.
  private static List<Piece> moved(List<Piece> pieces, Region from, Region to) {
    long columns = to.column() - from.column();
    return pieces.stream().map(each -> each.moved(to.row() - from.row(), columns)).toList();
  }

  private static List<Piece> sum(List<List<Piece>> terms) {
    return Piece.combined(terms, Value::sum);
  }

  private void multiply(Gemm gemm) {
    var factors = factors(gemm.weight());
    for (var tile : gemm.tiles()) {
      boolean scaled =
          tile.input().buffer().dtype().isFp8() || gemm.weight().buffer().dtype().isFp8();
      int scales = scaled ? 0 : Product.UNSCALED;
      var rows = moved(read(tile.input()), tile.input(), tile.output());
      var products = Piece.mapped(rows, row -> new Product(row, factors, scales));
      finish(gemm.finish(), tile.output(), products);
    }
  }

  /// Returns the prepared form of a weight.
  private List<Piece> factors(Region weight) {
    var operand = Prepare.operand(weight);
    if (contents.gaps(operand).isEmpty()) {
      return Piece.joined(
          contents.pieces(operand).stream().map(each -> each.moved(-weight.row(), 0)).toList());
    }
    if (!declared.isUncertainRank(wiring.rank(number))) {
      finding(
          " needs %s prepared, but no step prepared it in this iteration; prepare it first",
          weight);
    }
    return List.of(unknown(operand, weight.slice()));
  }

  private void finish(Finish finish, Region out, List<Piece> values) {
    var terms = new ArrayList<List<Piece>>();
    terms.add(finish.scaled() ? Piece.mapped(values, Value::scaled) : values);
    if (finish.accumulate()) {
      terms.add(read(out, true));
    }
    finish
        .bias()
        .ifPresent(
            bias -> {
              var row = read(bias.on(out.rank())).getFirst().value();
              terms.add(List.of(new Piece(out.slice(), new Repeated(row))));
            });
    var done = sum(terms);
    if (finish.preActivation().isPresent()) {
      write(finish.preActivation().get().on(out.rank(), out.slice()), done);
      done = Piece.mapped(done, value -> new Applied(Value.Function.GELU, value));
    }
    if (finish.rescaled()) {
      done = Piece.mapped(done, value -> new Applied(Value.Function.RESCALED, value));
    }
    write(out, done);
    finish
        .amax()
        .map(amax -> amax.on(out.rank()))
        .filter(amax -> !contents.gaps(amax).isEmpty() && !declared.isUncertainRank(out.rank()))
        .ifPresent(
            amax ->
                finding(
                    " raises %s, but no step set it to zero in this iteration; clear it first",
                    amax));
  }

  private void attend(Attend attend) {
    var result = attend.result();
    var queries = new Side(attend.queryPosition(), attend.query());
    var keys = new Side(attend.keyPosition(), attend.key(), attend.value());
    var parts = new ArrayList<List<Piece>>();
    parts.add(attended(attend.spec(), Part.OUTPUT, queries, keys, result.output()));
    if (attend.continued()) {
      parts.add(attended(result, result));
    }
    write(result, parts);
  }

  private void differentiate(AttendGradient gradient) {
    var block = gradient.block();
    var queries =
        new Side(
            block.queryPosition(),
            block.query(),
            block.result().output(),
            block.result().lse(),
            gradient.outputGradient());
    var keys = new Side(block.keyPosition(), block.key(), block.value());
    var result = gradient.result();
    boolean continued = gradient.continuesKeys();
    addGradient(Part.QUERY, block.spec(), queries, keys, result.query(), gradient.continuesQuery());
    addGradient(Part.KEY, block.spec(), keys, queries, result.key(), continued);
    addGradient(Part.VALUE, block.spec(), keys, queries, result.value(), continued);
  }

  private void addGradient(
      Part part, AttentionSpec spec, Side own, Side others, Region out, boolean continued) {
    var terms = new ArrayList<List<Piece>>();
    terms.add(attended(spec, part, own, others, out));
    if (continued) {
      terms.add(read(out));
    }
    write(out, sum(terms));
  }

  /// Returns the result of attention in the rows of `out`, by those of the other side.
  private List<Piece> attended(AttentionSpec spec, Part part, Side own, Side others, Region out) {
    var seen = together(others, others.position());
    return Piece.mapped(
        together(own, out.row()),
        row -> new Attended(spec, part, row, own.position() - out.row(), 0, seen));
  }

  /// Returns the rows of one side in rows from `first` on.
  private List<Piece> together(Side side, long first) {
    var all = new ArrayList<List<Piece>>();
    for (var region : side.regions()) {
      all.add(read(region).stream().map(each -> each.moved(first - region.row(), 0)).toList());
    }
    return Piece.combined(all, Together::new);
  }

  /// Returns the attention in a partial result, in other rows.
  private List<Piece> attended(Partial partial, Partial to) {
    var output = moved(read(partial.output()), partial.output(), to.output());
    var lse = moved(read(partial.lse()), partial.lse(), to.output());
    return Piece.combined(
        List.of(output, lse),
        both -> {
          if (both.getFirst() instanceof Attended attended
              && attended.isAttention()
              && !both.getLast().equals(attended.lse())) {
            finding(
                " uses %s and %s, which are not of one attention; use the lse that the output was written with",
                partial.output(), partial.lse());
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
          finding(" merges what is not attention of the same rows; merge blocks of one query");
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
    write(result.lse(), moved(lse, result.output(), result.lse()));
  }

  /// Runs a library call of all ranks: writes the result expected of a collective of their regions.
  private void call(int[] meeting) {
    if (Arrays.stream(meeting).anyMatch(this::isUnknown)) {
      Arrays.stream(meeting).forEach(this::writeUnknown);
      return;
    }
    var calls = Arrays.stream(meeting).mapToObj(step -> (LibraryCall) wiring.step(step)).toList();
    var expected =
        Expected.of(
            calls.getFirst().collective(),
            calls.getFirst().root(),
            calls.stream().map(LibraryCall::x).toList(),
            calls.stream().map(LibraryCall::y).toList());
    number = meeting[0];
    expected.findings().forEach(line -> finding(": %s", line));
    var values = new ArrayList<List<Piece>>();
    for (var output : expected.outputs()) {
      var out = output.rows();
      var terms = new ArrayList<List<Piece>>();
      output
          .value()
          .terms()
          .forEach(
              (term, times) -> {
                var rows = (Rows) term;
                var x = calls.get(rows.rank()).x();
                var from = new Region(x.buffer(), x.rank(), out.row() + rows.shift(), out.rows());
                number = meeting[rows.rank()];
                terms.addAll(Collections.nCopies(times, moved(read(from), from, out)));
              });
      values.add(sum(terms));
    }
    for (int i = 0; i < values.size(); i++) {
      var out = expected.outputs().get(i).rows();
      number = meeting[out.rank()];
      write(out, values.get(i));
    }
  }

  private void complete(Region region) {
    var known = contents.known(region);
    boolean uncertain =
        declared.isUncertain(region)
            || (declared.isUncertainRank(region.rank()) && known.stream().allMatch(Flow::isBefore));
    var array = "unwritten " + Finding.withoutNumbers(region.buffer().name());
    for (var written : known) {
      if (isBefore(written) && !uncertain) {
        findings.add(
            new Finding(
                unwritten.getOrDefault(array, array),
                region.rank(),
                "%s is never written; let a step write it"
                    .formatted(region.rows(written.piece().rows()))));
      }
    }
  }

  /// Returns whether rows are an output that no step has written.
  private static boolean isBefore(Written written) {
    return written.writer() == CALLER
        && written.piece().value() instanceof Rows rows
        && rows.origin() == Origin.BEFORE;
  }

  private void compare(Region region, Value expected) {
    for (var written : contents.known(region)) {
      var rows = written.piece().rows();
      var value = written.piece().value().at(rows);
      var wanted = expected.at(rows);
      if (!isBefore(written)
          && value.isKnown()
          && !declared.isUncertain(region)
          && !value.equals(wanted)) {
        var difference = value.difference(wanted, rows);
        report(
            wrong,
            difference.substring(0, difference.indexOf(' ')),
            written.writer(),
            region,
            "%s, written by %s, %s"
                .formatted(
                    region.rows(rows),
                    written.writer() == CALLER ? "the caller" : wiring.name(written.writer()),
                    difference));
      }
    }
  }
}
