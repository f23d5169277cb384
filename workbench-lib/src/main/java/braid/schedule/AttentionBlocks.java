package braid.schedule;

import braid.model.Tokens;
import braid.model.Tokens.Run;
import braid.schedule.Step.Attend;
import braid.schedule.Step.AttendGradient;
import braid.schedule.Step.Gradients;
import braid.schedule.Step.Merge;
import braid.schedule.Step.Partial;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.TreeMap;

/// Divides attention into blocks that kernels compute at once: in each packed sequence, the mask is
/// that of consecutive positions. Rows and keys at the ends that see nothing of each other are left
/// out, unless their result begins.
final class AttentionBlocks {
  private AttentionBlocks() {}

  /// Returns the steps of an attention: blocks, and a merge if none of them can finish all rows.
  static List<Step> of(Attend whole) {
    if (whole.finished().isEmpty() || finishes(whole)) {
      return List.copyOf(blocks(whole));
    }
    var steps = new ArrayList<Step>(blocks(whole.unfinished()));
    steps.add(new Merge(whole.lane(), whole.chunk(), List.of(whole.result()), whole.written()));
    return steps;
  }

  /// Returns whether one block has all rows.
  private static boolean finishes(Attend whole) {
    return isOutside(whole)
        || (!whole.key().isEmpty()
            && whole.queries().haveAll(whole.query().rows())
            && isOneBlock(whole, whole.queries()));
  }

  private static List<Attend> blocks(Attend whole) {
    if (whole.key().isEmpty()) {
      return List.of();
    }
    if (isOutside(whole)) {
      return List.of(whole);
    }
    var blocks = new ArrayList<Attend>();
    if (isOneBlock(whole, whole.queries())) {
      add(whole, whole.queries(), blocks);
    } else if (whole.continued()) {
      for (var queries : classes(whole)) {
        if (isOneBlock(whole, queries)) {
          add(whole, queries, blocks);
        } else {
          queries.runs().forEach(run -> add(whole, run, blocks));
        }
      }
    } else {
      whole.queries().runs().forEach(run -> add(whole, run, blocks));
    }
    return blocks;
  }

  /// Adds a block of some queries, unless it is continued and they see nothing.
  private static void add(Attend whole, Tokens queries, List<Attend> blocks) {
    boolean some = whole.continued() && whole.finished().isEmpty();
    var rows = some ? seeing(whole, queries) : all(whole.query());
    if (!rows.isEmpty()) {
      var keys = seen(whole, queries.rows(rows.start(), rows.end()));
      blocks.add(part(whole, rows, queries, keys, whole.continued()));
    }
  }

  /// Adds the blocks of one run of queries, one for each run of keys that it sees.
  private static void add(Attend whole, Run run, List<Attend> blocks) {
    var seen = new ArrayList<>(keyRuns(whole));
    seen.removeIf(keys -> !Tokens.sees(whole.spec(), run, keys));
    boolean continued = whole.continued();
    if (seen.isEmpty() && !continued) {
      seen.add(keyRuns(whole).getFirst());
    }
    for (var keys : seen) {
      blocks.add(part(whole, Slice.rows(run), whole.queries(), Slice.rows(keys), continued));
      continued = true;
    }
  }

  /// Returns the blocks of gradients.
  static List<AttendGradient> of(AttendGradient whole) {
    var block = whole.block();
    if (isOutside(block)) {
      return List.of(whole);
    }
    boolean continuesQuery = whole.continuesQuery();
    boolean continuesKeys = whole.continuesKeys();
    var groups = new ArrayList<Tokens>();
    if (isOneBlock(block, block.queries())) {
      groups.add(block.queries());
    } else if (continuesQuery) {
      groups.addAll(classes(block));
    }
    if (groups.isEmpty() || !groups.stream().allMatch(queries -> isOneBlock(block, queries))) {
      return byRun(whole);
    }
    var blocks = new ArrayList<AttendGradient>();
    for (var queries : groups) {
      var seeing = seeing(block, queries);
      if (seeing.isEmpty() && continuesQuery && continuesKeys) {
        continue;
      }
      var rows = continuesQuery && !seeing.isEmpty() ? seeing : all(block.query());
      var keys =
          continuesKeys ? seen(block, queries.rows(rows.start(), rows.end())) : all(block.key());
      blocks.add(part(whole, rows, queries, keys, continuesQuery, continuesKeys));
      continuesKeys = true;
    }
    return blocks;
  }

