package braid.evidence;

import braid.internal.report.HtmlTable;
import braid.internal.report.TableTypes;
import braid.internal.report.chart.ChartImage;
import braid.internal.report.json.ProfileJson;
import braid.internal.report.value.Caveats;
import braid.model.BraidException;
import braid.model.Displayable;
import braid.model.MimeBundle;
import braid.natives.WholeFolder;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Clock;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeFormatterBuilder;
import java.time.temporal.ChronoField;
import java.time.temporal.ChronoUnit;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.concurrent.ThreadLocalRandom;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import tech.tablesaw.api.StringColumn;
import tech.tablesaw.api.Table;

/// Measurements saved in a directory: one folder per run with the measurements as JSON, the tables
/// as CSV, the charts as SVG and, for profiles, the trace for Perfetto. A folder is written
/// atomically. Tables and charts are rebuilt from the JSON without ranks or GPUs.
public final class Runs implements Displayable {
  private static final DateTimeFormatter TIMESTAMP =
      new DateTimeFormatterBuilder()
          .appendPattern("yyyyMMdd'T'HHmmss")
          .appendValue(ChronoField.MILLI_OF_SECOND, 3)
          .appendLiteral('Z')
          .toFormatter()
          .withZone(ZoneOffset.UTC);
  private static final Pattern ID = Pattern.compile("(\\d{8}T\\d{9}Z)-[0-9a-f]{6}");
  private static final int RANDOM_BOUND = 1 << 24;
  private static final String UNFINISHED = ".unfinished-";
  private static final String HEADLINE = "headline.txt";
  private static final String TRACE = "trace.json";

  private final Path directory;
  private final Clock clock;

  /// Kinds of runs, each with the file of its measurements.
  public enum RunKind {
    PROFILES("profiles.json"),
    STUDY("study.json");

    private final String file;

    RunKind(String file) {
      this.file = file;
    }
  }

  /// A saved run without its measurements. Ids sort by the time of saving.
  public record SavedRun(
      String id, Instant savedAt, RunKind kind, String headline, Path directory) {}

  private Runs(Path directory, Clock clock) {
    this.directory = directory;
    this.clock = clock;
  }

  /// Opens the runs of a directory, which the first `save` creates.
  public static Runs in(Path directory) {
    return new Runs(directory, Clock.systemUTC());
  }

  static Runs in(Path directory, Clock clock) {
    return new Runs(directory, clock);
  }

  /// Returns true if a text has the form of a run's id.
  public static boolean isId(String text) {
    return ID.matcher(text).matches();
  }

  /// Returns a unique id for a run saved at that time; ids sort by time.
  public static String newId(Instant now) {
    var random = "%06x".formatted(ThreadLocalRandom.current().nextInt(RANDOM_BOUND));
    return TIMESTAMP.format(now) + "-" + random;
  }

  public SavedRun save(Evidence evidence) {
    var now = clock.instant().truncatedTo(ChronoUnit.MILLIS);
    var id = newId(now);
    var unfinished = directory.resolve(UNFINISHED + id);
    var finished = directory.resolve(id);
    try {
      Files.createDirectories(unfinished);
      try {
        write(evidence, unfinished);
        Files.move(unfinished, finished, StandardCopyOption.ATOMIC_MOVE);
      } finally {
        WholeFolder.delete(unfinished);
      }
    } catch (IOException e) {
      throw new BraidException("a run could not be saved in " + directory + ": " + e, e);
    }
    return new SavedRun(id, now, kind(evidence), evidence.headline(), finished);
  }

  /// Returns all runs, oldest first, including those in a folder of `braid run`; other folders are
  /// skipped.
  public List<SavedRun> list() {
    return folders()
        .map(this::savedRun)
        .flatMap(Optional::stream)
        .sorted(Comparator.comparing(SavedRun::id))
        .toList();
  }

  /// Returns folders named like runs, in this folder and in folders of `braid run`.
  private Stream<Path> folders() {
    return children(directory).flatMap(each -> Stream.concat(Stream.of(each), children(each)));
  }

  private static Stream<Path> children(Path folder) {
    if (!Files.isDirectory(folder)) {
      return Stream.empty();
    }
    try (var paths = Files.list(folder)) {
      return paths.filter(path -> isId(String.valueOf(path.getFileName()))).toList().stream();
    } catch (IOException e) {
      throw new BraidException("the runs in " + folder + " could not be listed: " + e, e);
    }
  }

