package braid.natives;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

class ForeignLibraryTest {
  private static final FunctionDescriptor ABS =
      FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT);

  @Test
  void callsAFunctionOfALibraryThatTheLoaderFinds() throws Throwable {
    var library = ForeignLibrary.at(Path.of("libc.so.6"));
    assertThat(library.has("abs")).isTrue();
    assertThat((int) library.function("abs", ABS).invokeExact(-7)).isEqualTo(7);
  }

  @Test
  void aMissingFunctionIsNamedWithItsLibrary() {
    var library = ForeignLibrary.at(Path.of("libc.so.6"));
    assertThat(library.has("ncclAlltoAll")).isFalse();
    assertThatThrownBy(() -> library.function("ncclAlltoAll", ABS))
        .isInstanceOf(UnsatisfiedLinkError.class)
        .hasMessageContaining("libc.so.6 has no ncclAlltoAll");
  }

  @Test
  void aLibraryThatCannotBeLoadedIsNamed() {
    assertThatThrownBy(() -> ForeignLibrary.at(Path.of("/no/such/library.so")))
        .isInstanceOf(UnsatisfiedLinkError.class)
        .hasMessageContaining("/no/such/library.so");
  }

  @Test
  void aVariableIsSeenByNativeCode() {
    LibC.setVariable("BRAID_TEST_VARIABLE", "first", true);
    LibC.setVariable("BRAID_TEST_VARIABLE", "second", false);
    assertThat(variable("BRAID_TEST_VARIABLE")).isEqualTo("first");
    LibC.setVariable("BRAID_TEST_VARIABLE", "third", true);
    assertThat(variable("BRAID_TEST_VARIABLE")).isEqualTo("third");
    assertThatThrownBy(() -> LibC.setVariable("A=B", "", true)).hasMessageContaining("'A=B'");
  }

  @SuppressWarnings("restricted")
  private static String variable(String name) {
    var getenv = LibC.function("getenv", FunctionDescriptor.of(LibC.POINTER, LibC.POINTER));
    try (var arena = Arena.ofConfined()) {
      var value = (MemorySegment) getenv.invokeExact(arena.allocateFrom(name));
      return value.reinterpret(Long.MAX_VALUE).getString(0);
    } catch (Throwable e) {
      throw LibC.unexpected(e);
    }
  }
}
