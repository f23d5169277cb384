package braid;

import static com.tngtech.archunit.library.Architectures.layeredArchitecture;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.importer.Location;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.junit.LocationProvider;
import com.tngtech.archunit.lang.ArchRule;
import com.tngtech.archunit.library.dependencies.SliceAssignment;
import com.tngtech.archunit.library.dependencies.SliceIdentifier;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
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
              "braid.internal.run",
              "braid.internal.memory",
              "braid.internal.context"),
          Floor.of(
              "backends",
              "braid.internal.cuda..",
              "braid.internal.host",
              "braid.internal.backend",
              "braid.internal.library"),
          Floor.of("schedules", "braid.schedule.."),
          Floor.of(
              "evidence", "braid.internal.evidence", "braid.evidence", "braid.internal.report.."),
          Floor.of(
              "ground",
              "braid.internal.json",
              "braid.internal.work",
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
