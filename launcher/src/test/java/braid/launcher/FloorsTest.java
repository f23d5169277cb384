package braid.launcher;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.Architectures.layeredArchitecture;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.importer.ImportOption.DoNotIncludeTests;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

/// Checks that imports only point down: launcher, workbench-lib, native. A test of workbench-lib
/// checks its packages. No product code uses the self-test, kernel checks and benchmarks, which
/// have source folders of their own.
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

  private static final DescribedPredicate<JavaClass> CHECKS =
      DescribedPredicate.describe(
          "are of src/checks",
          type -> {
            var file =
                type.getBaseComponentType().getName().replaceFirst("\\$.*", "").replace('.', '/');
            return Stream.of("native", "workbench-lib", "launcher")
                .map(module -> Path.of("..", module, "src/checks/java", file + ".java"))
                .anyMatch(Files::isRegularFile);
          });

  @ArchTest
  static final ArchRule PRODUCT_NEEDS_NO_CHECKS =
      noClasses().that(DescribedPredicate.not(CHECKS)).should().dependOnClassesThat(CHECKS);

  @ArchTest
  static final ArchRule ROOMS_OF_THE_LAUNCHER_MAKE_NO_CIRCLE =
      slices().matching("braid.launcher.(*)..").should().beFreeOfCycles();
}
