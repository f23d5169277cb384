package braid.natives;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;

/// The functions of one native library, which stays loaded. Whether a function exists can be asked
/// before it is called: through JNI a missing one ends the process.
@SuppressWarnings("restricted")
public final class ForeignLibrary {
  private final String name;
  private final SymbolLookup symbols;

  private ForeignLibrary(String name, SymbolLookup symbols) {
    this.name = name;
    this.symbols = symbols;
  }

  /// @throws UnsatisfiedLinkError where the file cannot be loaded
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

  /// A downcall, to be invoked with exactly the descriptor's types.
  ///
  /// @throws UnsatisfiedLinkError by name where the library has no such function
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

  /// Turns what a downcall can throw, which is a mistake of ours or the end of the JVM and never a
  /// result of the function, into something unchecked.
  public static RuntimeException unexpected(Throwable thrown) {
    return LibC.unexpected(thrown);
  }
}
