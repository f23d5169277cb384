package braid.schedule;

import braid.model.GemmSpec;
import braid.schedule.Step.After;
import braid.schedule.Step.Copy;
import braid.schedule.Step.Gemm;
import braid.schedule.Step.LibraryCall;
import braid.schedule.Step.Mark;
import braid.schedule.Step.Prepare;
import braid.schedule.Step.Reduce;
import braid.schedule.Step.Signal;
import braid.schedule.Step.Wait;
import braid.schedule.Step.Zero;
import braid.schedule.Value.Factor;
import braid.schedule.Value.Gelu;
import braid.schedule.Value.Origin;
import braid.schedule.Value.Piece;
import braid.schedule.Value.Product;
import braid.schedule.Value.Repeated;
import braid.schedule.Value.Rescaled;
import braid.schedule.Value.Rows;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.SequencedSet;
import java.util.TreeMap;
import java.util.function.UnaryOperator;

/// Runs an iteration with expressions instead of numbers, and compares the outputs with what the
/// goal asks for. The order of steps that have none does not matter once there are no races.
final class Flow {
  private static final int CALLER = -1;

  private final Wiring wiring;
  private final Order order;
  private final Map<Array, NavigableMap<Long, Piece>> memory = new HashMap<>();
  private final SequencedSet<String> findings = new LinkedHashSet<>();

  /// One rank's array.
  private record Array(String buffer, int rank) {
    static Array of(Region region) {
      return new Array(region.buffer().name(), region.rank());
    }
  }

  Flow(Wiring wiring, Order order) {
    this.wiring = wiring;
    this.order = order;
  }

  List<String> findings() {
    var expected = Expected.of(wiring.schedule());
    findings.addAll(expected.findings());
    begin(true, Origin.GIVEN);
    begin(false, Origin.BEFORE);
    for (int event : order.sorted()) {
      if (order.isStep(event) && order.iteration(event) == 0) {
        run(order.number(event));
      } else if (order.meetingAt(event) >= 0) {
        call(wiring.meetings().get(order.meetingAt(event)));
      }
    }
    for (var port : wiring.schedule().ports()) {
      if (!port.given()) {
        port.regions().forEach(this::complete);
      }
    }
    expected.outputs().forEach(output -> compare(output.rows(), output.value()));
    return List.copyOf(findings);
  }

  /// Fills ports with their values before the iteration. What is given and made in one place is
  /// given.
  private void begin(boolean given, Origin origin) {
    for (var port : wiring.schedule().ports()) {
      if (port.given() == given) {
        for (var region : port.regions()) {
          for (var gap : gaps(region)) {
            put(region, new Piece(gap, named(region, origin), CALLER));
          }
        }
      }
    }
  }

  private static Value named(Region region, Origin origin) {
    return new Rows(region.buffer().name(), region.rank(), 0, origin);
  }

  private NavigableMap<Long, Piece> pieces(Region region) {
    return memory.computeIfAbsent(Array.of(region), _ -> new TreeMap<>());
  }

  /// Pieces of those rows that have a value.
  private List<Piece> known(Region region) {
    var pieces = pieces(region);
    var rows = region.slice();
    var first = pieces.floorKey(rows.start());
    return pieces.subMap(first == null ? rows.start() : first, rows.end()).values().stream()
        .filter(piece -> piece.rows().overlaps(rows))
        .map(piece -> piece.within(rows))
        .toList();
  }

  private List<Slice> gaps(Region region) {
    var gaps = new ArrayList<Slice>();
    long from = region.row();
    for (var piece : known(region)) {
      if (piece.rows().start() > from) {
        gaps.add(new Slice(from, piece.rows().start() - from));
      }
      from = piece.rows().end();
    }
    if (from < region.slice().end()) {
      gaps.add(new Slice(from, region.slice().end() - from));
    }
    return gaps;
  }

  private void put(Region region, Piece piece) {
    var pieces = pieces(region);
    var rows = piece.rows();
    cut(pieces, rows.start());
    cut(pieces, rows.end());
    pieces.subMap(rows.start(), rows.end()).clear();
    pieces.put(rows.start(), piece);
  }

