package braid.internal.schedule;

import braid.internal.json.RecordJson;
import braid.model.AttentionSpec;
import braid.model.BraidException;
import braid.model.Fused;
import braid.model.Overlap;
import braid.model.Packing;
import braid.schedule.Buffer;
import braid.schedule.Flag;
import braid.schedule.Goal;
import braid.schedule.Lane;
import braid.schedule.Port;
import braid.schedule.Schedule;
import braid.schedule.Step;
import com.google.gson.JsonObject;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.IntStream;

/// Schedules as JSON. Ports and steps refer to buffers, lanes and flags by name.
final class ScheduleJson {
  private static final String FORMAT = "braid-schedule-1";
  private static final String DOCUMENT = "schedule";

  private record Declarations(List<Buffer> buffers, List<Flag> flags, List<Lane> lanes) {
    RecordJson json() {
      return new RecordJson()
          // Earlier versions fused and rounded nothing, had as many keys as queries, no groups, and
          // merged after the last block of an attention.
          .leavingOut(AttentionSpec.class, Map.of("fused", Fused.NONE, "isRounded", false))
          .leavingOut(Packing.class, Map.of("sides", Optional.empty()))
          .leavingOut(Overlap.class, Map.of("groupRanks", 0))
          .leavingOut(Step.Attend.class, Map.of("finished", Optional.empty()))
          .naming(Buffer.class, RecordJson.byName(buffers.stream(), Buffer::name))
          .naming(Flag.class, RecordJson.byName(flags.stream(), Flag::name))
          .naming(Lane.class, RecordJson.byName(lanes.stream(), Lane::name));
    }
  }

  private record Steps(
      String name,
      boolean replayed,
      Goal goal,
      int ranks,
      List<Port> ports,
      List<List<Step>> steps) {}

  private ScheduleJson() {}

  static String write(Schedule schedule) {
    var declarations = new Declarations(schedule.buffers(), schedule.flags(), schedule.lanes());
    var steps =
        new Steps(
            schedule.name(),
            schedule.replayed(),
            schedule.goal(),
            schedule.ranks(),
            schedule.ports(),
            IntStream.range(0, schedule.ranks()).mapToObj(schedule::stepsUncached).toList());
    var all = new RecordJson().write(FORMAT, declarations);
    all.asMap().putAll(((JsonObject) declarations.json().write(steps, Steps.class)).asMap());
    return all.toString();
  }

  static Schedule read(String json) {
    var all = RecordJson.document(DOCUMENT, FORMAT, json);
    var declared = new JsonObject();
    for (var component : Declarations.class.getRecordComponents()) {
      var value = all.remove(component.getName());
      if (value != null) {
        declared.add(component.getName(), value);
      }
    }
    var declarations = new RecordJson().read(DOCUMENT, declared, Declarations.class);
    var saved = declarations.json().read(DOCUMENT, all, Steps.class);
    var builder = Schedule.on(saved.goal(), saved.ranks());
    declarations.buffers().forEach(builder::add);
    declarations.flags().forEach(flag -> builder.flag(flag.name(), flag.words()));
    declarations.lanes().forEach(builder::add);
    for (var port : saved.ports()) {
      checkRanks("regions of port `%s`".formatted(port.name()), port.regions(), saved.ranks());
      var _ =
          port.given() ? builder.given(port.name(), port::on) : builder.made(port.name(), port::on);
    }
    checkRanks("steps", saved.steps(), saved.ranks());
    var schedule = builder.stepsByRank(saved.steps()::get);
    var named = saved.name().isEmpty() ? schedule : schedule.named(saved.name());
    return saved.replayed() ? named.replay() : named;
  }

  private static void checkRanks(String name, List<?> lists, int ranks) {
    if (lists.size() != ranks) {
      throw new BraidException(
          "%s: %s must be given for each of %d ranks but were for %d"
              .formatted(DOCUMENT, name, ranks, lists.size()));
    }
  }
}
