package braid.selftest;

import braid.Capabilities;
import braid.internal.selftest.CommunicationCase;
import braid.internal.selftest.ComparedForms;
import braid.model.BackendKind;
import braid.model.DType;
import braid.selftest.SelfTest.Configuration;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// A path of the library, by the words of the self-test's table: `attention-backward: two-level`.
/// It covers all configurations of its pattern, collective or check that have its parts.
///
/// @param subject pattern, collective or check
/// @param parts method, transport or library, kind of memory or type, all of which a configuration
///   has
public record TestedPath(String subject, Set<String> parts) {
  private static final String SEPARATOR = ": ";

  public TestedPath {
    parts = Set.copyOf(parts);
  }

  /// Parses a path as a page names it: `what: part: part`.
  public static TestedPath parse(String text) {
    var words = List.of(text.split(SEPARATOR));
    return new TestedPath(words.getFirst(), Set.copyOf(words.subList(1, words.size())));
  }

  /// Returns true if a configuration belongs to this path.
  public boolean covers(Configuration tested) {
    return subject.equals(tested.subject())
        && List.of(tested.method(), tested.transport(), tested.memory(), tested.dtype())
            .containsAll(parts);
  }

  /// Returns the configurations with a case in the self-test, quick or whole, of a backend.
  public static Set<Configuration> tested(BackendKind backend, int ranks, boolean quick) {
    var plan =
        new SelfTestPlan(
            Capabilities.kinds(),
            Arrays.asList(DType.values()),
            List.of(),
            quick,
            new SelfTestPlan.Random(0, 0),
            List.of());
    var tested = new HashSet<Configuration>();
    for (var kind : Capabilities.kinds()) {
      var pipelines = Capabilities.of(backend).stream().filter(row -> row.kind() == kind).toList();
      var collectives =
          Capabilities.collectivesOf(backend).stream().filter(row -> row.kind() == kind).toList();
      tested.addAll(plan.cases(kind, pipelines, collectives, ranks).keySet());
      if (backend == BackendKind.CUDA) {
        CommunicationCase.of(pipelines, collectives, ranks)
            .forEach(each -> tested.add(SelfTestPlan.configuration(each, kind)));
      }
    }
    if (ComparedForms.missing(ranks).isEmpty()) {
      Arrays.stream(ComparedForms.values())
          .forEach(each -> tested.add(SelfTestPlan.configuration(each)));
    }
    return tested;
  }

  @Override
  public String toString() {
    return Stream.concat(Stream.of(subject), parts.stream().sorted())
        .collect(Collectors.joining(SEPARATOR));
  }
}
