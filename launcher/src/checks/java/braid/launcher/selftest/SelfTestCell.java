package braid.launcher.selftest;

import braid.model.MemoryKind;
import java.util.List;
import java.util.stream.Collectors;

/// Source of the cell that runs the self-test.
public final class SelfTestCell {
  private SelfTestCell() {}

  /// @param kinds kinds of symmetric memory; empty for all
  /// @param subjects texts in the names of tested subjects, without quotes and backslashes; empty
  ///   for all
  /// @param programs number of random programs, from this seed on
  public static String source(
      List<MemoryKind> kinds, List<String> subjects, boolean quick, int programs, long seed) {
    var ofKinds =
        kinds.isEmpty()
            ? ""
            : kinds.stream()
                .map(MemoryKind::name)
                .collect(Collectors.joining(", ", ".kinds(", ")"));
    var ofSubjects =
        subjects.isEmpty()
            ? ""
            : subjects.stream().collect(Collectors.joining("\", \"", ".only(\"", "\")"));
    return """
        var results = new java.util.concurrent.atomic.AtomicInteger();
        SelfTest.on(world)%s%s%s.random(%d, %dL).beginning(what -> {
          if (world.rank() == 0) {
            System.out.println("%s\\t" + what.replaceAll("\\\\s+", " "));
          }
        }).each(row -> {
          if (world.rank() == 0) {
            var tested = row.configuration();
            System.out.println(String.join("\\t", "%s", "" + results.getAndIncrement(), tested.subject(), tested.method(), tested.transport(),
                tested.memory(), tested.dtype(), row.outcome().name(), "" + row.cases(),
                row.said().replaceAll("\\\\s+", " ")));
          }
        }).run();
        """
        .formatted(
            ofKinds,
            ofSubjects,
            quick ? ".quick()" : "",
            programs,
            seed,
            mark(TestedConfiguration.BEGINS),
            mark(TestedConfiguration.MARK));
  }

  private static String mark(String mark) {
    return mark.replace("\u001e", "\\u001e");
  }
}
