package braid.launcher.selftest;

import braid.MemoryKind;
import java.util.List;
import java.util.stream.Collectors;

/// The cell that runs the self-test.
public final class SelfTestCell {
  private SelfTestCell() {}

  /// @param kinds of symmetric memory; all where there are none
  public static String source(List<MemoryKind> kinds, boolean quick) {
    var ofKinds =
        kinds.isEmpty()
            ? ""
            : kinds.stream()
                .map(MemoryKind::name)
                .collect(Collectors.joining(", ", ".kinds(", ")"));
    return """
        SelfTest.on(world)%s%s.each(row -> {
          if (world.rank() == 0) {
            var way = row.way();
            System.out.println(String.join("\\t", "%s", way.what(), way.method(), way.transport(),
                way.memory(), way.dtype(), row.outcome().name(), "" + row.cases(),
                row.said().replaceAll("\\\\s+", " ")));
          }
        }).run();
        """
        .formatted(ofKinds, quick ? ".quick()" : "", TestedWay.MARK.replace("\u001e", "\\u001e"));
  }
}
