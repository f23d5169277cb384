package braid.schedule.plan;

import braid.model.AttentionSpec;
import braid.model.Tokens;
import braid.schedule.Buffer;
import braid.schedule.Lane;
import braid.schedule.Program;
import braid.schedule.Slice;
import braid.schedule.Step.Attend;
import braid.schedule.Step.Gradients;
import braid.schedule.Step.Partial;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import java.util.function.Predicate;

/// Writes the steps that compute gradients of attention by some queries, block of keys by block of
/// keys. A gradient of a query is begun by its first block, one of a key by the first queries that
/// see it.
final class GradientBlocks {
  private final Program program;
  private final AttentionSpec spec;
  private final Queries queries;
  private final Function<Tokens, Panel> gradients;

  /// Groups of runs of queries, each computed together.
  private final List<Tokens> groups;

  /// Groups of queries whose gradient is begun.
  private final Set<Tokens> begun = new HashSet<>();

  /// Buffers with a row per query.
  record Queries(Panel query, Buffer output, Buffer lse, Buffer outputGradient) {}

  /// @param groups runs of queries that are computed together
  /// @param gradients returns the tensor of the gradient of a group of queries
  GradientBlocks(
      Program program,
      AttentionSpec spec,
      List<Tokens> groups,
      Queries queries,
      Function<Tokens, Panel> gradients) {
    this.program = program;
    this.spec = spec;
    this.groups = groups;
    this.queries = queries;
    this.gradients = gradients;
  }

  /// Returns whether the gradient of a group of queries is begun.
  boolean hasBegun(Tokens group) {
    return begun.contains(group);
  }

  /// Computes the gradients of all queries that see any of some keys in consecutive rows, and of
  /// these keys.
  ///
  /// @param beginning true for queries whose gradients these keys begin, also those without effect:
  ///   some of each rank's own
  void attend(
      Lane lane, int chunk, Tokens keys, KeyValue of, KeyValue into, Predicate<Tokens> beginning) {
    int rank = program.rank();
    var rows = Slice.rows(keys);
    boolean continued = false;
    for (var group : groups) {
      if (!beginning.test(group) && !group.see(spec, keys)) {
        continue;
      }
      var own = Slice.rows(group);
      program.attendGradient(
          new Attend(
              lane,
              chunk,
              spec,
              queries.query().on(rank, own),
              group.fromFirstRow(),
              of.key().on(rank, rows),
              of.value().on(rank, rows),
              keys.fromFirstRow(),
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