  private static void cut(NavigableMap<Long, Piece> pieces, long at) {
    var found = pieces.floorEntry(at);
    if (found != null) {
      var piece = found.getValue();
      var rows = piece.rows();
      if (rows.start() < at && at < rows.end()) {
        pieces.put(rows.start(), piece.within(new Slice(rows.start(), at - rows.start())));
        pieces.put(at, piece.within(new Slice(at, rows.end() - at)));
      }
    }
  }

  /// Values of rows, all of which must have been written or given.
  ///
  /// @param outputs whether outputs may be read as they were before the iteration
  private List<Piece> read(int number, Region region, boolean outputs) {
    var all = new ArrayList<Piece>();
    long from = region.row();
    long unknown = 0;
    for (var piece : known(region)) {
      unknown += addUnknown(region, from, piece.rows().start(), all);
      if (isBefore(piece) && !outputs) {
        unknown += addUnknown(region, piece.rows().start(), piece.rows().end(), all);
      } else {
        all.add(piece);
      }
      from = piece.rows().end();
    }
    unknown += addUnknown(region, from, region.slice().end(), all);
    if (unknown > 0) {
      findings.add(
          "%s reads %s, of which nothing wrote %d rows in this iteration; write them before"
              .formatted(wiring.name(number), region, unknown));
    }
    return all;
  }

  private static long addUnknown(Region region, long from, long to, List<Piece> into) {
    if (from < to) {
      into.add(new Piece(new Slice(from, to - from), named(region, Origin.UNKNOWN), CALLER));
    }
    return to - from;
  }

