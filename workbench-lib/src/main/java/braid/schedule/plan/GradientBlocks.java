package braid.schedule.plan;

import braid.model.AttentionSpec;
import braid.schedule.Buffer;
import braid.schedule.Lane;
import braid.schedule.Program;
import braid.schedule.Step.Attend;
import braid.schedule.Step.Gradients;
import braid.schedule.Step.Partial;
import braid.schedule.Tokens;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Function;

/// Writes the steps that compute gradients of attention by some queries, block of keys by block of
/// keys. A gradient of a query is begun by its first block, one of a key by the first queries that
/// see it.
final class GradientBlocks {
  private final Program program;
  private final AttentionSpec spec;
  private final Queries queries;
  private final Function<List<Tokens.Run>, Buffer> gradients;

  /// Groups of runs of queries, each computed together.
  private final List<List<Tokens.Run>> groups;

  /// Groups of queries whose gradient is begun.
  private final Set<List<Tokens.Run>> begun = new HashSet<>();

  /// Buffers with a row per query.
  record Queries(Buffer query, Buffer output, Buffer lse, Buffer outputGradient) {}

  /// @param groups runs of queries that are computed together
  /// @param gradients returns the buffer of the gradient of a group of queries
  GradientBlocks(
      Program program,
      AttentionSpec spec,
      List<List<Tokens.Run>> groups,
      Queries queries,
      Function<List<Tokens.Run>, Buffer> gradients) {
    this.program = program;
    this.spec = spec;
    this.groups = groups;
    this.queries = queries;
    this.gradients = gradients;
  }

  /// Returns whether the gradient of a group of queries is begun.
  boolean hasBegun(List<Tokens.Run> group) {
    return begun.contains(group);
  }

  /// Computes the gradients of all queries that see any of some keys in consecutive rows, and of
  /// these keys.
  void attend(Lane lane, int chunk, List<Tokens.Run> keys, KeyValue of, KeyValue into) {
    int rank = program.rank();
    var rows = Tokens.rows(keys);
    var ofKeys = Tokens.positions(keys);
    boolean continued = false;
    for (var group : groups) {
      // Queries of the keys' own positions begin all of their gradients, also those without effect.
      var ofGroup = Tokens.positions(group);
      if (!keys.containsAll(group) && !ofGroup.see(spec, ofKeys)) {
        continue;
      }
      var own = Tokens.rows(group);
      program.attendGradient(
          new Attend(
              lane,
              chunk,
              spec,
              queries.query().on(rank, own),
              ofGroup,
              of.key().on(rank, rows),
              of.value().on(rank, rows),
              ofKeys,
              new Partial(queries.output().on(rank, own), queries.lse().on(rank, own)),
              false),
          queries.outputGradient().on(rank, own),
          new Gradients(
              gradients.apply(group).on(rank, own),
              into.key().on(rank, rows),
              into.value().on(rank, rows)),
          !begun.add(group),
          continued);
      continued = true;
    }
  }
}