  /// Returns a run's measurements, with their tables and charts.
  public Evidence load(String id) {
    if (!isId(id)) {
      throw new BraidException(
          "a run's id must look like 20260131T235959000Z-0a1b2c but was \"" + id + "\"" + remedy());
    }
    for (var run : folders().filter(each -> each.endsWith(id)).toList()) {
      for (var kind : RunKind.values()) {
        var file = run.resolve(kind.file);
        if (Files.exists(file)) {
          return read(kind, file);
        }
      }
    }
    throw new BraidException("there is no run " + id + " in " + directory + remedy());
  }

  private String remedy() {
    var all = list();
    return all.isEmpty() ? "; it has none" : "; the latest is " + all.getLast().id();
  }

  private static Evidence read(RunKind kind, Path file) {
    try {
      var json = Files.readString(file);
      return switch (kind) {
        case PROFILES -> ProfileSet.of(ProfileJson.readAll(json));
        case STUDY -> Study.fromJson(json);
      };
    } catch (BraidException e) {
      throw new BraidException(file + ": " + e.getMessage(), e);
    } catch (IOException e) {
      throw new BraidException(file + " could not be read: " + e, e);
    }
  }

  private static RunKind kind(Evidence evidence) {
    return switch (evidence) {
      case ProfileSet set -> RunKind.PROFILES;
      case Study<?> study -> RunKind.STUDY;
    };
  }

  private static void write(Evidence evidence, Path run) throws IOException {
    var json =
        switch (evidence) {
          case ProfileSet set -> ProfileJson.writeAll(set.profiles());
          case Study<?> study -> study.toJson();
        };
    Files.writeString(run.resolve(kind(evidence).file), json);
    Files.writeString(run.resolve(HEADLINE), evidence.headline() + "\n");
    for (var table : evidence.tables().entrySet()) {
      noted(table.getValue(), evidence).write().csv(run.resolve(table.getKey() + ".csv").toFile());
    }
    if (evidence instanceof ProfileSet set) {
      Files.writeString(run.resolve(TRACE), set.chromeTrace());
    }
    var noFonts = ChartImage.noFonts();
    if (noFonts.isPresent()) {
      Files.writeString(run.resolve("no-charts.txt"), noFonts.get() + "\n");
      return;
    }
    for (var chart : evidence.charts().entrySet()) {
      Files.writeString(run.resolve(chart.getKey() + ".svg"), ChartImage.svg(chart.getValue()));
    }
  }

  /// Returns the table with the column that notes times that are no evidence, since a file has no
  /// caption.
  private static Table noted(Table table, Evidence evidence) {
    return evidence.timesCount() || table.containsColumn(Caveats.COLUMN)
        ? table
        : table
            .copy()
            .addColumns(
                StringColumn.create(
                    Caveats.COLUMN, Collections.nCopies(table.rowCount(), Caveats.SHARED)));
  }

  private Optional<SavedRun> savedRun(Path run) {
    var id = String.valueOf(run.getFileName());
    var matcher = ID.matcher(id);
    if (!matcher.matches()) {
      return Optional.empty();
    }
    var savedAt = TIMESTAMP.parse(matcher.group(1), Instant::from);
    for (var kind : RunKind.values()) {
      if (Files.exists(run.resolve(kind.file))) {
        return Optional.of(new SavedRun(id, savedAt, kind, headline(run), run));
      }
    }
    return Optional.empty();
  }

  private static String headline(Path run) {
    try {
      return Files.readString(run.resolve(HEADLINE)).strip();
    } catch (IOException e) {
      return "(its headline could not be read: " + e + ")";
    }
  }

  private Table table() {
    TableTypes.ready();
    var id = StringColumn.create("run");
    var kind = StringColumn.create("kind");
    var headline = StringColumn.create("found");
    for (var savedRun : list()) {
      id.append(savedRun.id());
      kind.append(savedRun.kind().name().toLowerCase(Locale.ROOT));
      headline.append(savedRun.headline());
    }
    return Table.create("runs in " + directory, id, kind, headline);
  }

  @Override
  public MimeBundle display() {
    var table = table();
    return MimeBundle.text(HtmlTable.text(table, table.rowCount()))
        .with(MimeBundle.HTML, HtmlTable.html(table, table.rowCount()));
  }

  @Override
  public String toString() {
    return list().size() + " runs in " + directory;
  }
}
