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
  void aFoundLibraryHasPathAndVersion(Library which) {
    var found = Libraries.find(which);
    assumeTrue(found.isPresent(), which + " is not on this machine");
    assertThat(found.get().path()).isRegularFile();
    assertThat(found.get().version()).matches("\\d+(\\.\\d+)*|unknown");
    assertThat(found.get().why()).isNotEmpty();
    assertThat(Libraries.require(which)).isSameAs(found.get());
  }

  @ParameterizedTest
  @EnumSource
  void aMissingLibraryListsSearchedPlacesAndRemedy(Library which) {
    assumeTrue(Libraries.find(which).isEmpty(), which + " is on this machine");
    assertThatThrownBy(() -> Libraries.require(which))
        .isInstanceOf(BraidNativeMissing.class)
        .hasMessageContaining(" was not found in ")
        .hasMessageContaining("; install ")
        .hasMessageNotContaining("\n");
  }
}
