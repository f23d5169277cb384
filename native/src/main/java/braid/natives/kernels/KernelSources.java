package braid.natives.kernels;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.SequencedMap;

/// Source of a program: the file that is compiled, and the files that it includes, by name.
record KernelSources(String name, String program, SequencedMap<String, String> included) {
  private static final String PROGRAM = "kernels.cu";
  private static final List<String> INCLUDED =
      List.of(
          "numbers.cuh",
          "vectors.cuh",
          "copy.cuh",
          "tma.cuh",
          "reduce.cuh",
          "fill.cuh",
          "bounds.cuh",
          "inspect.cuh",
          "layout.cuh");

  /// All kernels of this project.
  static KernelSources ours() {
    var included = new LinkedHashMap<String, String>();
    INCLUDED.forEach(file -> included.put(file, read(file)));
    return new KernelSources(PROGRAM, read(PROGRAM), included);
  }

  private static String read(String file) {
    try (var stream = KernelSources.class.getResourceAsStream(file)) {
      if (stream == null) {
        throw new IllegalStateException(
            file + " must be beside " + KernelSources.class.getName() + " but is not; build again");
      }
      return new String(stream.readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException("cannot read " + file, e);
    }
  }
}
