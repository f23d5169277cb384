package braid.schedule.draw;

import braid.model.BraidException;
import braid.schedule.Schedule;
import braid.schedule.Step;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/// A timeline as text: one row per lane, and below it the signals that the lane waits for.
///
/// ```
/// comm    > fetch 1  | fetch 2 >
///         ^ begun @all         ^ read @all
/// gemm-0  | gemm own | gemm 1  | gemm 2 |
/// ```
///
/// `|` begins and ends a step; `>` also marks a signal to other ranks. `^` names signals that the
/// step above it, or the end of the lane, waits for. Steps that never start follow at the end,
/// between `?`.
public final class TimelineText {
  /// Width that fits into a comment.
  static final int WIDTH_COLUMNS = 92;

  private static final String CUT = "...";

  /// Padding around labels: with and without blanks.
  private static final int[] PADDINGS = {1, 0};

  private static final int NARROWEST = 2;

  private final int ranks;
  private final List<Row> rows = new ArrayList<>();

  /// The first unit of time after all steps that start.
  private int end;

  /// Number of units of time, including the places of steps that never start.
  private int units;

  /// One lane of a rank.
  private static final class Row {
    final int rank;
    final String name;
    final Map<Integer, Cell> cells = new TreeMap<>();
    final TreeSet<Integer> signals = new TreeSet<>();
    final Map<Integer, String> waits = new TreeMap<>();

    Row(int rank, String name) {
      this.rank = rank;
      this.name = name;
    }
  }

  private record Cell(String label, int chunk, boolean starts) {}

  private TimelineText(Schedule schedule, Timeline timeline, List<Integer> shown) {
    this.ranks = schedule.ranks();
    for (int rank : shown) {
      for (var placed : timeline.steps(rank)) {
        if (placed.starts()) {
          end = Math.max(end, placed.end());
        }
      }
    }
    units = end;
    var labels = Labels.of(schedule, shown);
    for (int rank : shown) {
      var named = labels.apply(rank);
      timeline.lanes(rank).forEach((lane, steps) -> row(new Row(rank, lane.name()), steps, named));
    }
  }

  /// Returns the timelines of the first ranks, up to [Schedule#DRAWN_RANKS].
  public static String of(Schedule schedule) {
    return of(schedule, Timeline.of(schedule));
  }

  static String of(Schedule schedule, Timeline timeline) {
    var text = of(schedule, timeline, drawn(schedule), true);
    int last = schedule.ranks() - 1;
    return last < Schedule.DRAWN_RANKS
        ? text
        : text
            + "\nranks %d to %d are not drawn; timeline(%d) draws the last"
                .formatted(Schedule.DRAWN_RANKS, last, last);
  }

  /// Returns the timeline of one rank.
  public static String of(Schedule schedule, int rank) {
    if (rank < 0 || rank >= schedule.ranks()) {
      throw new BraidException(
          "the rank of a timeline must be 0..%d but was %d".formatted(schedule.ranks() - 1, rank));
    }
    return of(schedule, Timeline.of(schedule), List.of(rank), false);
  }

  static List<Integer> drawn(Schedule schedule) {
    return IntStream.range(0, Math.min(schedule.ranks(), Schedule.DRAWN_RANKS)).boxed().toList();
  }

  /// Returns the timelines of the shown ranks, one below the other on one axis.
  private static String of(
      Schedule schedule, Timeline timeline, List<Integer> shown, boolean headed) {
    return new TimelineText(schedule, timeline, shown).text(headed);
  }

  private void row(Row row, List<Timeline.Placed> steps, Labels labels) {
    var waits = new ArrayList<Step.Wait>();
    int waited = 0;
    int never = end + 1;
    boolean stuck = false;
    for (var placed : steps) {
      if (!placed.starts() && !stuck) {
        stuck = true;
        var why = why(placed.step());
        if (!why.isEmpty()) {
          row.waits.put(never, why);
        }
        waits.clear();
      }
      if (placed.isWork()) {
        int at = placed.starts() ? placed.start() : never++;
        row.cells.put(at, new Cell(labels.of(placed.step()), placed.step().chunk(), !stuck));
        note(row, at, waits);
      } else if (placed.starts() && placed.step() instanceof Step.Signal) {
        row.signals.add(placed.start());
      } else if (placed.starts() && placed.step() instanceof Step.Wait wait) {
        waits.add(wait);
        waited = placed.start();
      }
    }
    note(row, waited, waits);
    if (stuck) {
      units = Math.max(units, Math.max(never, end + 1));
    }
    if (!(row.cells.isEmpty() && row.signals.isEmpty() && row.waits.isEmpty())) {
      rows.add(row);
    }
  }

  private static String why(Step step) {
    return switch (step) {
      case Step.Wait wait -> signal(wait) + " @" + wait.from() + ": never";
      case Step.After after -> after.text() + ": never";
      default -> "";
    };
  }

  private void note(Row row, int unit, List<Step.Wait> waits) {
    if (waits.isEmpty()) {
      return;
    }
    var senders = new LinkedHashMap<String, TreeSet<Integer>>();
    for (var wait : waits) {
      senders.computeIfAbsent(signal(wait), _ -> new TreeSet<>()).add(wait.from());
    }
    var texts =
        senders.entrySet().stream()
            .map(sent -> sent.getKey() + " @" + named(sent.getValue()))
            .collect(Collectors.joining(", "));
    row.waits.merge(unit, texts, (before, more) -> before + ", " + more);
    waits.clear();
  }

  private String named(Collection<Integer> senders) {
    return senders.size() > 1 && senders.size() == ranks - 1
        ? "all"
        : senders.stream().map(String::valueOf).collect(Collectors.joining(","));
  }

