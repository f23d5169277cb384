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

/// Cases on a group and on groups of some of its ranks, open at the same time and run in turns:
///
/// ```
/// 0: ring all-reduce on all ranks; 1: views on ranks 0, 2; 2: a refused build | 0 1 0 2 0 1 1 0
/// ```
///
/// The first turn of a case opens it, the last one closes it, and each turn between runs a round. A
/// case with one turn is opened and closed.
///
/// @param ranks number of ranks of its group
/// @param turns indices of parts, in the order of execution
/// @param closesGroups true to close the groups that it created
/// @param drawnAgain number of infeasible pipelines that were drawn again
public record Program(
    int ranks, List<Part> parts, List<Integer> turns, boolean closesGroups, int drawnAgain) {
  /// A case and its ranks.
  ///
  /// @param ranks ranks of the program's group, in ascending order
  public record Part(Case tested, List<Integer> ranks, MemoryKind kind) {
    private String text() {
      return "%s on %s in %s"
          .formatted(
              tested.text(),
              ranks.stream().map(String::valueOf).collect(Collectors.joining("+")),
              kind);
    }
  }

  public Program {
    parts = List.copyOf(parts);
    turns = List.copyOf(turns);
  }

  /// Cases and turns in one line.
  public String text() {
    return "%s | turns %s%s"
        .formatted(
            parts.stream().map(Part::text).collect(Collectors.joining("; ")),
            turns.stream().map(String::valueOf).collect(Collectors.joining(" ")),
            closesGroups ? ", closes its groups" : "");
  }

  /// Returns counts of the programs' parts, in one line.
  public static String counts(List<Program> programs) {
    int pipelines = 0;
    int collectives = 0;
    int views = 0;
    int mistakes = 0;
    int subgroups = 0;
    for (var program : programs) {
      int ranks = program.ranks;
      for (var part : program.parts) {
        switch (part.tested) {
          case PipelineCase _,
              AttentionCase _,
              BoundTensorsCase _,
              OwnScheduleCase _,
              ChainCase _ ->
              pipelines++;
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

  /// Runs the program on this rank; all ranks of the group do. Throws [CaseFailed] after the last
  /// turn if a result is wrong.
  ///
  /// @param context group of the program and change of results; the parts have their own kinds of
  ///   memory
  public void check(CaseContext context) {
    var findings = new Findings();
    try (var run = new Run(this, context)) {
      run.all(findings);
    }
    findings.orThrow();
  }

  private static final class Run implements AutoCloseable {
    private final Program program;
    private final CaseContext context;
    private final int[] remaining;
    private final int[] rounds;
    private final HashMap<Integer, Case.Opened> open = new HashMap<>();
    private final Deque<ProcessGroup> groups = new ArrayDeque<>();

    Run(Program program, CaseContext context) {
      this.program = program;
      this.context = context;
      this.remaining = new int[program.parts.size()];
      this.rounds = new int[program.parts.size()];
      program.turns.forEach(part -> remaining[part]++);
    }

    void all(Findings findings) {
      for (int part : program.turns) {
        remaining[part]--;
        if (program.parts.get(part).ranks.contains(context.group().rank())) {
          turn(part, findings);
        }
      }
    }

    private void turn(int part, Findings findings) {
      var opened = open.get(part);
      if (opened == null) {
        opened = open(program.parts.get(part), findings);
        open.put(part, opened);
      } else if (remaining[part] > 0) {
        opened.round(rounds[part]++, findings);
      }
      if (remaining[part] == 0) {
        open.remove(part);
        opened.close();
      }
    }

    private Case.Opened open(Part part, Findings findings) {
      var group = group(part.ranks);
      return part.tested.open(new CaseContext(group, part.kind, context.alteration()), findings);
    }

    private ProcessGroup group(List<Integer> ranks) {
      if (ranks.size() == program.ranks) {
        return context.group();
      }
      var name = ranks.stream().map(String::valueOf).collect(Collectors.joining("-", "of-", ""));
      var group =
          context.group().subset(name, ranks.stream().mapToInt(Integer::intValue).toArray());
      if (!groups.contains(group)) {
        groups.push(group);
      }
      return group;
    }

    /// Closes everything that is open, also after a failure.
    @Override
    public void close() {
      var closing = new ArrayList<AutoCloseable>(open.values());
      if (program.closesGroups) {
        closing.addAll(groups);
      }
      var each = closing.iterator();
      Closing.all(() -> each.hasNext() ? each.next() : null);
    }
  }
}
