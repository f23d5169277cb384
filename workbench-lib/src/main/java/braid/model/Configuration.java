package braid.model;

import java.util.LinkedHashMap;
import java.util.SequencedMap;

/// A configuration that a study measures: a tuning of a pipeline, a schedule of one's own, or a
/// step by its name. Its name is `toString()`.
public sealed interface Configuration
    permits Tuning, Configuration.OwnSchedule, Configuration.LayoutTuning, Configuration.Named {

  /// Returns this configuration as columns of a table.
  SequencedMap<String, String> columns();

  /// Returns the number in a column, such as `splits`.
  ///
  /// @param absent number of a configuration that has no such column
  default int count(String column, int absent) {
    var value = columns().get(column);
    return value == null ? absent : Integer.parseInt(value);
  }

  /// A schedule of one's own, which a study has beside tunings.
  ///
  /// @param splits number of splits for which a family of schedules made it; 0 for a single
  ///   schedule
  record OwnSchedule(String name, int splits) implements Configuration {
    public OwnSchedule {
      named("schedule", name);
      if (splits < 0) {
        throw new BraidException(
            "splits must be 1 or more, or 0 for a single schedule, but was %d".formatted(splits));
      }
    }

    @Override
    public SequencedMap<String, String> columns() {
      var columns = new LinkedHashMap<String, String>();
      columns.put("method", name);
      if (splits > 0) {
        columns.put("splits", Integer.toString(splits));
      }
      return columns;
    }

    @Override
    public String toString() {
      return splits == 0 ? name : name + ", " + Overlap.counted(splits, "split");
    }
  }

  /// A tuning of attention and the layout of the tokens, in a study that compares layouts.
  record LayoutTuning(TokenLayout layout, ContextParallel tuning) implements Configuration {
    /// The column that has the layout, as in the problem of a study of one layout.
    public static final String COLUMN = "layout";

    @Override
    public SequencedMap<String, String> columns() {
      var columns = new LinkedHashMap<String, String>();
      columns.put(COLUMN, layout.toString());
      columns.putAll(tuning.columns());
      return columns;
    }

    @Override
    public String toString() {
      return layout + ", " + tuning;
    }
  }

  /// A step of any kind, known by its name alone.
  record Named(String name) implements Configuration {
    /// The column that has the name.
    public static final String COLUMN = "step";

    public Named {
      named("step", name);
    }

    @Override
    public SequencedMap<String, String> columns() {
      var columns = new LinkedHashMap<String, String>();
      columns.put(COLUMN, name);
      return columns;
    }

    @Override
    public String toString() {
      return name;
    }
  }

  private static void named(String kind, String name) {
    if (name.isBlank()) {
      throw new BraidException("a %s's name must not be blank; try \"two levels\"".formatted(kind));
    }
  }
}
