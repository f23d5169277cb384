package braid.schedule.draw;

import braid.schedule.Region;
import braid.schedule.Schedule;
import braid.schedule.Step;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.IntFunction;

/// Short names of one rank's steps, such as `fetch 1`, `send 0 @2`, `gemm own`. `@2` is the rank at
/// the other end of a copy, or the one that gets a result. `own` marks the multiplication of a
/// rank's own rows, if others of its rows come from or go to other ranks.
public final class Labels {
  private final int rank;

  /// Moves between this rank and others.
  private final List<Step.Move> moves;

  /// Moves in which this rank restores rounded heads.
  private final List<Step.Move> restored = new ArrayList<>();

  /// The ranks that get a multiplication's result.
  private final IdentityHashMap<Step.Gemm, Set<Integer>> receivers = new IdentityHashMap<>();

  private final Set<Step.Gemm> own = Collections.newSetFromMap(new IdentityHashMap<>());

  private Labels(Schedule schedule, int rank, List<Step.Move> moves) {
    this.rank = rank;
    this.moves = moves;
    boolean hasOthers = false;
    for (var step : schedule.steps(rank)) {
      if (step instanceof Step.Recode recode && !recode.rounds()) {
        restored.addAll(recode.moves());
      } else if (step instanceof Step.Gemm gemm) {
        var ranks = receivers(gemm);
        receivers.put(gemm, ranks);
        if (ranks.isEmpty() && !isFilled(gemm)) {
          own.add(gemm);
        } else {
          hasOthers = true;
        }
      }
    }
    if (!hasOthers) {
      own.clear();
    }
  }

  /// Returns the labels of one rank.
  public static Labels of(Schedule schedule, int rank) {
    return of(schedule, List.of(rank)).apply(rank);
  }

  /// Returns the labels of each of the ranks.
  static IntFunction<Labels> of(Schedule schedule, List<Integer> ranks) {
    var moves = new HashMap<Integer, List<Step.Move>>();
    ranks.forEach(rank -> moves.put(rank, new ArrayList<>()));
    for (int rank = 0; rank < schedule.ranks(); rank++) {
      for (var step : schedule.steps(rank)) {
        if (step instanceof Step.Copy copy) {
          for (var move : copy.moves()) {
            if (!move.isLocal()) {
              moves.getOrDefault(move.from().rank(), new ArrayList<>()).add(move);
              moves.getOrDefault(move.to().rank(), new ArrayList<>()).add(move);
            }
          }
        }
      }
    }
    return rank -> new Labels(schedule, rank, moves.getOrDefault(rank, List.of()));
  }

  /// Returns the short name of a step of the rank.
  public String of(Step step) {
    return switch (step) {
      case Step.Copy copy -> named(verb(copy), copy, others(copy));
      case Step.Gemm gemm when own.contains(gemm) ->
          (own.size() > 1 ? named("gemm", gemm, Set.of()) : "gemm") + " own";
      case Step.Gemm gemm -> named("gemm", gemm, receivers.getOrDefault(gemm, Set.of()));
      case Step.Attend attend ->
          isFilled(attend) ? named("attend", attend, Set.of()) : "attend own";
      case Step.AttendGradient gradient ->
          isFilled(gradient.block()) ? named("backward", gradient, Set.of()) : "backward own";
      case Step.Recode recode -> named(recode.rounds() ? "round" : "restore", recode, Set.of());
      case Step.Reduce reduce -> named("sum", reduce, Set.of());
      case Step.LibraryCall call -> call.collective().toString();
      case Step.Wait wait -> named("wait", wait, Set.of(wait.from()));
      case Step.Signal signal -> named("signal", signal, Set.of(signal.to()));
      default -> named(step.getClass().getSimpleName().toLowerCase(Locale.ROOT), step, Set.of());
    };
  }

  private static String named(String verb, Step step, Set<Integer> ranks) {
    return verb
        + (step.chunk() == Step.NO_CHUNK ? "" : " " + step.chunk())
        + (ranks.size() == 1 ? " @" + ranks.iterator().next() : "");
  }

  private String verb(Step.Copy copy) {
    if (copy.isLocal()) {
      return "copy";
    }
    return copy.moves().stream().allMatch(move -> move.to().rank() == rank) ? "fetch" : "send";
  }

  private Set<Integer> others(Step.Copy copy) {
    var others = new TreeSet<Integer>();
    for (var move : copy.moves()) {
      others.add(move.from().rank());
      others.add(move.to().rank());
    }
    others.remove(rank);
    return others;
  }

  private Set<Integer> receivers(Step.Gemm gemm) {
    var ranks = new TreeSet<Integer>();
    for (var move : moves) {
      if (move.from().rank() == rank
          && gemm.tiles().stream().anyMatch(tile -> tile.output().overlaps(move.from()))) {
        ranks.add(move.to().rank());
      }
    }
    return ranks;
  }

  private boolean isFilled(Step.Attend attend) {
    return isFilled(attend.key())
        || restored.stream()
            .anyMatch(move -> attend.key().overlaps(move.to()) && isFilled(move.from()));
  }

  private boolean isFilled(Region region) {
    return moves.stream().anyMatch(move -> move.to().rank() == rank && region.overlaps(move.to()));
  }

  private boolean isFilled(Step.Gemm gemm) {
    return moves.stream()
        .anyMatch(
            move ->
                move.to().rank() == rank
                    && gemm.tiles().stream().anyMatch(tile -> tile.input().overlaps(move.to())));
  }
}