  private static String signal(Step.Wait wait) {
    return wait.chunk() == Step.NO_CHUNK
        ? wait.flag().name()
        : wait.flag().name() + " " + wait.chunk();
  }

  private String text(boolean headed) {
    int names = rows.stream().mapToInt(row -> row.name.length()).max().orElse(0) + 2;
    var axis = Axis.of(rows, units, names);
    var lines = new ArrayList<String>();
    int before = -1;
    for (var row : rows) {
      if (headed && row.rank != before) {
        lines.add("rank " + row.rank);
      }
      before = row.rank;
      lines.add(axis.line(row));
      lines.addAll(axis.carets(row));
    }
    lines.addAll(axis.omitted(rows));
    return String.join("\n", lines);
  }

  /// Positions of the units of time in a line. Units from `cut` to before `resumed` are omitted.
  private record Axis(int names, int padding, List<Integer> widths, int cut, int resumed) {
    static Axis of(List<Row> rows, int units, int names) {
      int least = PADDINGS[PADDINGS.length - 1];
      for (int padding : PADDINGS) {
        var axis = new Axis(names, padding, widths(rows, units, padding), units, units);
        if (axis.place(units) < WIDTH_COLUMNS) {
          return axis;
        }
      }
      return new Axis(names, least, widths(rows, units, least), units, units).shortened();
    }

    private static List<Integer> widths(List<Row> rows, int units, int padding) {
      var widths = new ArrayList<>(Collections.nCopies(units, NARROWEST));
      for (var row : rows) {
        row.cells.forEach(
            (unit, cell) ->
                widths.set(
                    unit,
                    Math.max(widths.get(unit), label(cell, padding).length() + 1 + 2 * padding)));
      }
      return widths;
    }

    private static String label(Cell cell, int padding) {
      return padding == 0 ? cell.label.replace(" @", "@") : cell.label;
    }

    /// Omits units in the middle, so that the line fits.
    private Axis shortened() {
      int room = WIDTH_COLUMNS - names - CUT.length() - 4;
      int head = 0;
      int tail = widths.size();
      while (true) {
        boolean atHead = head <= widths.size() - tail;
        int next = atHead ? widths.get(head) : widths.get(tail - 1);
        if (next > room || head == tail) {
          return new Axis(names, padding, widths, head, tail);
        }
        room -= next;
        head += atHead ? 1 : 0;
        tail -= atHead ? 0 : 1;
      }
    }

    private boolean shows(int unit) {
      return unit < cut || unit >= resumed;
    }

    /// Returns whether the bar before a unit is shown.
    private boolean showsBar(int unit) {
      return unit <= cut || unit >= resumed;
    }

    /// Returns the position of the bar before a unit.
    private int place(int unit) {
      int place = names;
      for (int before = 0; before < unit; before++) {
        place += shows(before) ? widths.get(before) : 0;
      }
      return resumed > cut && unit >= resumed ? place + CUT.length() + 3 : place;
    }

    String line(Row row) {
      var line = new StringBuilder(" ".repeat(WIDTH_COLUMNS + 1));
      put(line, 0, row.name);
      row.cells.forEach(
          (unit, cell) -> {
            if (shows(unit)) {
              var bar = cell.starts ? "|" : "?";
              put(line, place(unit), bar);
              put(line, place(unit) + 1 + padding, label(cell, padding));
              put(line, place(unit) + widths.get(unit), bar);
            } else {
              put(line, place(cut) + 2, CUT);
            }
          });
      for (int unit : row.signals) {
        put(line, showsBar(unit) ? place(unit) : place(cut) + 2, showsBar(unit) ? ">" : CUT);
      }
      return line.toString().stripTrailing();
    }

    List<String> carets(Row row) {
      var lines = new ArrayList<StringBuilder>();
      row.waits.forEach(
          (unit, text) -> {
            if (shows(unit)) {
              caret(lines, place(unit), text);
            }
          });
      return lines.stream().map(line -> line.toString().stripTrailing()).toList();
    }

    /// Puts the text into the first line with room; to the left of the caret if it is too long.
    private static void caret(List<StringBuilder> lines, int place, String text) {
      boolean left = place + 2 + text.length() > WIDTH_COLUMNS;
      var shown = left ? text + " ^" : "^ " + text;
      int from = Math.max(0, left ? place - text.length() - 1 : place);
      int until = Math.min(from + shown.length(), WIDTH_COLUMNS);
      for (var line : lines) {
        if (line.substring(Math.max(0, from - 2), until).isBlank()) {
          put(line, from, shown);
          return;
        }
      }
      lines.add(new StringBuilder(" ".repeat(WIDTH_COLUMNS + 1)));
      put(lines.getLast(), from, shown);
    }

    private static void put(StringBuilder line, int from, String text) {
      line.replace(from, from + text.length(), text);
    }

    /// Describes the omitted units; empty if all are shown.
    List<String> omitted(List<Row> rows) {
      if (cut == resumed) {
        return List.of();
      }
      var all = new TreeSet<Integer>();
      var shown = new TreeSet<Integer>();
      for (var row : rows) {
        row.cells.forEach(
            (unit, cell) -> {
              all.add(cell.chunk);
              if (shows(unit)) {
                shown.add(cell.chunk);
              }
            });
      }
      int chunks = all.size() - shown.size();
      var text =
          "%s leaves out %d of %d units of time".formatted(CUT, resumed - cut, widths.size());
      return List.of(chunks == 0 ? text : text + " and all steps of %d chunks".formatted(chunks));
    }
  }
}
