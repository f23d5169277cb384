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
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SequencedSet;
import java.util.function.UnaryOperator;
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

  private boolean hasUnknown;

  /// Kinds of mistakes by array and by step.
  private final Map<Object, String> unwritten = new HashMap<>();

  private final Map<Object, String> wrong = new HashMap<>();
  private final SequencedSet<Finding> findings = new LinkedHashSet<>();

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
        run(order.number(event));
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
            contents.put(region, new Written(gap, named(region, origin), CALLER));
          }
        }
      }
    }
  }

  private Value named(Region region, Origin origin) {
    hasUnknown |= origin == Origin.UNKNOWN;
    return new Rows(region.buffer().name(), region.rank(), 0, origin);
  }

  /// Returns the values of a region, all of which must have been written or given.
  ///
  /// @param outputs true if outputs may be read as they were before the iteration
  private List<Written> read(int number, Region region, boolean outputs) {
    var parts = contents.strips(region);
    var first = readStrip(number, parts.getFirst(), outputs);
    for (var other : parts.subList(1, parts.size())) {
      var next = readStrip(number, other, outputs);
      boolean known =
          Stream.concat(first.stream(), next.stream()).allMatch(each -> each.value().isKnown());
      if (known && !Written.joined(next).equals(Written.joined(first))) {
        finding(
            number,
            " reads %s and %s, which are not columns of the same rows; copy both from one row",
            parts.getFirst(),
            other);
      }
    }
    return first;
  }

  private List<Written> readStrip(int number, Region region, boolean outputs) {
    var all = new ArrayList<Written>();
    long from = region.row();
    long unknown = 0;
    for (var piece : contents.known(region)) {
      unknown += addUnknown(region, from, piece.rows().start(), all);
      if (isBefore(piece) && !outputs) {
        unknown += addUnknown(region, piece.rows().start(), piece.rows().end(), all);
      } else {
        all.add(piece);
      }
      from = piece.rows().end();
    }
    unknown += addUnknown(region, from, region.slice().end(), all);
    if (unknown > 0 && !mayBeUncertain(number, region, unknown)) {
      report(
          unwritten,
          "unwritten",
          number,
          region,
          "%s reads %s, but %d of its rows were not written in this iteration; write them first"
              .formatted(wiring.name(number), region, unknown));
    }
    return all;
  }

  /// Returns whether the unknown rows of a region may be those of an uncertain step.
  private boolean mayBeUncertain(int number, Region region, long unknown) {
    return declared.isUncertain(region)
        || (unknown == region.rows()
            && (declared.isUncertainRank(region.rank())
                || declared.isUncertainRank(wiring.rank(number))));
  }

  /// Reports a mistake in rows of an array and one step. Mistakes of one array, or of one step, are
  /// of one kind.
  ///
  /// @param mistake a word for the mistake
  private void report(
      Map<Object, String> kinds, String mistake, int number, Region region, String text) {
    var array = mistake + " " + Finding.withoutNumbers(region.buffer().name());
    var kind = kinds.getOrDefault(number, kinds.getOrDefault(array, array));
    kinds.put(number, kind);
    kinds.putIfAbsent(array, kind);
    findings.add(new Finding(kind, region.rank(), text));
  }

  private long addUnknown(Region region, long from, long to, List<Written> into) {
    if (from < to) {
      into.add(new Written(new Slice(from, to - from), named(region, Origin.UNKNOWN), CALLER));
    }
    return to - from;
  }

  /// Writes values; `reads` is true if the step has read the values that it overwrites.
  private void write(int number, Region region, List<Written> values, boolean reads) {
    contents.strips(region).forEach(strip -> writeStrip(number, strip, values, reads));
  }

  private void writeStrip(int number, Region region, List<Written> values, boolean reads) {
    boolean mistaken = false;
    for (var old : contents.known(region)) {
      boolean caller = old.writer() == CALLER;
      if (caller && old.value() instanceof Rows rows && rows.origin() == Origin.GIVEN) {
        if (!isMade(region, old.rows())) {
          finding(
              number, " overwrites %s, which the caller gives; write to another buffer", region);
        }
      } else if (!caller && !reads && hasUnknown && !old.value().isKnown()) {
        // The step that begins the sum comes after this one.
        mistaken |= wiring.step(old.writer()).worksInPlace();
      } else if (!caller
          && !reads
          && !old.value().equals(Value.Sum.ZERO)
          && isMade(region, old.rows())) {
        mistaken = true;
        findings.add(
            new Finding(
                "overwritten by " + Finding.withoutNumbers(wiring.step(number).lane().name()),
                wiring.rank(number),
                "%s overwrites %s, which %s wrote; write each output row once, or %s"
                    .formatted(
                        wiring.name(number),
                        region,
                        wiring.name(old.writer()),
                        wiring.step(number) instanceof Attend ? "continue it" : "accumulate")));
      }
    }
    for (var piece : values) {
      var value = mistaken ? named(region, Origin.UNKNOWN) : piece.value();
      contents.put(region, new Written(piece.rows(), value, number));
    }
  }

  private boolean isMade(Region of, Slice rows) {
    return wiring.schedule().ports().stream()
        .filter(port -> !port.given())
        .map(port -> port.on(of.rank()))
        .anyMatch(
            region ->
                region.buffer().name().equals(of.buffer().name()) && region.slice().overlaps(rows));
  }

  /// Returns whether what a step computes is unknown.
  private boolean isUnknown(int number) {
    return declared.isUncertain(number) || races.isRacing(number) || order.isCyclic(number);
  }

  private void writeUnknown(int number) {
    var written =
        declared.isUncertain(number)
            ? declared.written(number)
            : wiring.step(number).accesses(wiring.rank(number)).stream()
                .filter(access -> access.use() != Access.Use.READ)
                .map(Access::region)
                .toList();
    for (var region : written) {
      if (!region.isEmpty()) {
        for (var strip : contents.strips(region)) {
          contents.put(strip, new Written(strip.slice(), named(strip, Origin.UNKNOWN), number));
        }
      }
    }
  }

  @SuppressWarnings("AnnotateFormatMethod") // All callers are here.
  private void finding(int number, String text, Object... values) {
    findings.add(new Finding(wiring.rank(number), wiring.name(number) + text.formatted(values)));
  }

  private void run(int number) {
    boolean meets = wiring.meetingOf(number) != Wiring.NONE;
    if (!meets && (isUnknown(number) || wiring.step(number) instanceof LibraryCall)) {
      writeUnknown(number);
      return;
    }
    switch (wiring.step(number)) {
      case Copy copy -> copy.moves().forEach(move -> copy(number, move));
      case Gemm gemm -> multiply(number, gemm);
      case Reduce reduce -> {
        var parts = new ArrayList<List<Written>>();
        for (var part : reduce.parts()) {
          parts.add(moved(read(number, part, false), part, reduce.output()));
        }
        boolean inPlace = reduce.parts().contains(reduce.output());
        finish(number, reduce.finish(), reduce.output(), Written.sum(parts, number), inPlace);
      }
      case Attend attend -> attend(number, attend);
      case AttendGradient gradient -> gradient(number, gradient);
      case Merge merge -> {
        var parts = new ArrayList<List<Written>>();
        for (var part : merge.parts()) {
          parts.add(attended(number, part, merge.result()));
        }
        write(number, merge.result(), merged(number, parts), merge.parts());
      }
      case Zero zero ->
          write(
              number,
              zero.target(),
              List.of(new Written(zero.target().slice(), Value.Sum.ZERO, number)),
              false);
      case Prepare prepare ->
          write(
              number,
              Prepare.operand(prepare.weight()),
              read(number, prepare.weight(), false),
              true);
      case LibraryCall _, Signal _, Wait _, Mark _, After _ -> {}
    }
  }

  /// Returns whether the result includes outputs as they were before the iteration.
  private boolean readsOutputs() {
    return wiring.schedule().goal() instanceof Goal.Solution(GemmSpec spec, var _)
        && spec.has(GemmSpec.Feature.ACCUMULATE);
  }

  private void copy(int number, Move move) {
    long distance = move.to().column() - move.from().column();
    for (var from : contents.strips(move.from())) {
      var to = move.to().columns(from.columnSlice().shifted(distance));
      write(number, to, moved(readStrip(number, from, readsOutputs()), from, to), false);
    }
  }

  /// Returns the values of rows after a copy to other rows and columns.
  private static List<Written> moved(List<Written> pieces, Region from, Region to) {
    return pieces.stream()
        .map(piece -> piece.shifted(to.row() - from.row()))
        .map(piece -> piece.shiftedColumns(to.column() - from.column()))
        .toList();
  }

  private void multiply(int number, Gemm gemm) {
    var factors = factors(number, gemm.weight());
    for (var tile : gemm.tiles()) {
      boolean scaled =
          tile.input().buffer().dtype().isFp8() || gemm.weight().buffer().dtype().isFp8();
      int scales = scaled ? 0 : Product.UNSCALED;
      var products = new ArrayList<Written>();
      for (var piece : moved(read(number, tile.input(), false), tile.input(), tile.output())) {
        products.add(
            new Written(piece.rows(), new Product(piece.value(), factors, scales), number));
      }
      finish(number, gemm.finish(), tile.output(), products, false);
    }
  }

  private void attend(int number, Attend attend) {
    var keys =
        blocks(number, new Side(List.of(attend.key(), attend.value()), attend.keyPosition()));
    var out = attend.result().output();
    var parts = new ArrayList<List<Written>>();
    parts.add(
        moved(read(number, attend.query(), false), attend.query(), out).stream()
            .map(
                row ->
                    new Written(
                        row.rows(),
                        new Attended(
                            attend.spec(),
                            row.value(),
                            attend.queryPosition() - out.row(),
                            0,
                            keys),
                        number))
            .toList());
    if (attend.continued()) {
      parts.add(attended(number, attend.result(), attend.result()));
    }
    write(
        number,
        attend.result(),
        merged(number, parts),
        attend.continued() ? List.of(attend.result()) : List.of());
  }

  /// Returns the rows of one side by position.
  private List<Block> blocks(int number, Side side) {
    return together(number, side, side.position()).stream()
        .map(piece -> new Block(piece.rows(), piece.value()))
        .toList();
  }

  private static List<Written> atPosition(List<Written> pieces, Region of, long position) {
    return pieces.stream().map(piece -> piece.shifted(position - of.row())).toList();
  }

  private void gradient(int number, AttendGradient gradient) {
    var block = gradient.block();
    var result = gradient.result();
    var queries =
        List.of(
            block.query(),
            block.result().output(),
            block.result().lse(),
            gradient.outputGradient());
    var keys = List.of(block.key(), block.value());
    var ofQuery = new Side(queries, block.queryPosition());
    var ofKeys = new Side(keys, block.keyPosition());
    boolean continuesKeys = gradient.continuesKeys();
    gradient(
        number,
        block.spec(),
        Part.QUERY,
        ofQuery,
        ofKeys,
        result.query(),
        gradient.continuesQuery());
    gradient(number, block.spec(), Part.KEY, ofKeys, ofQuery, result.key(), continuesKeys);
    gradient(number, block.spec(), Part.VALUE, ofKeys, ofQuery, result.value(), continuesKeys);
  }

  /// Rows of one side of an attention, and the position of the first.
  private record Side(List<Region> regions, long position) {}

  private void gradient(
      int number, AttentionSpec spec, Part part, Side of, Side by, Region out, boolean continued) {
    var others = blocks(number, by);
    var parts = new ArrayList<List<Written>>();
    if (continued) {
      parts.add(read(number, out, false));
    }
    parts.add(
        mapped(
            together(number, of, out.row()),
            row -> new Gradient(spec, part, row, of.position() - out.row(), 0, others)));
    write(number, out, Written.sum(parts, number), continued);
  }

  /// Returns the rows of one side from row `to` on.
  private List<Written> together(int number, Side side, long to) {
    var all = new ArrayList<List<Written>>();
    for (var region : side.regions()) {
      all.add(atPosition(read(number, region, false), region, to));
    }
    return Written.combined(all, number, Together::new);
  }

  /// Returns the attention in a partial result, in other rows.
  private List<Written> attended(int number, Partial partial, Partial to) {
    var outputs = moved(read(number, partial.output(), false), partial.output(), to.output());
    var statistics = moved(read(number, partial.lse(), false), partial.lse(), to.output());
    return Written.combined(
        List.of(outputs, statistics),
        number,
        both -> {
          if (both.getFirst() instanceof Attended attended
              && !both.getLast().equals(new Statistics(attended))) {
            finding(
                number,
                " uses %s and %s, which are not of one attention; use the lse that the output was written with",
                partial.output(),
                partial.lse());
          }
          return both.getFirst();
        });
  }

  private List<Written> merged(int number, List<List<Written>> parts) {
    return Written.combined(
        parts,
        number,
        values -> {
          @Nullable Attended all = null;
          for (var value : values) {
            if (!(value instanceof Attended next) || !(all == null || all.isOf(next))) {
              // An unwritten value was reported at its read.
              if (value.isKnown()) {
                finding(
                    number,
                    " merges what is not attention of the same rows; merge blocks of one query");
              }
              return value;
            }
            all = all == null ? next : all.with(next);
          }
          return Objects.requireNonNull(all);
        });
  }

  /// Writes attention and its statistics; `read` are the partial results that the step has read.
  private void write(int number, Partial result, List<Written> values, List<Partial> read) {
    write(
        number,
        result.output(),
        values,
        read.stream().anyMatch(part -> part.output().equals(result.output())));
    var statistics =
        mapped(values, value -> value instanceof Attended of ? new Statistics(of) : value);
    write(
        number,
        result.lse(),
        moved(statistics, result.output(), result.lse()),
        read.stream().anyMatch(part -> part.lse().equals(result.lse())));
  }

  /// Returns the prepared form of a weight; consecutive rows of one array become one factor.
  private List<Factor> factors(int number, Region weight) {
    var operand = Prepare.operand(weight);
    if (!contents.gaps(operand).isEmpty()) {
      if (!declared.isUncertainRank(wiring.rank(number))) {
        finding(
            number,
            " needs %s prepared, but no step prepared it in this iteration; prepare it first",
            weight);
      }
      return List.of(new Factor(weight.slice(), named(operand, Origin.UNKNOWN)));
    }
    var factors = new ArrayList<Factor>();
    for (var piece : contents.known(operand)) {
      var part = piece.shifted(-weight.row());
      long start = part.rows().start();
      if (!factors.isEmpty() && factors.getLast().value().equals(part.value())) {
        start = factors.removeLast().rows().start();
      }
      factors.add(new Factor(new Slice(start, part.rows().end() - start), part.value()));
    }
    return List.copyOf(factors);
  }

  private void finish(
      int number, Finish finish, Region out, List<Written> values, boolean inPlace) {
    var terms = new ArrayList<List<Written>>();
    terms.add(finish.scaled() ? mapped(values, Value::scaled) : values);
    if (finish.accumulate()) {
      terms.add(read(number, out, true));
    }
    finish
        .bias()
        .ifPresent(
            bias -> {
              var row = read(number, bias.on(out.rank()), false).getFirst().value();
              terms.add(List.of(new Written(out.slice(), new Repeated(row), number)));
            });
    var done = Written.sum(terms, number);
    if (finish.preActivation().isPresent()) {
      var kept = finish.preActivation().get().on(out.rank(), out.slice());
      write(number, kept, done, false);
      done = mapped(done, Gelu::new);
    }
    if (finish.rescaled()) {
      done = mapped(done, Rescaled::new);
    }
    write(number, out, done, inPlace || finish.accumulate());
    finish
        .amax()
        .ifPresent(
            amax -> {
              if (!contents.gaps(amax.on(out.rank())).isEmpty()
                  && !declared.isUncertainRank(out.rank())) {
                finding(
                    number,
                    " raises %s, but no step set it to zero in this iteration; clear it first",
                    amax.on(out.rank()));
              }
            });
  }

  private static List<Written> mapped(List<Written> pieces, UnaryOperator<Value> change) {
    return pieces.stream()
        .map(piece -> new Written(piece.rows(), change.apply(piece.value()), piece.writer()))
        .toList();
  }

  /// Runs a library call of all ranks: writes the result expected of a collective of their regions.
  private void call(int[] meeting) {
    if (Arrays.stream(meeting).anyMatch(this::isUnknown)) {
      Arrays.stream(meeting).forEach(this::writeUnknown);
      return;
    }
    var calls =
        Arrays.stream(meeting).mapToObj(number -> (LibraryCall) wiring.step(number)).toList();
    var expected =
        Expected.of(
            calls.getFirst().collective(),
            calls.getFirst().root(),
            calls.stream().map(LibraryCall::x).toList(),
            calls.stream().map(LibraryCall::y).toList());
    expected.findings().forEach(line -> finding(meeting[0], ": %s", line));
    var values = new ArrayList<List<Written>>();
    for (var output : expected.outputs()) {
      var out = output.rows();
      var terms = new ArrayList<List<Written>>();
      output
          .value()
          .terms()
          .forEach(
              (term, times) -> {
                var rows = (Rows) term;
                var x = calls.get(rows.rank()).x();
                var from = new Region(x.buffer(), x.rank(), out.row() + rows.shift(), out.rows());
                var pieces = moved(read(meeting[rows.rank()], from, false), from, out);
                terms.addAll(Collections.nCopies(times, pieces));
              });
      values.add(Written.sum(terms, meeting[out.rank()]));
    }
    for (int i = 0; i < values.size(); i++) {
      var out = expected.outputs().get(i).rows();
      write(meeting[out.rank()], out, values.get(i), true);
    }
  }

  private void complete(Region region) {
    var known = contents.known(region);
    boolean uncertain =
        declared.isUncertain(region)
            || (declared.isUncertainRank(region.rank()) && known.stream().allMatch(Flow::isBefore));
    var array = "unwritten " + Finding.withoutNumbers(region.buffer().name());
    for (var piece : known) {
      if (isBefore(piece) && !uncertain) {
        findings.add(
            new Finding(
                unwritten.getOrDefault(array, array),
                region.rank(),
                "%s is never written; let a step write it".formatted(at(region, piece))));
      }
    }
  }

  /// Returns whether a piece is an output that no step has written.
  private static boolean isBefore(Written piece) {
    return piece.writer() == CALLER
        && piece.value() instanceof Rows rows
        && rows.origin() == Origin.BEFORE;
  }

  private void compare(Region rows, Value expected) {
    for (var piece : contents.known(rows)) {
      var value = piece.value().at(piece.rows());
      var wanted = expected.at(piece.rows());
      if (!isBefore(piece)
          && value.isKnown()
          && !declared.isUncertain(rows)
          && !value.equals(wanted)) {
        var difference = value.difference(wanted, piece.rows());
        report(
            wrong,
            difference.substring(0, difference.indexOf(' ')),
            piece.writer(),
            rows,
            "%s, written by %s, %s"
                .formatted(
                    at(rows, piece),
                    piece.writer() == CALLER ? "the caller" : wiring.name(piece.writer()),
                    difference));
      }
    }
  }

  private static Region at(Region of, Written piece) {
    return of.rows(piece.rows());
  }
}
