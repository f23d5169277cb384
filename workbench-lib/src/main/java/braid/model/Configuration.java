package braid.model;

import java.util.LinkedHashMap;
import java.util.SequencedMap;

/// A configuration that a study measures: a tuning, or a step by its name.
public sealed interface Configuration permits Tuning, Configuration.Named {

  /// Returns this configuration as columns of a table.
  SequencedMap<String, String> columns();

  /// A step of any kind, known by its name alone.
  record Named(String name) implements Configuration {
    /// The column that has the name.
    public static final String COLUMN = "step";

    public Named {
      if (name.isBlank()) {
        throw new BraidException("a step's name must not be blank; try \"two levels\"");
      }
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
}
