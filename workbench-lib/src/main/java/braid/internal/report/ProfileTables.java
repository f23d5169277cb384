package braid.internal.report;

import braid.internal.report.statistics.RankTimes;
import braid.internal.report.value.Caveats;
import braid.model.Activity;
import braid.model.Profile;
import braid.model.Stage;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.SequencedMap;
import java.util.stream.Stream;
import tech.tablesaw.api.DoubleColumn;
import tech.tablesaw.api.IntColumn;
import tech.tablesaw.api.LongColumn;
import tech.tablesaw.api.StringColumn;
import tech.tablesaw.api.Table;
import tech.tablesaw.columns.Column;

/// Tables of all ranks' profiles of one configuration.
public final class ProfileTables {
  /// Column that displays leave out, because a narrow page has no room for both measures.
  public static final String SAVED = "saved ÷ savable";

  private static final String RANK = "rank";
  private static final String HOST = "host";

  /// Number of hosts up to which a joined row names them.
  private static final int MOST_HOSTS = 4;

  private static final double NANOS_PER_MILLI = 1e6;

  static {
    TableTypes.ready();
  }

  private ProfileTables() {}

  public static Table spans(List<Profile> ofRanks) {
    var owners = new ArrayList<Profile>();
    var iteration = IntColumn.create("iteration");
    var chunk = IntColumn.create("chunk");
    var stage = StringColumn.create("stage");
    var stream = StringColumn.create("stream");
    var start = DoubleColumn.create("start ms");
    var took = DoubleColumn.create("ms");
    var bytes = LongColumn.create("bytes");
    var flops = LongColumn.create("flops");
    var engine = StringColumn.create("engine");
    for (var profile : ofRanks) {
      for (var span : profile.spans()) {
        owners.add(profile);
        iteration.append(span.iteration());
        if (span.chunk() < 0) {
          chunk.appendMissing();
        } else {
          chunk.append(span.chunk());
        }
        stage.append(name(span.stage()));
        stream.append(span.stream());
        start.append(span.startNanos() / NANOS_PER_MILLI);
        took.append(span.nanos() / NANOS_PER_MILLI);
        bytes.append(span.bytes());
        flops.append(span.flops());
        engine.append(span.engine());
      }
    }
    var table =
        Table.create("spans", places(owners))
            .addColumns(iteration, chunk, stage, stream, start, took, bytes, flops, engine);
    List<SequencedMap<String, String>> rows =
        Collections.nCopies(table.rowCount(), ofRanks.getFirst().configuration());
    return table.addColumns(ConfigurationColumns.of(rows).toArray(Column<?>[]::new));
  }

  /// Stage and engine of activities of one rank.
  private record Unit(String stage, String engine) {}

  /// Returns the units that did each stage on each rank in a mean iteration: kernels by name, and
  /// copy engines. Work that belongs to no step has the stage [Profile#NO_STEP]. Has no rows if the
  /// backend does not report them.
  public static Table engines(List<Profile> ofRanks) {
    var owners = new ArrayList<Profile>();
    var stage = StringColumn.create("stage");
    var engine = StringColumn.create("engine");
    var pieces = DoubleColumn.create("pieces");
    var took = DoubleColumn.create("ms");
    var bytes = LongColumn.create("bytes");
    for (var profile : ofRanks) {
      var units = new LinkedHashMap<Unit, List<Activity>>();
      profile.spans().forEach(span -> addTo(units, name(span.stage()), span.activities()));
      addTo(units, Profile.NO_STEP, profile.unowned());
      units.forEach(
          (unit, activities) -> {
            owners.add(profile);
            stage.append(unit.stage);
            engine.append(unit.engine);
            pieces.append((double) activities.size() / profile.iterations());
            took.append(
                activities.stream().mapToLong(Activity::nanos).sum()
                    / NANOS_PER_MILLI
                    / profile.iterations());
            bytes.append(
                activities.stream().mapToLong(Activity::bytes).sum() / profile.iterations());
          });
    }
    return Table.create(name("engines", ofRanks), places(owners))
        .addColumns(stage, engine, pieces, took, bytes);
  }

  private static void addTo(
      Map<Unit, List<Activity>> units, String stage, List<Activity> activities) {
    for (var each : activities) {
      units.computeIfAbsent(new Unit(stage, each.engine()), _ -> new ArrayList<>()).add(each);
    }
  }

  /// Returns times of a mean iteration; percentages are of its wall time. A stage that took no time
  /// on any rank has no columns. Measures of overlap are missing if the times are no evidence.
  public static Table stages(List<Profile> ofRanks, List<Profile> unfused) {
    var ranks = ofRanks.stream().map(RankTimes::of).toList();
    var alone = unfused.stream().map(RankTimes::of).toList();
    var present = EnumSet.noneOf(Stage.class);
    for (var times : ranks) {
      for (var stage : times.busy().entrySet()) {
        if (stage.getValue() > 0) {
          present.add(stage.getKey());
        }
      }
    }

    var columns = places(ofRanks);
    columns.add(millis("iteration ms", ranks.stream().map(RankTimes::iteration).toList()));
    for (var stage : present) {
      var busy = ranks.stream().map(t -> t.busy().getOrDefault(stage, 0.0)).toList();
      columns.add(millis(name(stage) + " ms", busy));
      var share = DoubleColumn.create(name(stage) + " %");
      for (int r = 0; r < ranks.size(); r++) {
        share.append(100 * busy.get(r) / ranks.get(r).iteration());
      }
      columns.add(share);
    }
    columns.add(millis("overlapped ms", ranks.stream().map(RankTimes::overlapped).toList()));
    columns.add(millis("idle ms", ranks.stream().map(RankTimes::idle).toList()));
    var saved = DoubleColumn.create(SAVED);
    var hidden = DoubleColumn.create("overlapped ÷ communication");
    boolean count = timesCount(ofRanks);
    for (int r = 0; r < ranks.size(); r++) {
      saved.append(count ? ranks.get(r).savedToSavable(alone.get(r)) : Double.NaN);
      hidden.append(count ? ranks.get(r).overlappedToCommunication() : Double.NaN);
    }
    columns.add(saved);
    columns.add(hidden);
    return Table.create(name("mean iteration of each rank", ofRanks), columns);
  }

