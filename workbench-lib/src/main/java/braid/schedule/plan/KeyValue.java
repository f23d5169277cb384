package braid.schedule.plan;

import braid.schedule.Buffer;
import braid.schedule.Slice;
import braid.schedule.Step.Move;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/// Buffers of keys and of values, or of their gradients.
record KeyValue(Panel key, Panel value) {
  static KeyValue of(Buffer key, Buffer value) {
    return new KeyValue(Panel.of(key), Panel.of(value));
  }

  /// Keys and values in the halves of a buffer's columns.
  static KeyValue halves(Buffer both) {
    long columns = both.columns(0) / 2;
    return new KeyValue(
        new Panel("key in " + both, both, new Slice(0, columns)),
        new Panel("value in " + both, both, new Slice(columns, columns)));
  }

  boolean areFused() {
    return key.isBefore(value);
  }

  /// Returns the columns of both, which are fused.
  Panel both() {
    return new Panel(
        key.buffer().name(),
        key.buffer(),
        new Slice(key.slice().start(), key.columns() + value.columns()));
  }

  /// Rows of one buffer that go to rows of another.
  record Rows(Slice from, Slice into) {
    /// Joins those that follow each other on both sides.
    static List<Rows> joined(List<Rows> all) {
      var joined = new ArrayList<Rows>();
      for (var each : all) {
        if (!joined.isEmpty()
            && joined.getLast().from.end() == each.from.start()
            && joined.getLast().into.end() == each.into.start()) {
          var before = joined.removeLast();
          long length = before.from.length() + each.from.length();
          joined.add(
              new Rows(
                  new Slice(before.from.start(), length), new Slice(before.into.start(), length)));
        } else {
          joined.add(each);
        }
      }
      return joined;
    }
  }

  /// Returns the moves of some rows of one rank to those of another.
  List<Move> moves(int from, List<Rows> rows, KeyValue to, int at) {
    boolean together = areFused() && to.areFused();
    return Rows.joined(rows).stream()
        .flatMap(
            each ->
                together
                    ? Stream.of(new Move(both().on(from, each.from), to.both().on(at, each.into)))
                    : Stream.of(
                        new Move(key.on(from, each.from), to.key.on(at, each.into)),
                        new Move(value.on(from, each.from), to.value.on(at, each.into))))
        .toList();
  }
}
