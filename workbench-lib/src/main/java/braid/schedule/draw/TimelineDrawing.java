package braid.schedule.draw;

import braid.model.MimeBundle;
import braid.model.Stage;
import braid.schedule.Lane;
import braid.schedule.Schedule;
import braid.schedule.Step;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;

/// A timeline as SVG: rows by rank and lane, one cell per step, an arrow from each signal to its
/// wait. It paints its own background, so that it is readable in light and dark notebooks.
public final class TimelineDrawing {
  /// The width of charts.
  private static final int WIDTH_PX = 860;

  private static final int ROW_PX = 20;
  private static final int MANY_ROWS = 24;
  private static final int LOW_ROW_PX = 16;
  private static final int HEAD_PX = 66;
  private static final int FOOT_PX = 36;
  private static final int MARGIN_PX = 16;
  private static final int WIDEST_UNIT_PX = 104;
  private static final int NARROWEST_UNIT_PX = 3;

  /// Width of a small letter, estimated generously.
  private static final double LETTER_PX = 6.4;

  private static final int MOST_ARROWS = 96;

  private static final String INK = "#1F2933";
  private static final String QUIET_INK = "#5B6672";
  private static final String GRID = "#E3E7EB";
  private static final String BAND = "#F4F6F8";
  private static final String FONT = "font-family='Verdana,DejaVu Sans,sans-serif'";

  private final Schedule schedule;
  private final Timeline timeline;
  private final List<Integer> shown;
  private final StringBuilder svg = new StringBuilder();
  private final List<Row> rows = new ArrayList<>();
  private final Map<Integer, Map<Lane, Row>> byLane = new HashMap<>();
  private final Set<Stage> stages = EnumSet.noneOf(Stage.class);

  /// Notes on how to read the drawing.
  private final Set<String> notes = new LinkedHashSet<>();

  private final int end;
  private final int units;
  private final double unitPx;
  private final int gutterPx;
  private final int rowPx;

  private record Row(int rank, Lane lane, List<Timeline.Placed> steps, boolean first, int index) {}

  private TimelineDrawing(Schedule schedule, Timeline timeline, List<Integer> shown) {
    this.schedule = schedule;
    this.timeline = timeline;
    this.shown = shown;
    int last = 0;
    int never = 0;
    int longest = 0;
    for (int rank : shown) {
      var lanes = new HashMap<Lane, Row>();
      byLane.put(rank, lanes);
      for (var entry : timeline.lanes(rank).entrySet()) {
        int waiting = 0;
        for (var placed : entry.getValue()) {
          last = placed.starts() ? Math.max(last, placed.end()) : last;
          waiting += placed.starts() || placed.step().stage().isEmpty() ? 0 : 1;
        }
        never = Math.max(never, waiting);
        var row = new Row(rank, entry.getKey(), entry.getValue(), lanes.isEmpty(), rows.size());
        rows.add(row);
        lanes.put(row.lane, row);
        longest = Math.max(longest, row.lane.name().length());
      }
    }
    end = last;
    units = Math.max(1, end + (never > 0 ? never + 1 : 0));
    gutterPx = MARGIN_PX + (int) ((longest + 8) * LETTER_PX);
    unitPx =
        Math.clamp(
            (double) (WIDTH_PX - gutterPx - MARGIN_PX) / units, NARROWEST_UNIT_PX, WIDEST_UNIT_PX);
    rowPx = rows.size() < MANY_ROWS ? ROW_PX : LOW_ROW_PX;
  }

  /// Returns the timeline of a schedule, as text and as a picture.
  public static MimeBundle display(Schedule schedule) {
    var timeline = Timeline.of(schedule);
    var drawing = new TimelineDrawing(schedule, timeline, TimelineText.drawn(schedule));
    return MimeBundle.text(schedule + "\n" + TimelineText.of(schedule, timeline))
        .with(MimeBundle.SVG, drawing.draw());
  }

  private String draw() {
    background();
    var arrows = arrows();
    // Pale arrows behind the cells, so that labels remain readable.
    arrows.stream().filter(arrow -> !arrow.isAwaited()).forEach(this::arrow);
    var labels = Labels.of(schedule, shown);
    for (int rank : shown) {
      var rankLabels = labels.apply(rank);
      rows.stream().filter(row -> row.rank == rank).forEach(row -> cells(row, rankLabels));
    }
    arrows.stream().filter(Timeline.Arrow::isAwaited).forEach(this::arrow);
    var body = svg.toString();
    svg.setLength(0);
    int width = (int) Math.max(WIDTH_PX, Math.ceil(x(units)) + MARGIN_PX);
    int height = HEAD_PX + rows.size() * rowPx + FOOT_PX;
    svg.append(
        ("<svg xmlns='http://www.w3.org/2000/svg' width='%1$d' height='%2$d' "
                + "viewBox='0 0 %1$d %2$d' %3$s>")
            .formatted(width, height, FONT));
    svg.append("\n<rect width='%d' height='%d' fill='#FFFFFF'/>".formatted(width, height));
    head();
    svg.append(body);
    legend(height);
    return svg.append("\n</svg>\n").toString();
  }

