package braid.schedule.plan;

import braid.model.AttentionSpec;
import braid.schedule.Buffer;
import braid.schedule.Lane;
import braid.schedule.Program;
import braid.schedule.Slice;
import braid.schedule.Step.Attend;
import braid.schedule.Step.Gradients;
import braid.schedule.Step.Partial;
import braid.schedule.Tokens;
import java.util.HashSet;
import java.util.Set;
import java.util.function.Function;

/// Writes the steps that compute gradients of attention by some queries, block of keys by block of
/// keys. A gradient of a query is begun by its first block, one of a key by the first queries that
/// see it.
final class GradientBlocks {
  private final Program program;
  private final AttentionSpec spec;
  private final Tokens tokens;
  private final Queries queries;
  private final Function<Tokens.Run, Buffer> gradients;

  /// Runs of queries whose gradient is begun.
  private final Set<Tokens.Run> begun = new HashSet<>();

  /// Buffers with a row per query.
  record Queries(Buffer query, Buffer output, Buffer lse, Buffer outputGradient) {}

  /// @param gradients returns the buffer of the gradient of a run of queries
  GradientBlocks(
      Program program,
      AttentionSpec spec,
      Tokens tokens,
      Queries queries,
      Function<Tokens.Run, Buffer> gradients) {
    this.program = program;
    this.spec = spec;
    this.tokens = tokens;
    this.queries = queries;
    this.gradients = gradients;
  }

  /// Returns whether the gradient of a run of queries is begun.
  boolean hasBegun(Tokens.Run run) {
    return begun.contains(run);
  }

  /// Computes the gradients of all queries that see any of some keys, and of these keys.
  void attend(Lane lane, int chunk, Tokens.Run keys, KeyValue of, KeyValue into) {
    // Later queries see no earlier begin and no earlier end.
    long begunEnd = keys.positions().start();
    for (var run : tokens.runs()) {
      // The queries of the keys' own positions begin the gradients of all of these keys, also of
      // those without effect.
      var seen =
          run.positions().equals(keys.positions())
              ? keys.positions()
              : Tokens.seen(spec, run, keys.positions());
      if (!seen.isEmpty()) {
        long continued = Math.clamp(begunEnd - seen.start(), 0, seen.length());
        var some = new Slice(seen.start(), continued);
        var rest = new Slice(some.end(), seen.length() - continued);
        attend(lane, chunk, run, keys.rows(some), some.start(), of, into, true);
        attend(lane, chunk, run, keys.rows(rest), rest.start(), of, into, false);
        begunEnd = seen.end();
      }
    }
  }

  private void attend(
      Lane lane,
      int chunk,
      Tokens.Run run,
      Slice rows,
      long position,
      KeyValue of,
      KeyValue into,
      boolean continued) {
    if (rows.isEmpty()) {
      return;
    }
    int rank = program.rank();
    program.attendGradient(
        new Attend(
            lane,
            chunk,
            spec,
            queries.query().on(rank, run.rows()),
            run.positions().start(),
            of.key().on(rank, rows),
            of.value().on(rank, rows),
            position,
            new Partial(queries.output().on(rank, run.rows()), queries.lse().on(rank, run.rows())),
            false),
        queries.outputGradient().on(rank, run.rows()),
        new Gradients(
            gradients.apply(run).on(rank, run.rows()),
            into.key().on(rank, rows),
            into.value().on(rank, rows)),
        !begun.add(run),
        continued);
  }
}
