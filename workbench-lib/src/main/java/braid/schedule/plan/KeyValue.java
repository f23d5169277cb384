package braid.schedule.plan;

import braid.schedule.Buffer;
import braid.schedule.Slice;
import braid.schedule.Step.Move;
import java.util.List;

/// Buffers of keys and of values, or of their gradients.
record KeyValue(Buffer key, Buffer value) {
  /// Returns the moves of some rows of one rank to those of another.
  List<Move> moves(int from, Slice rows, KeyValue to, int at, Slice into) {
    return List.of(
        new Move(key.on(from, rows), to.key.on(at, into)),
        new Move(value.on(from, rows), to.value.on(at, into)));
  }
}
