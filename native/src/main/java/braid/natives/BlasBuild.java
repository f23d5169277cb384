package braid.natives;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import org.bytedeco.javacpp.Loader;
import org.bytedeco.openblas.global.openblas_nolapack;

/// Build of the loaded OpenBLAS: its version, its build configuration, the core type it chose for
/// this processor, and its number of threads.
public record BlasBuild(String config, int threads) {
  /// Upper bound of the length of OpenBLAS's configuration text.
  private static final long CONFIG_BYTES = 1024;

  /// Loads the library.
  ///
  /// @throws LinkageError if it cannot be loaded, with the reason
  @SuppressWarnings("restricted")
  public static BlasBuild load() {
    JavaCpp.prepare();
    Loader.load(openblas_nolapack.class);
    var symbols = SymbolLookup.loaderLookup();
    var linker = Linker.nativeLinker();
    try {
      var config =
          linker.downcallHandle(
              symbols.findOrThrow("openblas_get_config"),
              FunctionDescriptor.of(ValueLayout.ADDRESS));
      var threads =
          linker.downcallHandle(
              symbols.findOrThrow("openblas_get_num_threads"),
              FunctionDescriptor.of(ValueLayout.JAVA_INT));
      var text = (MemorySegment) config.invokeExact();
      return new BlasBuild(
          text.reinterpret(CONFIG_BYTES).getString(0).strip(), (int) threads.invokeExact());
    } catch (LinkageError e) {
      throw e;
    } catch (Throwable e) {
      throw new LinkageError("OpenBLAS is loaded but does not answer: " + e, e);
    }
  }
}