  /// Returns gradients run by run. Each run of queries and of keys begins with its first block;
  /// what sees nothing begins last.
  private static List<AttendGradient> byRun(AttendGradient whole) {
    var block = whole.block();
    var begun = new HashSet<Run>();
    var begunKeys = new HashSet<Run>();
    var blocks = new ArrayList<AttendGradient>();
    for (boolean seen : List.of(true, false)) {
      for (var run : block.queries().runs()) {
        for (var keys : keyRuns(block)) {
          boolean continuesQuery = whole.continuesQuery() || begun.contains(run);
          boolean continuesKeys = whole.continuesKeys() || begunKeys.contains(keys);
          if (Tokens.sees(block.spec(), run, keys)
              ? seen
              : !seen && !(continuesQuery && continuesKeys)) {
            blocks.add(
                part(
                    whole,
                    Slice.rows(run),
                    block.queries(),
                    Slice.rows(keys),
                    continuesQuery,
                    continuesKeys));
            begun.add(run);
            begunKeys.add(keys);
          }
        }
      }
    }
    return blocks;
  }

  /// Returns the runs of keys, and the keys of a run one by one if a run of queries has another
  /// step.
  private static List<Run> keyRuns(Attend whole) {
    var runs = new ArrayList<Run>();
    for (var keys : whole.keys().runs()) {
      boolean together =
          keys.length() == 1
              || whole.queries().runs().stream()
                  .allMatch(run -> run.length() == 1 || run.step() == keys.step());
      int parts = together ? 1 : Math.toIntExact(keys.length());
      for (int i = 0; i < parts; i++) {
        runs.add(keys.part(parts, i));
      }
    }
    return runs;
  }

  private static boolean isOneBlock(Attend whole, Tokens queries) {
    return Tokens.pairs(whole.spec(), queries, whole.keys()).isPresent();
  }

  /// Returns the rows from the first run that sees any key to the last; none if no run does.
  private static Slice seeing(Attend whole, Tokens queries) {
    var seeing = queries.of(run -> whole.keys().areSeenBy(whole.spec(), run));
    return Slice.rows(seeing);
  }

  /// Returns the keys that some queries see; all if they see none.
  private static Slice seen(Attend whole, Tokens queries) {
    var spec = whole.spec();
    var keys = whole.keys();
    long start = keys.rowsBefore(spec.firstSeen(queries.first()));
    long end = keys.rowsBefore(spec.lastSeen(queries.runs().getLast().last()) + 1);
    return start < end ? new Slice(start, end - start) : all(whole.key());
  }

  /// Positions outside of the sequence are left to the check.
  private static boolean isOutside(Attend whole) {
    long end = whole.spec().positions();
    return !whole.queries().areWithin(end) || !whole.keys().areWithin(end);
  }

  /// Returns the first runs of all packed sequences, the second ones, and so on.
  private static Collection<Tokens> classes(Attend whole) {
    var packing = whole.spec().packing();
    var counts = new HashMap<Integer, Integer>();
    var classes = new TreeMap<Integer, List<Run>>();
    for (var run : whole.queries().runs()) {
      int before = counts.getOrDefault(packing.at(run.first()), 0);
      counts.merge(packing.at(run.last()), 1, Integer::sum);
      classes.computeIfAbsent(before, _ -> new ArrayList<>()).add(run);
    }
    return classes.values().stream().map(Tokens::new).toList();
  }

  private static Slice all(Region region) {
    return new Slice(0, region.rows());
  }

  /// Returns the block of some rows and some keys.
  private static Attend part(
      Attend whole, Slice rows, Tokens queries, Slice keys, boolean continued) {
    return new Attend(
        whole.lane(),
        whole.chunk(),
        whole.spec(),
        part(whole.query(), rows),
        queries.rows(rows.start(), rows.end()),
        part(whole.key(), keys),
        part(whole.value(), keys),
        whole.keys().rows(keys.start(), keys.end()),
        new Partial(part(whole.result().output(), rows), part(whole.result().lse(), rows)),
        continued,
        whole.finished().map(output -> part(output, rows)));
  }

  private static AttendGradient part(
      AttendGradient whole,
      Slice rows,
      Tokens queries,
      Slice keys,
      boolean continuesQuery,
      boolean continuesKeys) {
    var result = whole.result();
    return new AttendGradient(
        part(whole.block(), rows, queries, keys, whole.block().continued()),
        part(whole.outputGradient(), rows),
        new Gradients(
            part(result.query(), rows), part(result.key(), keys), part(result.value(), keys)),
        continuesQuery,
        continuesKeys);
  }

  private static Region part(Region whole, Slice rows) {
    return whole.rows(rows.shifted(whole.row()));
  }
}
