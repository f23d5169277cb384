package braid.natives.kernels;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.SequencedMap;
import java.util.regex.Pattern;

/// Source of a program: the file that is compiled, and the files that it includes, by name.
record KernelSources(String name, String program, SequencedMap<String, String> included) {
  private static final Pattern INCLUDE = Pattern.compile("(?m)^#include \"(.+)\"$");

  /// All kernels except for attention.
  static KernelSources ours() {
    return of("kernels.cu");
  }

  /// The kernels of attention.
  static KernelSources attention() {
    return of("attention.cu");
  }

  private static KernelSources of(String name) {
    var program = read(name);
    var included = new LinkedHashMap<String, String>();
    INCLUDE
        .matcher(program)
        .results()
        .map(line -> line.group(1))
        .forEach(file -> included.put(file, read(file)));
    return new KernelSources(name, program, included);
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
