package braid.selftest;

import java.util.List;
import tech.tablesaw.api.StringColumn;
import tech.tablesaw.api.Table;

/// What a self-test found, a row for each way.
public final class SelfTestTable {
  private SelfTestTable() {}

  public static Table of(String name, List<SelfTest.Row> rows) {
    var pattern = StringColumn.create("pattern");
    var method = StringColumn.create("method");
    var transport = StringColumn.create("transport");
    var kind = StringColumn.create("memory");
    var dtype = StringColumn.create("dtype");
    var result = StringColumn.create("result");
    for (var row : rows) {
      pattern.append(row.way().what());
      method.append(row.way().method());
      transport.append(row.way().transport());
      kind.append(row.way().memory());
      dtype.append(row.way().dtype());
      result.append(row.result());
    }
    return Table.create(name, pattern, method, transport, kind, dtype, result);
  }
}
