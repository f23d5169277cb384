package braid.internal.schedule;

import braid.internal.json.RecordJson;
import braid.model.BraidException;
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
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/// Schedules as JSON. Ports and steps refer to buffers, lanes and flags by name.
final class ScheduleJson {
  private static final String FORMAT = "braid-schedule-1";
  private static final String DOCUMENT = "schedule";

  private record Declarations(
      String format, List<Buffer> buffers, List<Flag> flags, List<Lane> lanes) {
    RecordJson json() {
      return new RecordJson()
          .naming(Buffer.class, byName(buffers, Buffer::name))
          .naming(Flag.class, byName(flags, Flag::name))
          .naming(Lane.class, byName(lanes, Lane::name));
    }

    private static <T> Map<String, T> byName(List<T> all, Function<T, String> name) {
      return all.stream().collect(Collectors.toMap(name, each -> each, (a, _) -> a));
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
    var declarations =
        new Declarations(FORMAT, schedule.buffers(), schedule.flags(), schedule.lanes());
    var steps =
        new Steps(
            schedule.name(),
            schedule.replayed(),
            schedule.goal(),
            schedule.ranks(),
            schedule.ports(),
            IntStream.range(0, schedule.ranks()).mapToObj(schedule::stepsUncached).toList());
    var all = new JsonObject();
    add(all, (JsonObject) new RecordJson().write(declarations, Declarations.class));
    add(all, (JsonObject) declarations.json().write(steps, Steps.class));
    return all.toString();
  }

  private static void add(JsonObject all, JsonObject some) {
    some.entrySet().forEach(each -> all.add(each.getKey(), each.getValue()));
  }

  static Schedule read(String json) {
    if (!(RecordJson.parse(DOCUMENT, json) instanceof JsonObject all)
        || all.get("format") == null
        || !all.get("format").toString().equals('"' + FORMAT + '"')) {
      throw new BraidException(
          "%s: field `format` must be \"%s\"; save a schedule with toJson()"
              .formatted(DOCUMENT, FORMAT));
    }
    var declared = new JsonObject();
    for (var component : Declarations.class.getRecordComponents()) {
      var value = all.remove(component.getName());
      if (value != null) {
        declared.add(component.getName(), value);
      }
    }
    var declarations = (Declarations) new RecordJson().read(DOCUMENT, declared, Declarations.class);
    var saved = (Steps) declarations.json().read(DOCUMENT, all, Steps.class);
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
