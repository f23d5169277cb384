package braid.schedule.plan;

import braid.model.AttentionSpec;
import braid.model.DType;
import braid.schedule.Buffer;
import braid.schedule.Buffer.Shape;
import braid.schedule.Lane;
import braid.schedule.Program;
import braid.schedule.Schedule;
import braid.schedule.Slice;
import braid.schedule.Step;
import braid.schedule.Step.Move;
import java.util.ArrayList;
import java.util.List;

/// Each rank's own keys and values as it sends them: as they are given, or rounded, in buffers of
/// their own. Ranks restore what they fetch before they use it.
final class ExchangedKeys {
  private final AttentionSpec spec;
  private final Schedule.Builder builder;
  private final KeyValue given;
  private final KeyValue sent;

  ExchangedKeys(AttentionSpec spec, Schedule.Builder builder, KeyValue given) {
    this.spec = spec;
    this.builder = builder;
    this.given = given;
    sent =
        spec.isRounded()
            ? KeyValue.of(
                rounded("rounded key", given.key()), rounded("rounded value", given.value()))
            : given;
  }

  KeyValue sent() {
    return sent;
  }

  /// Returns the buffers that sent keys and values are restored in: these themselves if they are
  /// not rounded.
  KeyValue restored(KeyValue keys) {
    return spec.isRounded() ? KeyValue.of(restored(keys.key()), restored(keys.value())) : keys;
  }

  private Buffer rounded(String name, Panel like) {
    long columns = Step.Recode.rounded(like.columns(), spec.headSize());
    return buffer(name, DType.FP8_E4M3, like, columns, true);
  }

  private Buffer restored(Panel of) {
    long columns = of.columns() / Step.Recode.rounded(spec.headSize(), spec.headSize());
    return buffer("restored " + of, spec.dtype(), of, columns * spec.headSize(), false);
  }

  private Buffer buffer(String name, DType type, Panel like, long columns, boolean symmetric) {
    int ranks = like.buffer().shapes().size();
    var shapes = Buffer.shapes(ranks, rank -> new Shape(like.rows(rank), columns));
    return builder.add(new Buffer(name, type, shapes, symmetric, false));
  }

  /// Rounds the keys and values of a rank.
  void round(Program program, Lane lane) {
    if (spec.isRounded()) {
      program.recode(lane, 0, moves(given, sent, program.rank(), all(program)), spec.headSize());
    }
  }

  /// Restores the keys and values of a rank for the rank itself.
  void restoreOwn(Program program, Lane lane, KeyValue own) {
    restore(program, lane, 0, sent, own, all(program));
  }

  private List<Slice> all(Program program) {
    return List.of(new Slice(0, given.key().rows(program.rank())));
  }

  /// Restores some rows of sent keys and values.
  void restore(
      Program program, Lane lane, int chunk, KeyValue from, KeyValue to, List<Slice> rows) {
    if (spec.isRounded()) {
      program.recode(lane, chunk, moves(from, to, program.rank(), rows), spec.headSize());
    }
  }

  private static List<Move> moves(KeyValue from, KeyValue to, int rank, List<Slice> rows) {
    var moves = new ArrayList<Move>();
    for (var each : rows) {
      moves.add(new Move(from.key().on(rank, each), to.key().on(rank, each)));
      moves.add(new Move(from.value().on(rank, each), to.value().on(rank, each)));
    }
    return moves;
  }
}
