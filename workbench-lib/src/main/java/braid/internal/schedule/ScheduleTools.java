package braid.internal.schedule;

import braid.model.MimeBundle;
import braid.model.Problem;
import braid.model.Tuning;
import braid.schedule.Program;
import braid.schedule.Schedule;
import braid.schedule.check.Check;
import braid.schedule.draw.TimelineDrawing;
import braid.schedule.draw.TimelineText;
import braid.schedule.plan.Ordering;
import braid.schedule.plan.Planner;
import java.util.List;
import java.util.function.IntFunction;

/// The tools of this library; [Schedule] loads this class by its name.
public final class ScheduleTools implements Schedule.Tools {
  @Override
  public Schedule plan(Problem problem, Tuning tuning, int ranks) {
    return Planner.plan(problem, tuning, ranks);
  }

  @Override
  public Schedule ordered(Schedule.Builder declared, int ranks, IntFunction<Program> programs) {
    return Ordering.of(declared, ranks, programs);
  }

  @Override
  public List<String> findings(Schedule schedule) {
    return Check.findings(schedule);
  }

  @Override
  public String timeline(Schedule schedule) {
    return TimelineText.of(schedule);
  }

  @Override
  public String timeline(Schedule schedule, int rank) {
    return TimelineText.of(schedule, rank);
  }

  @Override
  public MimeBundle display(Schedule schedule) {
    return TimelineDrawing.display(schedule);
  }

  @Override
  public String toJson(Schedule schedule) {
    return ScheduleJson.write(schedule);
  }

  @Override
  public Schedule fromJson(String json) {
    return ScheduleJson.read(json);
  }
}