  /// Writes values; `reads` says that the step has read what it writes over.
  private void write(int number, Region region, List<Piece> values, boolean reads) {
    for (var old : known(region)) {
      boolean caller = old.writer() == CALLER;
      if (caller && old.value() instanceof Rows rows && rows.origin() == Origin.GIVEN) {
        if (!isMade(region, old.rows())) {
          findings.add(
              "%s writes over %s, which the caller gives; write it to a buffer of its own"
                  .formatted(wiring.name(number), region));
        }
      } else if (!caller
          && !reads
          && !old.value().equals(Value.Sum.ZERO)
          && isMade(region, old.rows())) {
        findings.add(
            "%s writes over %s, which %s wrote; write each output row once, or accumulate"
                .formatted(wiring.name(number), region, wiring.name(old.writer())));
      }
    }
    for (var piece : values) {
      put(region, new Piece(piece.rows(), piece.value(), number));
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

  private void run(int number) {
    switch (wiring.step(number)) {
      case Copy copy ->
          copy.moves()
              .forEach(
                  move ->
                      write(
                          number,
                          move.to(),
                          moved(read(number, move.from(), adds()), move.from(), move.to()),
                          false));
      case Gemm gemm -> multiply(number, gemm);
      case Reduce reduce -> {
        var parts = new ArrayList<List<Piece>>();
        for (var part : reduce.parts()) {
          parts.add(moved(read(number, part, false), part, reduce.output()));
        }
        boolean inPlace = reduce.parts().contains(reduce.output());
        finish(number, reduce.finish(), reduce.output(), Value.sum(parts, number), inPlace);
      }
      case Zero zero ->
          write(
              number,
              zero.target(),
              List.of(new Piece(zero.target().slice(), Value.Sum.ZERO, number)),
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

  /// Whether outputs go into the result as they were before the iteration.
  private boolean adds() {
    return wiring.schedule().goal() instanceof Goal.Gemm gemm
        && gemm.spec().has(GemmSpec.Feature.ACCUMULATE);
  }

  /// Values of rows as other rows have them after a copy.
  private static List<Piece> moved(List<Piece> pieces, Region from, Region to) {
    return pieces.stream().map(piece -> piece.shifted(to.row() - from.row())).toList();
  }

  private void multiply(int number, Gemm gemm) {
    var factors = factors(number, gemm.weight());
    for (var tile : gemm.tiles()) {
      boolean scaled =
          tile.input().buffer().dtype().isFp8() || gemm.weight().buffer().dtype().isFp8();
      int scales = scaled ? 0 : Product.UNSCALED;
      var products = new ArrayList<Piece>();
      for (var piece : moved(read(number, tile.input(), false), tile.input(), tile.output())) {
        products.add(new Piece(piece.rows(), new Product(piece.value(), factors, scales), number));
      }
      finish(number, gemm.finish(), tile.output(), products, false);
    }
  }

  /// The prepared form of a weight; rows that follow each other in one array become one factor.
  private List<Factor> factors(int number, Region weight) {
    var operand = Prepare.operand(weight);
    if (!gaps(operand).isEmpty()) {
      findings.add(
          "%s needs %s prepared, which nothing did in this iteration; prepare it before"
              .formatted(wiring.name(number), weight));
      return List.of(new Factor(weight.slice(), named(operand, Origin.UNKNOWN)));
    }
    var factors = new ArrayList<Factor>();
    for (var piece : known(operand)) {
      var part = piece.shifted(-weight.row());
      long start = part.rows().start();
      if (!factors.isEmpty() && factors.getLast().value().equals(part.value())) {
        start = factors.removeLast().rows().start();
      }
      factors.add(new Factor(new Slice(start, part.rows().end() - start), part.value()));
    }
    return List.copyOf(factors);
  }

  private void finish(int number, Finish finish, Region out, List<Piece> values, boolean inPlace) {
    var terms = new ArrayList<List<Piece>>();
    terms.add(finish.scaled() ? changed(values, Value::scaled) : values);
    if (finish.accumulate()) {
      terms.add(read(number, out, true));
    }
    finish
        .bias()
        .ifPresent(
            bias -> {
              var row = read(number, bias.on(out.rank()), false).getFirst().value();
              terms.add(List.of(new Piece(out.slice(), new Repeated(row), number)));
            });
    var done = Value.sum(terms, number);
    if (finish.preActivation().isPresent()) {
      var kept = finish.preActivation().get().on(out.rank(), out.slice());
      write(number, kept, done, false);
      done = changed(done, Gelu::new);
    }
    if (finish.rescaled()) {
      done = changed(done, Rescaled::new);
    }
    write(number, out, done, inPlace || finish.accumulate());
    finish
        .amax()
        .ifPresent(
            amax -> {
              if (!gaps(amax.on(out.rank())).isEmpty()) {
                findings.add(
                    "%s raises %s, which nothing set to zero in this iteration; clear it before"
                        .formatted(wiring.name(number), amax.on(out.rank())));
              }
            });
  }

  private static List<Piece> changed(List<Piece> pieces, UnaryOperator<Value> change) {
    return pieces.stream()
        .map(piece -> new Piece(piece.rows(), change.apply(piece.value()), piece.writer()))
        .toList();
  }

  /// Runs a library call of all ranks: what is expected of a collective of their regions.
  private void call(int[] meeting) {
    var calls =
        Arrays.stream(meeting).mapToObj(number -> (LibraryCall) wiring.step(number)).toList();
    var made =
        Expected.of(
            calls.getFirst().collective(),
            calls.getFirst().root(),
            calls.stream().map(LibraryCall::x).toList(),
            calls.stream().map(LibraryCall::y).toList());
    made.findings()
        .forEach(line -> findings.add("%s: %s".formatted(wiring.name(meeting[0]), line)));
    var values = new ArrayList<List<Piece>>();
    for (var output : made.outputs()) {
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
                var pieces = moved(read(meeting[rows.rank()], from, false), from, out);
                terms.addAll(Collections.nCopies(times, pieces));
              });
      values.add(Value.sum(terms, meeting[out.rank()]));
    }
    for (int i = 0; i < values.size(); i++) {
      var out = made.outputs().get(i).rows();
      write(meeting[out.rank()], out, values.get(i), true);
    }
  }

  private void complete(Region region) {
    for (var piece : known(region)) {
      if (isBefore(piece)) {
        findings.add("%s is never written; let a step write it".formatted(at(region, piece)));
      }
    }
  }

  /// Whether it is an output that no step has written.
  private static boolean isBefore(Piece piece) {
    return piece.writer() == CALLER
        && piece.value() instanceof Rows rows
        && rows.origin() == Origin.BEFORE;
  }

  private void compare(Region rows, Value wanted) {
    for (var piece : known(rows)) {
      if (!isBefore(piece) && piece.value().isKnown() && !piece.value().equals(wanted)) {
        findings.add(
            "%s, written by %s, %s"
                .formatted(
                    at(rows, piece),
                    piece.writer() == CALLER ? "the caller" : wiring.name(piece.writer()),
                    piece.value().difference(wanted, piece.rows())));
      }
    }
  }

  private static Region at(Region of, Piece piece) {
    return of.buffer().on(of.rank(), piece.rows());
  }
}
