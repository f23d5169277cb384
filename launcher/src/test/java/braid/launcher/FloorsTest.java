package braid.launcher;

import static com.tngtech.archunit.library.Architectures.layeredArchitecture;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

import com.tngtech.archunit.core.importer.ImportOption.DoNotIncludeTests;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;

/// Checks that imports only point down: launcher, workbench-lib, native. A test of workbench-lib
/// checks its packages.
@AnalyzeClasses(packages = "braid", importOptions = DoNotIncludeTests.class)
class FloorsTest {
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
              "braid.selftest..")
          .layer("native")
          .definedBy("braid.natives..")
          .whereLayer("launcher")
          .mayNotBeAccessedByAnyLayer()
          .whereLayer("workbench-lib")
          .mayOnlyBeAccessedByLayers("launcher")
          .whereLayer("native")
          .mayOnlyBeAccessedByLayers("workbench-lib", "launcher");

  @ArchTest
  static final ArchRule ROOMS_OF_THE_LAUNCHER_MAKE_NO_CIRCLE =
      slices().matching("braid.launcher.(*)..").should().beFreeOfCycles();
}