  private void head() {
    int ranks = schedule.ranks();
    text(MARGIN_PX, 24, 15, INK, "font-weight='bold'", title(ranks));
    text(MARGIN_PX, 41, 11, QUIET_INK, "", schedule.goal().toString());
    var remarks = new ArrayList<String>();
    remarks.add("numbers are chunks");
    remarks.add("each step takes one unit of time");
    remarks.addAll(notes);
    text(MARGIN_PX, 56, 11, QUIET_INK, "", String.join("; ", remarks));
  }

  private String title(int ranks) {
    if (shown.size() < ranks) {
      return "Order of one iteration on ranks %d to %d of %d"
          .formatted(shown.getFirst(), shown.getLast(), ranks);
    }
    return "Order of one iteration on " + (ranks == 1 ? "1 rank" : ranks + " ranks");
  }

  /// Draws bands of ranks, names of lanes, and lines between units of time.
  private void background() {
    for (var row : rows) {
      double top = top(row);
      if (row.rank % 2 == 1) {
        svg.append(
            "\n<path d='M0 %s H%s v%d H0 Z' fill='%s'/>"
                .formatted(px(top), px(Math.max(WIDTH_PX, x(units) + MARGIN_PX)), rowPx, BAND));
      }
      if (row.first) {
        text(MARGIN_PX, middle(row) + 4, 11, INK, "font-weight='bold'", "rank " + row.rank);
      }
      text(gutterPx - 8, middle(row) + 4, 11, INK, "text-anchor='end'", row.lane.name());
    }
    int every = unitPx < 12 ? 8 : 1;
    for (int unit = 0; unit <= units; unit += every) {
      svg.append(
          "\n<path d='M%s %d V%d' stroke='%s'/>"
              .formatted(px(x(unit)), HEAD_PX, HEAD_PX + rows.size() * rowPx, GRID));
    }
    if (units > end && end > 0) {
      text(x(end + 1), HEAD_PX - 3, 9, QUIET_INK, "", "never");
      notes.add("steps after ? never start");
    }
  }

  private void cells(Row row, Labels labels) {
    int never = end + 1;
    boolean stuck = false;
    for (var placed : row.steps) {
      if (!placed.starts() && !stuck) {
        stuck = true;
        text(x(end) + 3, middle(row) + 5, 14, color(Stage.SIGNAL), "font-weight='bold'", "?");
      }
      var stage = placed.step().stage().orElse(null);
      if (stage == null) {
        continue;
      }
      stages.add(stage);
      if (placed.starts() && !placed.isWork()) {
        rect(row, x(placed.start()) - 1, 3, stage, "");
      } else {
        int unit = placed.starts() ? placed.start() : never++;
        double gap = unitPx < 6 ? 0.25 : 1;
        rect(row, x(unit) + gap, unitPx - 2 * gap, stage, placed.starts() ? "" : " opacity='.4'");
        var ink = placed.starts() ? inkOn(stage) : INK;
        label(row, unit, ink, labels.of(placed.step()), placed.step().chunk());
      }
    }
  }

  private void rect(Row row, double x, double width, Stage stage, String more) {
    svg.append(
        "\n<rect x='%s' y='%s' width='%s' height='%d' rx='1.5' fill='%s'%s/>"
            .formatted(px(x), px(top(row) + 2), px(width), rowPx - 4, color(stage), more));
  }

  /// Draws the label of a cell, or its chunk, or nothing, whichever fits.
  private void label(Row row, int unit, String ink, String label, int chunk) {
    var number = chunk == Step.NO_CHUNK ? "" : String.valueOf(chunk);
    boolean whole = label.length() * LETTER_PX < unitPx - 4;
    boolean some = number.length() * LETTER_PX < unitPx - 2;
    if (whole || some) {
      text(
          x(unit) + unitPx / 2,
          middle(row) + 4,
          whole ? 10 : 9,
          ink,
          "text-anchor='middle'",
          whole ? label : number);
    } else {
      notes.add("some chunk numbers do not fit and are left out");
    }
  }

