package braid.natives;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;

/// Functions of one native library, which stays loaded. [#has] checks for a function before it is
/// called: a missing function called through JNI ends the process.
@SuppressWarnings("restricted")
public final class ForeignLibrary {
  private final String name;
  private final SymbolLookup symbols;

  private ForeignLibrary(String name, SymbolLookup symbols) {
    this.name = name;
    this.symbols = symbols;
  }

  /// @throws UnsatisfiedLinkError if the file cannot be loaded
  public static ForeignLibrary at(Path path) {
    try {
      return new ForeignLibrary(
          path.toString(), SymbolLookup.libraryLookup(path.toString(), Arena.global()));
    } catch (IllegalArgumentException e) {
      var error = new UnsatisfiedLinkError("cannot load " + path + ": " + e.getMessage());
      error.initCause(e);
      throw error;
    }
  }

  public boolean has(String function) {
    return symbols.find(function).isPresent();
  }

  /// Returns a downcall handle, to be invoked with exactly the descriptor's types.
  ///
  /// @throws UnsatisfiedLinkError if the library has no such function
  public MethodHandle function(
      String function, FunctionDescriptor descriptor, Linker.Option... options) {
    return LibC.LINKER.downcallHandle(
        symbols
            .find(function)
            .orElseThrow(
                () ->
                    new UnsatisfiedLinkError(
                        name + " has no " + function + "; a newer or older version may have it")),
        descriptor,
        options);
  }

  /// Converts a throwable of a downcall into an unchecked exception. It is a bug of the caller or
  /// the end of the JVM, never a result of the function.
  public static RuntimeException unexpected(Throwable thrown) {
    return LibC.unexpected(thrown);
  }
}
