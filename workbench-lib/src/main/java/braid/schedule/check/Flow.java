package braid.schedule.check;

import braid.model.GemmSpec;
import braid.schedule.Goal;
import braid.schedule.Region;
import braid.schedule.Slice;
import braid.schedule.Step.Access;
import braid.schedule.Step.Attend;
import braid.schedule.Step.LibraryCall;
import braid.schedule.check.Contents.Written;
import braid.schedule.check.Value.Origin;
import braid.schedule.check.Value.Rows;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.SequencedSet;
import java.util.stream.Stream;

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
            contents.put(region, new Piece(gap, named(region, origin)), CALLER);
          }
        }
      }
    }
  }

  private static Value named(Region region, Origin origin) {
    return new Rows(region.buffer().name(), region.rank(), 0, 0, origin);
  }

  Piece unknown(Region region, Slice rows) {
    hasUnknown = true;
    return new Piece(rows, named(region, Origin.UNKNOWN));
  }

  /// Reports a mistake of a step.
  void report(int number, String text) {
    findings.add(new Finding(wiring.rank(number), wiring.name(number) + text));
  }

  /// Reports rows that an earlier step of the rank should have written.
  ///
  /// @return whether there are any
  boolean lacks(int number, Region region, String text) {
    if (contents.gaps(region).isEmpty()) {
      return false;
    }
    if (!declared.isUncertainRank(region.rank())) {
      report(number, text);
    }
    return true;
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
  ///
  /// @param outputs true if outputs may be read as they were before the iteration
  List<Piece> read(int number, Region region, boolean outputs) {
    var strips = contents.strips(region);
    var first = readStrip(number, strips.getFirst(), outputs);
    for (var other : strips.subList(1, strips.size())) {
      var next = readStrip(number, other, outputs);
      boolean known =
          Stream.concat(first.stream(), next.stream()).allMatch(each -> each.value().isKnown());
      if (known && !Piece.joined(next).equals(Piece.joined(first))) {
        report(
            number,
            " reads %s and %s, which are not columns of the same rows; copy both from one row"
                .formatted(strips.getFirst(), other));
      }
    }
    return first;
  }

  private List<Piece> readStrip(int number, Region region, boolean outputs) {
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
    // An uncertain step may have to write all of them.
    boolean uncertain =
        declared.isUncertainRank(region.rank()) || declared.isUncertainRank(wiring.rank(number));
    if (!declared.isUncertain(region) && !(rows == region.rows() && uncertain)) {
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

  void write(int number, Region region, List<Piece> values) {
    for (var strip : contents.strips(region)) {
      boolean mistaken = false;
      for (var old : contents.known(strip)) {
        mistaken |= isWrong(number, region, strip, old);
      }
      for (var piece : values) {
        contents.put(strip, mistaken ? unknown(strip, piece.rows()) : piece, number);
      }
    }
  }

  /// Returns whether it is a mistake to write over earlier values of a strip of a region.
  private boolean isWrong(int number, Region region, Region strip, Written old) {
    var value = old.piece().value();
    if (old.writer() == CALLER) {
      if (value instanceof Rows rows
          && rows.origin() == Origin.GIVEN
          && !isMade(strip, old.piece().rows())) {
        report(
            number,
            " overwrites %s, which the caller gives; write to another buffer".formatted(strip));
      }
      return false;
    }
    if (hasUnknown && !value.isKnown()) {
      // The step that begins the sum comes after this one.
      return wiring.step(old.writer()).worksInPlace() && !reads(number, region);
    }
    if (value.equals(Value.Sum.ZERO)
        || !isMade(strip, old.piece().rows())
        || reads(number, region)) {
      return false;
    }
    findings.add(
        new Finding(
            "overwritten by " + Finding.withoutNumbers(wiring.step(number).lane().name()),
            wiring.rank(number),
            "%s overwrites %s, which %s wrote; write each output row once, or %s"
                .formatted(
                    wiring.name(number),
                    strip,
                    wiring.name(old.writer()),
                    wiring.step(number) instanceof Attend ? "continue it" : "accumulate")));
    return true;
  }

  /// Returns whether the step has read what it overwrites. A library reads it within its call.
  private boolean reads(int number, Region region) {
    var step = wiring.step(number);
    return step instanceof LibraryCall
        || step.accesses(wiring.rank(number)).stream()
            .anyMatch(
                access ->
                    access.use() == Access.Use.READ
                        && access.region().rank() == region.rank()
                        && access.region().buffer().equals(region.buffer())
                        && access.region().slice().containsAll(region.slice())
                        && access.region().columnSlice().containsAll(region.columnSlice()));
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
    for (var region : declared.written(step)) {
      for (var strip : contents.strips(region)) {
        contents.put(strip, unknown(strip, strip.slice()), step);
      }
    }
  }

  private void run(int number) {
    var step = wiring.step(number);
    if (wiring.meetingOf(number) != Wiring.NONE) {
      return;
    }
    if (isUnknown(number) || step instanceof LibraryCall) {
      writeUnknown(number);
    } else {
      new Evaluation(this, contents, number).run(step);
    }
  }

  /// Returns whether the result includes outputs as they were before the iteration.
  boolean readsOutputs() {
    return wiring.schedule().goal() instanceof Goal.Solution(GemmSpec spec, var _)
        && spec.has(GemmSpec.Feature.ACCUMULATE);
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
    expected.findings().forEach(line -> report(meeting[0], ": " + line));
    var results = new ArrayList<List<Piece>>();
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
                var values = read(meeting[rows.rank()], from, false);
                terms.addAll(Collections.nCopies(times, Piece.moved(values, from, out)));
              });
      results.add(Piece.sum(terms));
    }
    for (int i = 0; i < results.size(); i++) {
      var out = expected.outputs().get(i).rows();
      write(meeting[out.rank()], out, results.get(i));
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