  /// Returns the most important times of a mean iteration, exposed communication first; ranks with
  /// the same numbers share a row.
  public static Table overview(List<Profile> ofRanks) {
    var ranks = ofRanks.stream().map(RankTimes::of).toList();
    var saved = DoubleColumn.create(SAVED);
    var hidden = DoubleColumn.create("overlapped ÷ communication");
    boolean count = timesCount(ofRanks);
    for (var times : ranks) {
      saved.append(count ? times.savedToSavable(times) : Double.NaN);
      hidden.append(count ? times.overlappedToCommunication() : Double.NaN);
    }
    var columns = places(ofRanks);
    int labels = columns.size();
    columns.addAll(
        List.of(
            millis("exposed ms", ranks.stream().map(RankTimes::exposed).toList()),
            millis("iteration ms", ranks.stream().map(RankTimes::iteration).toList()),
            millis(
                RankTimes.compute(ranks).toLowerCase(Locale.ROOT) + " ms",
                ranks.stream().map(RankTimes::compute).toList()),
            millis("communication ms", ranks.stream().map(RankTimes::communication).toList()),
            millis("idle ms", ranks.stream().map(RankTimes::idle).toList()),
            saved,
            hidden));
    return joined(Table.create(name("mean iteration of each rank", ofRanks), columns), labels);
  }

  /// Returns the columns that name the rank of each row: its number, and its host if there are
  /// several.
  private static List<Column<?>> places(List<Profile> rows) {
    var columns = new ArrayList<Column<?>>();
    columns.add(IntColumn.create(RANK, rows.stream().mapToInt(each -> each.place().rank())));
    if (rows.stream().anyMatch(each -> each.host().isPresent())) {
      columns.add(StringColumn.create(HOST, rows.stream().map(each -> each.host().orElse(""))));
    }
    return columns;
  }

  /// Joins rows that differ only in their labels, the first columns, which become text: ranks "0 to
  /// 3" of the hosts "h1, h2".
  private static Table joined(Table ofRanks, int labels) {
    var groups = new LinkedHashMap<List<String>, List<Integer>>();
    for (int row = 0; row < ofRanks.rowCount(); row++) {
      var cells = new ArrayList<String>();
      for (int column = labels; column < ofRanks.columnCount(); column++) {
        cells.add(ofRanks.getUnformatted(row, column));
      }
      groups.computeIfAbsent(cells, _ -> new ArrayList<>()).add(row);
    }
    var rows = groups.values().stream().mapToInt(List::getFirst).toArray();
    var joined = ofRanks.rows(rows).setName(ofRanks.name());
    joined.replaceColumn(
        RANK,
        StringColumn.create(
            RANK,
            groups.values().stream()
                .map(group -> ranks(group.stream().map(ofRanks.intColumn(RANK)::get).toList()))));
    if (labels > 1) {
      joined.replaceColumn(
          HOST,
          StringColumn.create(
              HOST,
              groups.values().stream()
                  .map(group -> hosts(group.stream().map(ofRanks.stringColumn(HOST)::get)))));
    }
    return joined;
  }

  /// Returns the hosts as text, or their number if they are many.
  private static String hosts(Stream<String> ofRanks) {
    var distinct = ofRanks.distinct().toList();
    return distinct.size() <= MOST_HOSTS ? String.join(", ", distinct) : distinct.size() + " hosts";
  }

  /// Returns ranks in ascending order as text: "0, 2, 4 to 7".
  private static String ranks(List<Integer> ranks) {
    var parts = new ArrayList<String>();
    for (int from = 0; from < ranks.size(); ) {
      int to = from;
      while (to + 1 < ranks.size() && ranks.get(to + 1) == ranks.get(to) + 1) {
        to++;
      }
      parts.add(
          to == from
              ? ranks.get(from).toString()
              : ranks.get(from) + (to == from + 1 ? ", " : " to ") + ranks.get(to));
      from = to + 1;
    }
    return String.join(", ", parts);
  }

  /// Returns one column per counter of any rank; ranks with the same counts share a row.
  public static Table counters(List<Profile> ofRanks) {
    var names = new LinkedHashSet<String>();
    ofRanks.forEach(profile -> names.addAll(profile.counters().keySet()));
    var columns = places(ofRanks);
    int labels = columns.size();
    for (var name : names) {
      var column = LongColumn.create(name);
      for (var profile : ofRanks) {
        var count = profile.counters().get(name);
        if (count == null) {
          column.appendMissing();
        } else {
          column.append(count.longValue());
        }
      }
      columns.add(column);
    }
    return joined(Table.create("counted on each rank", columns), labels);
  }

  private static DoubleColumn millis(String name, List<Double> nanos) {
    return DoubleColumn.create(
        name, nanos.stream().mapToDouble(n -> n / NANOS_PER_MILLI).toArray());
  }

  private static boolean timesCount(List<Profile> ofRanks) {
    return Caveats.timesCount(ofRanks.getFirst().configuration());
  }

  /// Returns a table's name, with the note on times that are no evidence.
  private static String name(String table, List<Profile> ofRanks) {
    return timesCount(ofRanks) ? table : table + "; " + Caveats.SHARED;
  }

  private static String name(Stage stage) {
    return stage.name().toLowerCase(Locale.ROOT);
  }
}
