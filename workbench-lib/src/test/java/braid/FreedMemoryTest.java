package braid;

import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.domain.JavaMethodCall;
import com.tngtech.archunit.core.importer.ImportOption.DoNotIncludeTests;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import java.util.Set;
import java.util.stream.Collectors;

/// Every call that frees memory of a device is given to `Gpu.release`, which keeps it while a
/// stream captures.
@AnalyzeClasses(packages = "braid", importOptions = DoNotIncludeTests.class)
class FreedMemoryTest {
  private static final Set<String> FREEING =
      Set.of(
          "cuMemFree",
          "cuMemFreeHost",
          "cuMemRelease",
          "cuMemUnmap",
          "cuMemAddressFree",
          "cuIpcCloseMemHandle",
          "cuModuleUnload",
          "cuGraphExecDestroy");

  @ArchTest
  static void g6MemoryIsFreedOnlyWhileNoStreamCaptures(JavaClasses classes) {
    var calls =
        classes.stream()
            .flatMap(type -> type.getMethodCallsFromSelf().stream())
            .filter(call -> FREEING.contains(call.getName()))
            .toList();
    assertThat(calls.stream().map(JavaMethodCall::getName).collect(Collectors.toSet()))
        .isEqualTo(FREEING);
    assertThat(calls).allSatisfy(FreedMemoryTest::isGivenToRelease);
  }

  private static void isGivenToRelease(JavaMethodCall call) {
    assertThat(call.isDeclaredInLambda()).as(call.getDescription()).isTrue();
    assertThat(call.getOrigin().getMethodCallsFromSelf())
        .as(call.getDescription())
        .anyMatch(
            other ->
                other.getName().equals("release")
                    && other.getTargetOwner().getFullName().equals("braid.natives.cuda.Gpu"));
  }
}
