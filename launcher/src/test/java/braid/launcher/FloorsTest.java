package braid.launcher;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.Architectures.layeredArchitecture;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.Location;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.junit.LocationProvider;
import com.tngtech.archunit.lang.ArchRule;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// Checks that imports only point down: launcher, workbench-lib, native. A test of workbench-lib
/// checks its packages. No product code uses the checks, since it is compiled without them.
@AnalyzeClasses(locations = FloorsTest.Compiled.class)
class FloorsTest {
  private static final int MOST_FILES_OF_A_CIRCLE = 4;

  /// Product and checks as they are packaged; the tests have compiled the checks too.
  static final class Compiled implements LocationProvider {
    @Override
    public Set<Location> get(Class<?> testClass) {
      return Stream.of("classes", "checks-classes")
          .flatMap(
              classes ->
                  Stream.of(".", "../workbench-lib", "../native")
                      .map(module -> Path.of(module, "target", classes)))
          .map(Location::of)
          .collect(Collectors.toSet());
    }
  }

  @ArchTest
  static final ArchRule FLOORS =
      layeredArchitecture()
          .consideringOnlyDependenciesInLayers()
          .layer("launcher")
          .definedBy("braid.launcher..")
          .layer("workbench-lib")
          .definedBy(
              "braid",
              "braid.evidence..",
              "braid.internal..",
              "braid.model..",
              "braid.schedule..",
              "braid.selftest..",
              "braid.bench..")
          .layer("native")
          .definedBy("braid.natives..")
          .whereLayer("launcher")
          .mayNotBeAccessedByAnyLayer()
          .whereLayer("workbench-lib")
          .mayOnlyBeAccessedByLayers("launcher")
          .whereLayer("native")
          .mayOnlyBeAccessedByLayers("workbench-lib", "launcher");

  /// Checks run on hosts that have no test library, which the compiler sees beside them.
  @ArchTest
  static final ArchRule CHECKS_NEED_NO_TEST_LIBRARY =
      noClasses()
          .should()
          .dependOnClassesThat()
          .resideInAnyPackage("org.junit..", "org.assertj..", "com.tngtech..");

  @ArchTest
  static final ArchRule ROOMS_OF_THE_LAUNCHER_MAKE_NO_CIRCLE =
      slices().matching("braid.launcher.(**)").should().beFreeOfCycles();

  /// A reader of one file of a larger circle has to read all of them.
  @ArchTest
  static void noCircleOfTypesHasMoreThanFourFiles(JavaClasses classes) {
    var uses = new TreeMap<String, Set<String>>();
    for (var type : classes) {
      if (type.getPackageName().startsWith("braid.launcher")) {
        var used = uses.computeIfAbsent(file(type), _ -> new TreeSet<>());
        type.getDirectDependenciesFromSelf().forEach(each -> used.add(file(each.getTargetClass())));
      }
    }
    var reached = new TreeMap<String, Set<String>>();
    uses.keySet().forEach(file -> reached.put(file, reachedFrom(file, uses)));
    var circles =
        uses.keySet().stream()
            .map(
                file ->
                    reached.getOrDefault(file, Set.of()).stream()
                        .filter(each -> reached.getOrDefault(each, Set.of()).contains(file))
                        .toList())
            .filter(circle -> circle.size() > MOST_FILES_OF_A_CIRCLE)
            .distinct();
    assertThat(circles).isEmpty();
  }

  private static String file(JavaClass type) {
    var component = type.getBaseComponentType();
    return component.getEnclosingClass().map(FloorsTest::file).orElseGet(component::getName);
  }

  private static Set<String> reachedFrom(String file, Map<String, Set<String>> uses) {
    var reached = new TreeSet<String>();
    var next = new ArrayDeque<>(List.of(file));
    while (!next.isEmpty()) {
      for (var each : uses.getOrDefault(next.remove(), Set.of())) {
        if (uses.containsKey(each) && reached.add(each)) {
          next.add(each);
        }
      }
    }
    return reached;
  }
}
