package braid.schedule.plan;

import braid.model.GemmSpec;
import braid.model.GemmSpec.Feature;
import braid.schedule.Buffer;
import braid.schedule.Buffer.Shape;
import braid.schedule.Goal;
import braid.schedule.Lane;
import braid.schedule.Part;
import braid.schedule.Port;
import braid.schedule.Program;
import braid.schedule.Region;
import braid.schedule.Schedule;
import braid.schedule.Step;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.IntFunction;

/// Adds buffers of the caller to a schedule, and the copies between them and the buffers that its
/// steps use:
///
/// ```
/// comm    | copy in | the steps ...     | copy out |
/// gemm-0            | the steps ... |
/// ```
public final class Staging {
  private static final String SUFFIX = " (caller's)";

  private final Schedule schedule;
  private final Set<Part> parts;

  private Staging(Schedule schedule, Set<Part> parts) {
    this.schedule = schedule;
    this.parts = parts;
  }

  /// Returns a schedule with some parts in private buffers of the caller.
  public static Schedule of(Schedule schedule, Set<Part> parts) {
    if (parts.isEmpty()) {
      return schedule;
    }
    var staging = new Staging(schedule, parts);
    var builder = schedule.withoutPorts();
    for (var port : schedule.ports()) {
      IntFunction<Region> regions = staging.stages(port) ? builder.add(buffer(port))::on : port::on;
      var _ =
          port.given() ? builder.given(port.name(), regions) : builder.made(port.name(), regions);
    }
    return builder.stepsByRank(staging::steps);
  }

  private boolean stages(Port port) {
    return parts.stream().anyMatch(part -> part.port().equals(port.name()));
  }

  /// Returns the caller's buffer of a port.
  private static Buffer buffer(Port port) {
    var of = port.regions().getFirst().buffer();
    return new Buffer(
        port.name() + SUFFIX,
        of.dtype(),
        port.regions().stream().map(region -> new Shape(region.rows(), region.columns())).toList(),
        false,
        of.transposed());
  }

  /// Returns the steps of a rank with the copies around them.
  private List<Step> steps(int rank) {
    var inner = schedule.steps(rank);
    var copier = schedule.lanes().getFirst();
    var all = new ArrayList<Step>();
    int marks = (int) inner.stream().filter(Step.Mark.class::isInstance).count();
    var in = moves(rank, true);
    if (!in.isEmpty()) {
      all.add(new Step.Copy(copier, Step.NO_CHUNK, in));
      int copied = marks++;
      all.add(new Step.Mark(copier, Step.NO_CHUNK, copied));
      var used = in.stream().map(Step.Move::to).toList();
      lanes(inner, used, copier)
          .forEach(lane -> all.add(new Step.After(lane, Step.NO_CHUNK, copied)));
    }
    all.addAll(inner);
    var out = moves(rank, false);
    if (!out.isEmpty()) {
      var used = out.stream().map(Step.Move::from).toList();
      for (var lane : lanes(inner, used, copier)) {
        all.add(new Step.Mark(lane, Step.NO_CHUNK, marks));
        all.add(new Step.After(copier, Step.NO_CHUNK, marks++));
      }
      all.add(new Step.Copy(copier, Step.NO_CHUNK, out));
    }
    return Program.numbered(all);
  }

  /// Returns the other lanes that use the regions, or that signal peers which may use them.
  private static Set<Lane> lanes(List<Step> steps, List<Region> regions, Lane copier) {
    boolean reached = regions.stream().anyMatch(region -> region.buffer().symmetric());
    var lanes = new LinkedHashSet<Lane>();
    for (var step : steps) {
      boolean uses =
          step.accesses(regions.getFirst().rank()).stream()
              .anyMatch(access -> regions.stream().anyMatch(access.region()::overlaps));
      if (!step.lane().equals(copier)
          && (uses || (reached && (step instanceof Step.Signal || step instanceof Step.Wait)))) {
        lanes.add(step.lane());
      }
    }
    return lanes;
  }

  private List<Step.Move> moves(int rank, boolean in) {
    var moves = new ArrayList<Step.Move>();
    for (var port : schedule.ports()) {
      var used = port.on(rank);
      if (!stages(port) || used.isEmpty()) {
        continue;
      }
      var callers = buffer(port).on(rank);
      if (in && (port.given() || accumulates(port))) {
        moves.add(new Step.Move(callers, used));
      } else if (!in && !port.given()) {
        moves.add(new Step.Move(used, callers));
      }
    }
    return moves;
  }

  /// Returns whether an iteration adds to a port's earlier values.
  private boolean accumulates(Port port) {
    return port.name().equals(Part.OUTPUT.port())
        && schedule.goal() instanceof Goal.Solution(GemmSpec spec, var _)
        && spec.has(Feature.ACCUMULATE);
  }
}