  /// Returns the arrows to draw; if there are too many, only those that a lane may have been idle
  /// for.
  private List<Timeline.Arrow> arrows() {
    var all = timeline.arrows(shown).stream().filter(arrow -> arrow.to().starts()).toList();
    var drawn = all;
    if (drawn.size() > MOST_ARROWS) {
      drawn = all.stream().filter(Timeline.Arrow::isAwaited).toList();
    }
    if (drawn.size() > MOST_ARROWS) {
      drawn = drawn.stream().filter(arrow -> arrow.to().rank() == shown.getFirst()).toList();
    }
    if (drawn.size() > MOST_ARROWS) {
      drawn = drawn.subList(0, MOST_ARROWS);
    }
    if (drawn.size() < all.size()) {
      notes.add("%d of %d signals are drawn".formatted(drawn.size(), all.size()));
    }
    if (!drawn.isEmpty()) {
      stages.add(Stage.SIGNAL);
    }
    return drawn;
  }

  private void arrow(Timeline.Arrow arrow) {
    var from = row(arrow.from());
    var to = row(arrow.to());
    double x1 = x(arrow.from().start());
    double y1 = middle(from);
    double x2 = x(arrow.to().start());
    double y2 = middle(to);
    double length = Math.max(1, Math.hypot(x2 - x1, y2 - y1));
    double dx = (x2 - x1) / length;
    double dy = (y2 - y1) / length;
    // The head ends at the point of the wait.
    double bx = x2 - 6 * dx;
    double by = y2 - 6 * dy;
    svg.append(
        "\n<g class='signal' stroke='%1$s' fill='%1$s' opacity='%2$s'>"
            .formatted(color(Stage.SIGNAL), arrow.isAwaited() ? ".85" : ".4"));
    svg.append("<circle cx='%s' cy='%s' r='1.8' stroke='none'/>".formatted(px(x1), px(y1)));
    svg.append("<path d='M%s %s L%s %s' fill='none'/>".formatted(px(x1), px(y1), px(bx), px(by)));
    svg.append(
        "<path d='M%s %s L%s %s L%s %s Z' stroke='none'/></g>"
            .formatted(
                px(x2),
                px(y2),
                px(bx - 3 * dy),
                px(by + 3 * dx),
                px(bx + 3 * dy),
                px(by - 3 * dx)));
  }

  private Row row(Timeline.Placed placed) {
    return Objects.requireNonNull(
        Objects.requireNonNull(byLane.get(placed.rank())).get(placed.step().lane()));
  }

  private void legend(int height) {
    double x = MARGIN_PX;
    double y = height - 14;
    for (var stage : stages) {
      var name = meaning(stage);
      svg.append(
          stage == Stage.SIGNAL
              ? "\n<path d='M%1$s %2$s h12 m-5 -3 l5 3 l-5 3' fill='none' stroke='%3$s'/>"
                  .formatted(px(x), px(y - 4), color(stage))
              : "\n<path d='M%s %s h12 v10 h-12 Z' fill='%s'/>"
                  .formatted(px(x), px(y - 9), color(stage)));
      text(x + 18, y, 11, INK, "", name);
      x += 40 + name.length() * LETTER_PX;
    }
  }

  private static String meaning(Stage stage) {
    return switch (stage) {
      case GEMM -> "multiplication";
      case ATTENTION -> "attention";
      case COPY -> "communication";
      case REDUCE -> "sum";
      case LOCAL -> "within the rank";
      case SIGNAL -> "signal to its wait (pale: raised before it was needed)";
      case WAIT -> "wait";
    };
  }

  private void text(double x, double y, int size, String ink, String more, String text) {
    svg.append(
        "\n<text x='%s' y='%s' font-size='%d' fill='%s'%s>%s</text>"
            .formatted(px(x), px(y), size, ink, more.isEmpty() ? "" : " " + more, escaped(text)));
  }

  private static String escaped(String text) {
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;");
  }

  private double x(int unit) {
    return gutterPx + unit * unitPx;
  }

  private double top(Row row) {
    return HEAD_PX + row.index * rowPx;
  }

  private double middle(Row row) {
    return top(row) + rowPx / 2.0;
  }

  private static String color(Stage stage) {
    return "#%06X".formatted(stage.rgb());
  }

  private static String inkOn(Stage stage) {
    return stage == Stage.COPY ? INK : "#FFFFFF";
  }

  /// Formats a coordinate with at most one decimal place.
  private static String px(double value) {
    long tenths = Math.round(value * 10);
    return tenths % 10 == 0
        ? String.valueOf(tenths / 10)
        : String.format(Locale.ROOT, "%.1f", tenths / 10.0);
  }
}
