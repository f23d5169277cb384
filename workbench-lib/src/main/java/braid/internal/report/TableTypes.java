package braid.internal.report;

import tech.tablesaw.api.ColumnType;

/// Initializes Tablesaw's column types, in one thread. They refer to each other while they are
/// initialized, so two threads that begin with different ones, such as a display and the saving of
/// what it displays, would wait for each other forever.
public final class TableTypes {
  static {
    var _ = ColumnType.values();
  }

  private TableTypes() {}

  /// Returns when the types can be used; called before the first column is created.
  public static void ready() {
    // The static initializer has run.
  }
}
