package braid.launcher;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.Architectures.layeredArchitecture;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

import com.tngtech.archunit.core.importer.Location;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.junit.LocationProvider;
import com.tngtech.archunit.lang.ArchRule;
import java.nio.file.Path;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// Checks that imports only point down: launcher, workbench-lib, native. A test of workbench-lib
/// checks its packages. No product code uses the checks, since it is compiled without them.
@AnalyzeClasses(locations = FloorsTest.Compiled.class)
class FloorsTest {
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
      slices().matching("braid.launcher.(*)..").should().beFreeOfCycles();
}
