package braid.internal.selftest;

import braid.ProcessGroup;
import braid.internal.rank.Closing;
import braid.model.MemoryKind;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.stream.Collectors;

/// Several cases on a group and on groups of some of its ranks, open at the same time, which take
/// turns:
///
/// ```
/// 0: ring all-reduce on all ranks; 1: views on ranks 0, 2; 2: a refused build | 0 1 0 2 0 1 1 0
/// ```
///
/// A case's first turn sets it up, its last closes it, and each one between is a round. A case with
/// one turn is set up and closed.
///
/// @param ranks of its group
/// @param turns indices of parts
/// @param closesGroups whether it closes the groups that it made
/// @param drawnAgain how many pipelines were infeasible and drawn again
public record Program(
    int ranks, List<Part> parts, List<Integer> turns, boolean closesGroups, int drawnAgain) {
  /// A case, and who runs it.
  ///
  /// @param ranks of the program's group, in ascending order
  public record Part(Case of, List<Integer> ranks, MemoryKind kind) {
    private String text() {
      return "%s on %s in %s"
          .formatted(
              of.text(),
              ranks.stream().map(String::valueOf).collect(Collectors.joining("+")),
              kind);
    }
  }

  public Program {
    parts = List.copyOf(parts);
    turns = List.copyOf(turns);
  }

  /// Its cases and their turns, in one line.
  public String text() {
    return "%s | turns %s%s"
        .formatted(
            parts.stream().map(Part::text).collect(Collectors.joining("; ")),
            turns.stream().map(String::valueOf).collect(Collectors.joining(" ")),
            closesGroups ? ", closes its groups" : "");
  }

  /// Counts the parts of those programs, in one line.
  public static String counts(List<Program> programs) {
    int pipelines = 0;
    int collectives = 0;
    int views = 0;
    int mistakes = 0;
    int subgroups = 0;
    for (var program : programs) {
      int ranks = program.ranks;
      for (var part : program.parts) {
        switch (part.of) {
          case PipelineCase _ -> pipelines++;
          case CollectiveCase _ -> collectives++;
          case ViewCase _, MemoryCase _ -> views++;
          case RefusedCase _ -> mistakes++;
        }
        if (part.ranks.size() < ranks) {
          subgroups++;
        }
      }
    }
    return "%d pipelines, %d collectives, %d tensors with views, %d mistakes, %d of them on some of the ranks; %d infeasible pipelines were drawn again"
        .formatted(
            pipelines,
            collectives,
            views,
            mistakes,
            subgroups,
            programs.stream().mapToInt(Program::drawnAgain).sum());
  }

  /// Runs it on this rank; all ranks of the group do. Throws [CaseFailed] where a result is wrong,
  /// and that after the last turn.
  ///
  /// @param trial its group and what happens to results; the parts say the kinds of memory
  public void check(CaseGroup trial) {
    var findings = new Findings();
    try (var run = new Run(this, trial)) {
      run.all(findings);
    }
    findings.orThrow();
  }

  private static final class Run implements AutoCloseable {
    private final Program program;
    private final CaseGroup trial;
    private final int[] left;
    private final int[] rounds;
    private final HashMap<Integer, Case.Opened> open = new HashMap<>();
    private final Deque<ProcessGroup> groups = new ArrayDeque<>();

    Run(Program program, CaseGroup trial) {
      this.program = program;
      this.trial = trial;
      this.left = new int[program.parts.size()];
      this.rounds = new int[program.parts.size()];
      program.turns.forEach(part -> left[part]++);
    }

    void all(Findings findings) {
      for (int part : program.turns) {
        left[part]--;
        if (program.parts.get(part).ranks.contains(trial.group().rank())) {
          turn(part, findings);
        }
      }
    }

    private void turn(int part, Findings findings) {
      var opened = open.get(part);
      if (opened == null) {
        opened = open(program.parts.get(part), findings);
        open.put(part, opened);
      } else if (left[part] > 0) {
        opened.round(rounds[part]++, findings);
      }
      if (left[part] == 0) {
        open.remove(part);
        opened.close();
      }
    }

    private Case.Opened open(Part part, Findings findings) {
      var group = group(part.ranks);
      return part.of.open(new CaseGroup(group, part.kind, trial.handled()), findings);
    }

    private ProcessGroup group(List<Integer> ranks) {
      if (ranks.size() == program.ranks) {
        return trial.group();
      }
      var name = ranks.stream().map(String::valueOf).collect(Collectors.joining("-", "of-", ""));
      var group = trial.group().subset(name, ranks.stream().mapToInt(Integer::intValue).toArray());
      if (!groups.contains(group)) {
        groups.push(group);
      }
      return group;
    }

    /// Closes also what a failure left open.
    @Override
    public void close() {
      var left = new ArrayList<AutoCloseable>(open.values());
      if (program.closesGroups) {
        left.addAll(groups);
      }
      var each = left.iterator();
      Closing.all(() -> each.hasNext() ? each.next() : null);
    }
  }
}
