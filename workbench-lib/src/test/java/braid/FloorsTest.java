package braid;

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
import com.tngtech.archunit.library.dependencies.SliceAssignment;
import com.tngtech.archunit.library.dependencies.SliceIdentifier;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// Imports only point down, from floor to floor and within each.
@AnalyzeClasses(locations = FloorsTest.Compiled.class)
class FloorsTest {
  /// Product and checks as they are packaged; the tests have compiled the checks too.
  static final class Compiled implements LocationProvider {
    @Override
    public Set<Location> get(Class<?> testClass) {
      return Stream.of("classes", "checks-classes")
          .flatMap(
              classes ->
                  Stream.of(".", "../native").map(module -> Path.of(module, "target", classes)))
          .map(Location::of)
          .collect(Collectors.toSet());
    }
  }

  private static final int MOST_FILES_OF_A_CIRCLE = 4;

  private record Floor(String name, List<String> packages) {
    static Floor of(String name, String... packages) {
      return new Floor(name, List.of(packages));
    }
  }

  private static final List<Floor> FROM_TOP_TO_BOTTOM =
      List.of(
          Floor.of("checks", "braid.selftest", "braid.internal.selftest", "braid.bench"),
          Floor.of("API", "braid"),
          Floor.of(
              "execution",
              "braid.internal.pipeline",
              "braid.internal.collective",
              "braid.internal.peer",
              "braid.internal.run",
              "braid.internal.memory",
              "braid.internal.context"),
          Floor.of(
              "backends",
              "braid.internal.cuda..",
              "braid.internal.host",
              "braid.internal.backend",
              "braid.internal.library"),
          Floor.of("tools of schedules", "braid.internal.schedule"),
          Floor.of("exports", "braid.export"),
          Floor.of("shapes of models", "braid.shapes"),
          Floor.of("simulation", "braid.schedule.simulation"),
          Floor.of("drawing", "braid.schedule.draw"),
          Floor.of("check", "braid.schedule.check"),
          Floor.of("planners", "braid.schedule.plan"),
          Floor.of("schedules", "braid.schedule"),
          Floor.of(
              "evidence", "braid.internal.evidence", "braid.evidence", "braid.internal.report.."),
          Floor.of(
              "ground",
              "braid.internal.json",
              "braid.internal.work",
              "braid.internal.remote",
              "braid.internal.shared",
              "braid.internal.resource",
              "braid.internal.store",
              "braid.internal.rank"),
          Floor.of("values", "braid.model"),
          Floor.of("native", "braid.natives.."));

  @ArchTest static final ArchRule FLOORS = floors();

  @ArchTest
  static final ArchRule ROOMS_MAKE_NO_CIRCLE =
      slices().assignedFrom(new Packages()).should().beFreeOfCycles();

  @ArchTest
  static final ArchRule SCHEDULES_NEED_NO_TABLES_AND_NO_NATIVE_CODE =
      noClasses()
          .that()
          .resideInAnyPackage(
              "braid.schedule",
              "braid.schedule.plan",
              "braid.schedule.check",
              "braid.schedule.draw")
          .should()
          .dependOnClassesThat()
          .resideInAnyPackage("braid.evidence..", "braid.natives..", "tech.tablesaw..");

  @ArchTest
  static final ArchRule SHAPES_AND_EXPORTS_NEED_NO_TABLES_AND_NO_NATIVE_CODE =
      noClasses()
          .that()
          .resideInAnyPackage("braid.shapes", "braid.export")
          .should()
          .dependOnClassesThat()
          .resideInAnyPackage("braid.natives..", "tech.tablesaw..");

  /// A reader of one file of a larger circle has to read all of them.
  @ArchTest
  static void noCircleOfTypesHasMoreThanFourFiles(JavaClasses classes) {
    var uses = new TreeMap<String, Set<String>>();
    for (var type : classes) {
      if (type.getPackageName().startsWith("braid.schedule")) {
        var used = uses.computeIfAbsent(file(type), _ -> new TreeSet<>());
        type.getDirectDependenciesFromSelf().forEach(each -> used.add(file(each.getTargetClass())));
      }
    }
    var reached = new TreeMap<String, Set<String>>();
    uses.keySet().forEach(file -> reached.put(file, reachedFrom(file, uses)));
    var circles = new TreeSet<String>();
    reached.forEach(
        (file, others) -> {
          var circle =
              others.stream()
                  .filter(each -> reached.getOrDefault(each, Set.of()).contains(file))
                  .sorted()
                  .toList();
          if (circle.size() > MOST_FILES_OF_A_CIRCLE) {
            circles.add(String.join(", ", circle));
          }
        });
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

  private static ArchRule floors() {
    var floors = layeredArchitecture().consideringOnlyDependenciesInLayers();
    for (var floor : FROM_TOP_TO_BOTTOM) {
      floors = floors.layer(floor.name()).definedBy(floor.packages().toArray(String[]::new));
    }
    var above = new ArrayList<String>();
    for (var floor : FROM_TOP_TO_BOTTOM) {
      var layer = floors.whereLayer(floor.name());
      floors =
          above.isEmpty()
              ? layer.mayNotBeAccessedByAnyLayer()
              : layer.mayOnlyBeAccessedByLayers(above.toArray(String[]::new));
      above.add(floor.name());
    }
    return floors.ensureAllClassesAreContainedInArchitecture();
  }

  /// Selects each package alone, also if one's name begins with another's.
  private static final class Packages implements SliceAssignment {
    @Override
    public SliceIdentifier getIdentifierOf(JavaClass type) {
      return SliceIdentifier.of(type.getPackageName());
    }

    @Override
    public String getDescription() {
      return "packages";
    }
  }
}
