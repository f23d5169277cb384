package braid.natives.load;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import braid.natives.load.Libraries.Library;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Libraries of this machine, whichever are installed.
class LibrariesTest {
  @ParameterizedTest
  @EnumSource
  void aFoundLibraryHasPathAndVersion(Library library) {
    var found = Libraries.find(library);
    assumeTrue(found.isPresent(), library + " is not on this machine");
    assertThat(found.get().path()).isRegularFile();
    assertThat(found.get().version()).matches("\\d+(\\.\\d+)*|unknown");
    assertThat(found.get().reason()).isNotEmpty();
    assertThat(Libraries.require(library)).isSameAs(found.get());
  }

  @ParameterizedTest
  @EnumSource
  void aMissingLibraryListsSearchedPlacesAndRemedy(Library library) {
    assumeTrue(Libraries.find(library).isEmpty(), library + " is on this machine");
    assertThatThrownBy(() -> Libraries.require(library))
        .isInstanceOf(BraidNativeMissing.class)
        .hasMessageContaining(" was not found in ")
        .hasMessageMatching(".*; (pip )?install .*")
        .hasMessageNotContaining("\n");
  }
}
