package braid.selftest;

import java.util.List;
import tech.tablesaw.api.StringColumn;
import tech.tablesaw.api.Table;

/// Table of a self-test, one row per configuration.
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
      pattern.append(row.configuration().subject());
      method.append(row.configuration().method());
      transport.append(row.configuration().transport());
      kind.append(row.configuration().memory());
      dtype.append(row.configuration().dtype());
      result.append(row.result());
    }
    return Table.create(name, pattern, method, transport, kind, dtype, result);
  }
}
